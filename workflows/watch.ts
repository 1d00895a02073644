import { continueAsNew, proxyActivities, setCurrentDetails, sleep, workflowInfo } from "@temporalio/workflow";
import type { Activities } from "../activities/types.ts";
import { perRail } from "../src/domain/ledger/payment.ts";
import type { Watch } from "../src/messages/watch.ts";
import { sideTaskQueue } from "../src/messages/task-queues.ts";

/** Maximum passes in one run. The workflow then continues as new, which keeps its history short. */
const PASSES_PER_RUN_MAX = 100;

const WHAT = {
  events: "Dispatches events to webhook deliveries.",
  deposits: "Watches for deposits into treasuries and wallets.",
  networks: "Books what payment networks did and no hint told.",
} as const satisfies Record<Watch, string>;

/** Interval at which networks' books are read, in case hints were lost. */
const NETWORKS_READ_EVERY = "1 hour";
/** Overlap of consecutive reads, since clocks differ and writes may be late. */
const OVERLAP_MS = 600_000;

/**
 * Keeps one worker on a watch permanently; another takes over if that worker dies. `since`: epoch milliseconds for each
 * rail, used only for networks.
 */
export async function watch(what: Watch, since = perRail(() => Date.now())): Promise<void> {
  const { bookNetworks, watchDeposits, watchEvents } = proxyActivities<Activities>({
    taskQueue: sideTaskQueue(workflowInfo().taskQueue, what === "networks" ? "settlements" : "webhooks"),
    // Networks' books take as long as there are changes; each feed is bounded.
    startToCloseTimeout: what === "networks" ? "1 day" : "10 minutes",
    heartbeatTimeout: what === "networks" ? "30 seconds" : "5 seconds",
    retry: { initialInterval: "1 second", backoffCoefficient: 1.5, maximumInterval: "10 seconds" },
  });
  setCurrentDetails(WHAT[what]);
  let bookedSince = since;
  for (let pass = 0; pass < PASSES_PER_RUN_MAX; pass += 1) {
    if (what === "events") await watchEvents();
    else if (what === "deposits") await watchDeposits();
    else {
      const read = bookedSince;
      const booked = await bookNetworks({ since: perRail((rail) => read[rail] - OVERLAP_MS) });
      bookedSince = perRail((rail) => Math.max(read[rail], booked[rail]));
      await sleep(NETWORKS_READ_EVERY);
    }
  }
  await continueAsNew<typeof watch>(what, bookedSince);
}
