import { continueAsNew, proxyActivities, setCurrentDetails, workflowInfo } from "@temporalio/workflow";
import type { Activities } from "../activities/types.ts";
import type { Watch } from "../src/messages/delivery.ts";
import { sideTaskQueue } from "../src/messages/task-queues.ts";

/** Passes in one run; then the workflow continues as new, so that its history stays small. */
const PASSES_PER_RUN_MAX = 100;

const WHAT = {
  events: "Dispatches events to webhook deliveries.",
  deposits: "Watches for deposits into treasuries.",
} as const satisfies Record<Watch, string>;

/** Keeps one worker at a time on a watch, for good; another takes over when it dies. */
export async function watch(what: Watch): Promise<void> {
  const { watchDeposits, watchEvents } = proxyActivities<Activities>({
    taskQueue: sideTaskQueue(workflowInfo().taskQueue, "webhooks"),
    startToCloseTimeout: "10 minutes",
    heartbeatTimeout: "5 seconds",
    retry: { initialInterval: "1 second", backoffCoefficient: 1.5, maximumInterval: "10 seconds" },
  });
  setCurrentDetails(WHAT[what]);
  for (let pass = 0; pass < PASSES_PER_RUN_MAX; pass += 1) {
    await (what === "events" ? watchEvents() : watchDeposits());
  }
  await continueAsNew<typeof watch>(what);
}
