import type { ApprovalMail, ApprovalMailState } from "../domain/approval-mails.ts";

/** Names and payloads of the workflows that send mail: an invite, or news of held payments to a person. */

export const INVITE_MAIL_WORKFLOW = "inviteMail";
export const inviteMailWorkflowId = ({ inviteId }: Pick<InviteMailInput, "inviteId">): string =>
  `invite-mail/${inviteId}`;

/** Contains neither the address nor the link, which is sealed in the invite's record. */
export interface InviteMailInput {
  readonly inviteId: string;
  readonly organizationId: string;
}

/**
 * `refused`: the mail server permanently rejects this address. `expired`: the mail server accepted no mail while the
 * invite was valid. `gone`: the invite was accepted, withdrawn or replaced meanwhile.
 */
export type InviteMailEnd = "mailed" | "refused" | "expired" | "gone";

export const APPROVAL_MAILS_WORKFLOW = "approvalMails";

export interface MailedPerson {
  readonly organizationId: string;
  readonly userId: string;
}

export const approvalMailsWorkflowId = ({ organizationId, userId }: MailedPerson): string =>
  `approval-mails/${organizationId}/${userId}`;

export interface ApprovalMailsInput extends MailedPerson {
  /** State of the previous run; missing in a first run. */
  readonly state?: ApprovalMailState;
}

export const HELD_SIGNAL = "held";

/** Contains only ids and times; the activity reads the records. */
export interface ApprovalMailInput extends MailedPerson {
  readonly mail: ApprovalMail;
}
