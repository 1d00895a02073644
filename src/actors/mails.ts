import { INVITE_MAIL_WORKFLOW, type InviteMailInput, inviteMailWorkflowId } from "../messages/mail.ts";
import { organizationSearchAttributes } from "../messages/search-attributes.ts";
import type { TemporalCalls } from "./calls.ts";

/** Starts the workflow that mails an invite; once, however often it is called. Throws `ActorUnavailable`. */
export const startInviteMail = (calls: TemporalCalls, input: InviteMailInput): Promise<void> =>
  calls.startOnce(INVITE_MAIL_WORKFLOW, inviteMailWorkflowId(input), [input], {
    typedSearchAttributes: organizationSearchAttributes(input.organizationId),
    staticSummary: "Mails an invite",
  });
