/** Names and payloads of the workflow that mails an invite. */

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
