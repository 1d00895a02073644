/** A message in plain text to one person. */
export interface MailMessage {
  /**
   * Id of the message, stable across attempts, so that receivers can drop a duplicate. ASCII letters, digits, `_` and
   * `-`.
   */
  readonly id: string;
  readonly to: string;
  readonly subject: string;
  readonly text: string;
}

/** Answer of a mail server: accepted, or refused for this address for good. */
export type Sent = "sent" | "refused";

/** The way to a mail server. */
export interface Mail {
  /** Throws `MailUnsent` where the server neither took the message nor refused it for good; it may then be sent again. */
  send(message: MailMessage): Promise<Sent>;
}

/** Says no more of the cause than codes: servers repeat addresses in their answers, and the message goes into histories and logs. */
export class MailUnsent extends Error {
  override readonly name = "MailUnsent";
}
