import {
  continueAsNew,
  defineQuery,
  proxyActivities,
  setCurrentDetails,
  setHandler,
  sleep,
  workflowInfo,
} from "@temporalio/workflow";
import type { Activities } from "../activities/types.ts";
import { type Payment, textsIn } from "../src/domain/ledger/payment.ts";
import type { SettlementInput, SettlementStateView } from "../src/messages/settlement.ts";
import { STATE_QUERY } from "../src/messages/agent.ts";
import { SETTLEMENT_POLL_SECONDS } from "../src/messages/settlement.ts";
import { sideTaskQueue } from "../src/messages/task-queues.ts";
import { shownName } from "./shown-name.ts";

export const settlementStateQuery = defineQuery<SettlementStateView>(STATE_QUERY);

/** Maximum queries to the rail in one run. The workflow then continues as new, which keeps its history short. */
const POLLS_PER_RUN_MAX = 200;

/**
 * Follows a payment that its rail has accepted but not finished, until it is final. Queries at increasing intervals and
 * never sends again.
 */
export async function settlement(input: SettlementInput): Promise<Payment> {
  const { followPayment } = proxyActivities<Activities>({
    taskQueue: sideTaskQueue(workflowInfo().taskQueue, "settlements"),
    startToCloseTimeout: "20 seconds",
    retry: { initialInterval: "1 second", backoffCoefficient: 2, maximumInterval: "1 minute" },
  });
  const { profile } = input;
  let payment = input.payment;
  setHandler(settlementStateQuery, () => {
    const { phase, request, status } = payment;
    return { status, phase, texts: textsIn(request) };
  });
  for (let poll = 0; poll < POLLS_PER_RUN_MAX; poll += 1) {
    setCurrentDetails(
      `Payment \`${payment.request.transactionId}\` of agent **${shownName(profile.name)}** is **${payment.status}**, ${payment.phase} on the ${payment.request.rail} rail.`,
    );
    if (payment.phase === "done") return payment;
    await sleep(pollSeconds(input.polls + poll) * 1_000);
    payment = await followPayment({ profile, payment });
  }
  return continueAsNew<typeof settlement>({ profile, payment, polls: input.polls + POLLS_PER_RUN_MAX });
}

function pollSeconds(polls: number): number {
  const last = SETTLEMENT_POLL_SECONDS.length - 1;
  return SETTLEMENT_POLL_SECONDS[Math.min(polls, last)] ?? SETTLEMENT_POLL_SECONDS[last] ?? 900;
}
