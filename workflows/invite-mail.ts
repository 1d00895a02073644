import { proxyActivities, setCurrentDetails, workflowInfo } from "@temporalio/workflow";
import type { Activities } from "../activities/types.ts";
import type { InviteMailEnd, InviteMailInput } from "../src/messages/mail.ts";
import { sideTaskQueue } from "../src/messages/task-queues.ts";

/**
 * Mails an invite. One activity is retried until the mail server has accepted the mail or rejected it permanently, or
 * until the activity finds that the invite can no longer be accepted. It shares the queue of webhooks' receivers, so
 * slow mail servers do not delay payments.
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
