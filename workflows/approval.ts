import {
  condition,
  defineQuery,
  defineSignal,
  proxyActivities,
  setCurrentDetails,
  setHandler,
  upsertSearchAttributes,
  workflowInfo,
} from "@temporalio/workflow";
import type { Activities } from "../activities/types.ts";
import type { Payment } from "../src/domain/ledger/payment.ts";
import { STATE_QUERY } from "../src/messages/agent.ts";
import type { ApprovalInput, ApprovalResult, ApprovalStateView } from "../src/messages/approval.ts";
import { RESOLVED_SIGNAL } from "../src/messages/approval.ts";
import { approvalStateKey } from "../src/messages/search-attributes.ts";
import { sideTaskQueue } from "../src/messages/task-queues.ts";
import { shownName } from "./shown-name.ts";

export const resolved = defineSignal<[Payment]>(RESOLVED_SIGNAL);
export const approvalStateQuery = defineQuery<ApprovalStateView>(STATE_QUERY);

const ACTIVITY_OPTIONS = {
  startToCloseTimeout: "20 seconds",
  retry: { initialInterval: "1 second", backoffCoefficient: 2, maximumInterval: "1 minute" },
} as const;

const { expireApproval } = proxyActivities<Activities>(ACTIVITY_OPTIONS);

/**
 * Waits with a payment on hold: holds the timer for `expiresAt`, and executes what a person has approved. The project's
 * ledger alone decides which of approve, deny, cancel and expiry came first; this workflow is signalled.
 */
export async function approval(input: ApprovalInput): Promise<ApprovalResult | null> {
  let payment: Payment | null = null;
  let state: ApprovalStateView["state"] = "pending";
  const show = (now: ApprovalStateView["state"]): void => {
    state = now;
    upsertSearchAttributes([{ key: approvalStateKey, value: now }]);
    setCurrentDetails(describe(input, now));
  };
  setHandler(resolved, (signalled) => void (payment ??= signalled));
  setHandler(approvalStateQuery, () => ({
    state,
    expiresAt: new Date(input.expiresAt).toISOString(),
    transactionId: input.transactionId,
    texts: input.texts,
  }));
  setCurrentDetails(describe(input, state));

  const { profile, transactionId } = input;
  const signalled = await condition(() => payment !== null, Math.max(1, input.expiresAt - Date.now()));
  if (!signalled) payment = (await expireApproval({ profile, transactionId })) ?? payment;
  if (payment === null) return null;

  if (payment.phase === "sending") {
    show("executing");
    const taskQueue = sideTaskQueue(workflowInfo().taskQueue, payment.request.rail);
    const { executeApproved } = proxyActivities<Activities>({ ...ACTIVITY_OPTIONS, taskQueue });
    payment = await executeApproved({ profile, payment });
  }
  show(payment.approval?.resolution ?? "pending");
  return payment;
}

const describe = (input: ApprovalInput, state: string): string =>
  [
    `**${state}**: payment \`${input.transactionId}\` of ${(input.amountCents / 100).toFixed(2)} USD by agent **${shownName(input.profile.name)}**`,
    `flagged by ${input.flaggedByRuleTypes.join(", ")}`,
    `decision window until ${new Date(input.expiresAt).toISOString()}`,
  ].join("\n\n");
