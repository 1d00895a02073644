import { WorkflowIdReusePolicy } from "@temporalio/client";
import type { HeldPayment } from "../domain/approval-mails.ts";
import {
  APPROVAL_MAILS_WORKFLOW,
  approvalMailsWorkflowId,
  HELD_SIGNAL,
  INVITE_MAIL_WORKFLOW,
  type InviteMailInput,
  inviteMailWorkflowId,
  type MailedPerson,
} from "../messages/mail.ts";
import { organizationSearchAttributes } from "../messages/search-attributes.ts";
import type { TemporalCalls } from "./calls.ts";

/** Starts the workflow that mails an invite. Idempotent. Throws `ActorUnavailable`. */
export const startInviteMail = (calls: TemporalCalls, input: InviteMailInput): Promise<void> =>
  calls.startOnce(INVITE_MAIL_WORKFLOW, inviteMailWorkflowId(input), [input], {
    typedSearchAttributes: organizationSearchAttributes(input.organizationId),
    staticSummary: "Mails an invite",
  });

/**
 * Signals held payments to the workflow that mails a person, starting it if it does not run. Throws `ActorUnavailable`;
 * rethrows errors that waiting does not fix.
 */
export async function signalHeld(
  calls: TemporalCalls,
  person: MailedPerson,
  held: readonly HeldPayment[],
): Promise<void> {
  await calls.bounded(() =>
    calls.client.workflow.signalWithStart(APPROVAL_MAILS_WORKFLOW, {
      taskQueue: calls.once.taskQueue,
      workflowId: approvalMailsWorkflowId(person),
      workflowIdReusePolicy: WorkflowIdReusePolicy.ALLOW_DUPLICATE,
      args: [person],
      signal: HELD_SIGNAL,
      signalArgs: [held],
      typedSearchAttributes: organizationSearchAttributes(person.organizationId),
      staticSummary: "Mails a person about payments on hold",
    }),
  );
}
