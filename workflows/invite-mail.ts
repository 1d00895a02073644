import { proxyActivities, setCurrentDetails, workflowInfo } from "@temporalio/workflow";
import type { Activities } from "../activities/types.ts";
import type { InviteMailEnd, InviteMailInput } from "../src/messages/mail.ts";
import { sideTaskQueue } from "../src/messages/task-queues.ts";

/**
 * Mails an invite: one activity, which is tried until the mail server has taken the mail or refused it for good, or the invited person can't accept the
 * invite any more, which it sees itself. Mail servers are waited for where receivers of webhooks are, and payments are not.
 */
export async function inviteMail(input: InviteMailInput): Promise<InviteMailEnd> {
  const { mailInvite } = proxyActivities<Activities>({
    taskQueue: sideTaskQueue(workflowInfo().taskQueue, "webhooks"),
    startToCloseTimeout: "1 minute",
    retry: { initialInterval: "1 second", backoffCoefficient: 3, maximumInterval: "15 minutes" },
  });
  setCurrentDetails(`Invite \`${input.inviteId}\` is being mailed.`);
  const end = await mailInvite(input);
  setCurrentDetails(`Invite \`${input.inviteId}\`: **${end}**.`);
  return end;
}
