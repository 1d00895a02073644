/** A plain-text message to one person. */
export interface MailMessage {
  /**
   * Id of the message, stable across attempts, so that receivers can drop duplicates. ASCII letters, digits, `_` and
   * `-`.
   */
  readonly id: string;
  readonly to: string;
  readonly subject: string;
  readonly text: string;
}

/** Answer of a mail server: accepted, or permanently refused for this address. */
export type Sent = "sent" | "refused";

export interface Mail {
  /**
   * Throws `MailUnsent` if the server neither accepted the message nor permanently refused it; it may then be sent
   * again.
   */
  send(message: MailMessage): Promise<Sent>;
}

/**
 * The message was not accepted. Names the cause only by codes: servers repeat addresses in their answers, and the
 * message goes into histories and logs.
 */
export class MailUnsent extends Error {
  override readonly name = "MailUnsent";
}
