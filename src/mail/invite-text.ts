import type { Role } from "../contract/types.ts";
import { inertText } from "./inert-text.ts";
import type { MailMessage } from "./mail.ts";

export interface InviteTextInput {
  readonly organization: string;
  readonly inviter: string;
  readonly role: Role;
  readonly link: string;
  readonly expiresAt: Date;
}

/**
 * An invite's subject and text. The names are not the recipient's own: quoted, on one line, bounded, and without anything
 * that a mail program makes a link of, so that the only link is ours.
 */
export function inviteText(input: InviteTextInput): Pick<MailMessage, "subject" | "text"> {
  const [organization, inviter] = [inertText(input.organization), inertText(input.inviter)];
  const until = `${input.expiresAt.toISOString().slice(0, 16).replace("T", " ")} UTC`;
  const article = input.role === "member" ? "a" : "an";
  return {
    subject: `Invitation to "${organization}"`,
    text: [
      `"${inviter}" invites you to the organization "${organization}" in Agent Spending Control, as ${article} ${input.role}.`,
      "",
      "To join, open this link and choose your name and a password:",
      input.link,
      "",
      `It is good once, until ${until}. Whoever has it can join in your place: do not pass it on.`,
      "If you did not expect this, ignore it. Nothing happens unless the link is used.",
      "",
    ].join("\n"),
  };
}
