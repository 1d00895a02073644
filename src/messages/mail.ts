import type { ApprovalMail, ApprovalMailState } from "../domain/approval-mails.ts";

/** Names and payloads of the workflows that mail: an invite, or a person about payments on hold. */

export const INVITE_MAIL_WORKFLOW = "inviteMail";
export const inviteMailWorkflowId = ({ inviteId }: Pick<InviteMailInput, "inviteId">): string =>
  `invite-mail/${inviteId}`;

/** Neither the address nor the link is in it: the link lies sealed in the invite's record. */
export interface InviteMailInput {
  readonly inviteId: string;
  readonly organizationId: string;
}

/**
 * `refused`: the mail server takes none for this address, for good; `expired`: it took none as long as the invite was good; `gone`: the
 * invite was accepted, withdrawn or replaced meanwhile.
 */
export type InviteMailEnd = "mailed" | "refused" | "expired" | "gone";

export const APPROVAL_MAILS_WORKFLOW = "approvalMails";

/** A person of an organization. */
export interface MailedPerson {
  readonly organizationId: string;
  readonly userId: string;
}

export const approvalMailsWorkflowId = ({ organizationId, userId }: MailedPerson): string =>
  `approval-mails/${organizationId}/${userId}`;

export interface ApprovalMailsInput extends MailedPerson {
  /** State of the run before; left out in a first run. */
  readonly state?: ApprovalMailState;
}

/** Payments were put on hold. */
export const HELD_SIGNAL = "held";

/** Ids and times alone: the activity reads the records. */
export interface ApprovalMailInput extends MailedPerson {
  readonly mail: ApprovalMail;
}
