/** A plain-text message to one person. */
export interface MailMessage {
  /** Id of ASCII letters, digits, `_` and `-`; stable across attempts, so that receivers drop duplicates. */
  readonly id: string;
  readonly to: string;
  readonly subject: string;
  readonly text: string;
}

/** Answer of a mail server: accepted, or permanently refused for this address. */
export type Sent = "sent" | "refused";

export interface Mail {
  /** Throws `MailUnsent` if the server neither accepted nor permanently refused the message: it may be resent. */
  send(message: MailMessage): Promise<Sent>;
}

/**
 * The message was not accepted. Names the cause only by codes: servers repeat addresses in their answers, and the
 * message goes into histories and logs.
 */
export class MailUnsent extends Error {
  override readonly name = "MailUnsent";
}
