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
 * Returns an invite's subject and text. The names were not chosen by the recipient, so they are quoted, on one line,
 * limited, and without anything that mail programs turn into a link: the only link is the service's.
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
