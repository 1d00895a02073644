import {
  condition,
  defineQuery,
  defineSignal,
  proxyActivities,
  setCurrentDetails,
  setHandler,
  upsertSearchAttributes,
} from "@temporalio/workflow";
import type { Activities } from "../activities/types.ts";
import { STATE_QUERY } from "../src/messages/agent.ts";
import type { ApprovalEnd, ApprovalInput, ApprovalStateView } from "../src/messages/approval.ts";
import { RESOLVED_SIGNAL } from "../src/messages/approval.ts";
import { approvalStateKey } from "../src/messages/search-attributes.ts";
import { shownName } from "./shown-name.ts";

export const resolved = defineSignal<[ApprovalEnd]>(RESOLVED_SIGNAL);
export const approvalStateQuery = defineQuery<ApprovalStateView>(STATE_QUERY);

const { expireApproval } = proxyActivities<Activities>({
  startToCloseTimeout: "20 seconds",
  retry: { initialInterval: "1 second", backoffCoefficient: 2, maximumInterval: "1 minute" },
});

/**
 * Timer of a payment on hold. Asks the project's ledger to expire the payment at `expiresAt`, unless a signal ends the
 * wait. Only the ledger decides which of approve, deny, cancel and expiry came first; servers execute its decision.
 */
export async function approval(input: ApprovalInput): Promise<ApprovalEnd | null> {
  let end: ApprovalEnd | null = null;
  setHandler(resolved, (signalled) => void (end ??= signalled));
  setHandler(approvalStateQuery, () => ({
    state: end ?? "pending",
    expiresAt: new Date(input.expiresAt).toISOString(),
    transactionId: input.transactionId,
    texts: input.texts,
  }));
  setCurrentDetails(describe(input, "pending"));

  const { profile, transactionId } = input;
  const signalled = await condition(() => end !== null, Math.max(1, input.expiresAt - Date.now()));
  if (!signalled) end = (await expireApproval({ profile, transactionId })) ?? end;
  if (end === null) return null;
  upsertSearchAttributes([{ key: approvalStateKey, value: end }]);
  setCurrentDetails(describe(input, end));
  return end;
}

const describe = (input: ApprovalInput, state: ApprovalStateView["state"]): string =>
  [
    `**${state}**: payment \`${input.transactionId}\` of ${(input.amountCents / 100).toFixed(2)} USD by agent **${shownName(input.profile.name)}**`,
    `flagged by ${input.flaggedByRuleTypes.join(", ")}`,
    `decision window until ${new Date(input.expiresAt).toISOString()}`,
  ].join("\n\n");
