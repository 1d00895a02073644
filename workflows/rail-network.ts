import { proxyActivities, setCurrentDetails, sleep, workflowInfo } from "@temporalio/workflow";
import type { Activities } from "../activities/types.ts";
import type { RailNetworkInput } from "../src/messages/rail-network.ts";
import { sideTaskQueue } from "../src/messages/task-queues.ts";

/** Plays the effects of a sandbox's network on a payment after it was sent, each at its time. */
export async function railNetwork({ effects, rail, transactionId }: RailNetworkInput): Promise<void> {
  const { playNetworkEffect } = proxyActivities<Activities>({
    taskQueue: sideTaskQueue(workflowInfo().taskQueue, "settlements"),
    startToCloseTimeout: "20 seconds",
    scheduleToCloseTimeout: "1 hour",
    retry: { initialInterval: "1 second", backoffCoefficient: 2, maximumInterval: "1 minute" },
  });
  let afterSeconds = 0;
  for (const [number, effect] of effects.entries()) {
    setCurrentDetails(`Effect ${number + 1} of ${effects.length} on payment \`${transactionId}\`.`);
    await sleep((effect.afterSeconds - afterSeconds) * 1_000);
    ({ afterSeconds } = effect);
    await playNetworkEffect({ rail, transactionId, number });
  }
}
