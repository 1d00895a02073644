import type { ApprovalSnapshot } from "../store/documents.ts";
import { inertText } from "./inert-text.ts";
import type { MailMessage } from "./mail.ts";

export type MailedApproval = Pick<
  ApprovalSnapshot,
  | "_id"
  | "agentName"
  | "amountCents"
  | "currency"
  | "rail"
  | "recipient"
  | "purpose"
  | "flaggedByRuleTypes"
  | "expiresAt"
>;

/** Maximum length of a payment's recipient and purpose, so neither is cut. */
const RECIPIENT_CHARACTERS_MAX = 200;
const PURPOSE_CHARACTERS_MAX = 500;

interface Place {
  readonly organization: string;
  /** Address of the dashboard, without a trailing slash. */
  readonly baseUrl: string;
}

type Text = Pick<MailMessage, "subject" | "text">;

/** Returns subject and text of a mail about one payment on hold. Text written by others is quoted and inert. */
export function approvalText(approval: MailedApproval, { baseUrl, organization }: Place): Text {
  return {
    subject: `Approval needed: ${amountOf(approval)} to "${recipientOf(approval)}"`,
    text: [
      `A payment waits for approval in the organization "${inertText(organization)}".`,
      "",
      ...linesOf(approval),
      "",
      "To decide, open this page and sign in:",
      pageOf(approval, baseUrl),
      "",
      ...footer(baseUrl),
    ].join("\n"),
  };
}

/** Returns a mail about several payments: the listed ones, and the total number. */
export function digestText(
  listed: readonly MailedApproval[],
  count: number,
  { baseUrl, organization }: Place,
): Text {
  const more = count - listed.length;
  return {
    subject: `Approval needed: ${count} payments`,
    text: [
      `${count} payments wait for approval in the organization "${inertText(organization)}".`,
      "",
      ...listed.flatMap((approval) => [...linesOf(approval), `Page: ${pageOf(approval, baseUrl)}`, ""]),
      ...(more > 0 ? [`${more} more are not listed here.`, ""] : []),
      "All payments that wait for approval:",
      `${baseUrl}/approvals`,
      "",
      ...footer(baseUrl),
    ].join("\n"),
  };
}

const footer = (baseUrl: string): readonly string[] => [
  "Opening a link decides nothing. Names and purposes are the words of agents and people, not ours.",
  "You receive this because mails about approvals are switched on in your settings:",
  `${baseUrl}/settings/security`,
  "",
];

const linesOf = (approval: MailedApproval): readonly string[] => [
  `Amount: ${amountOf(approval)} (${approval.rail})`,
  `Recipient: "${recipientOf(approval)}"`,
  `Agent: "${inertText(approval.agentName)}"`,
  `Purpose: "${inertText(approval.purpose, PURPOSE_CHARACTERS_MAX)}"`,
  `Flagged by: ${approval.flaggedByRuleTypes.join(", ")}`,
  `Decide until: ${approval.expiresAt.toISOString().slice(0, 16).replace("T", " ")} UTC`,
];

const recipientOf = ({ recipient }: MailedApproval): string => inertText(recipient, RECIPIENT_CHARACTERS_MAX);

const AMOUNT = new Intl.NumberFormat("en-US", { minimumFractionDigits: 2 });

const amountOf = ({ amountCents, currency }: MailedApproval): string =>
  `${AMOUNT.format(amountCents / 100)} ${currency}`;

const pageOf = ({ _id }: MailedApproval, baseUrl: string): string => `${baseUrl}/approvals/${_id}`;
