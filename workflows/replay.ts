import { continueAsNew, proxyActivities, setCurrentDetails } from "@temporalio/workflow";
import type { Activities } from "../activities/types.ts";
import type { ReplayInput } from "../src/messages/delivery.ts";

const { replayWebhooks } = proxyActivities<Activities>({
  startToCloseTimeout: "1 minute",
  retry: { initialInterval: "1 second", backoffCoefficient: 2, maximumInterval: "1 minute" },
});

/** Maximum steps in one run. The workflow then continues as new, which keeps its history short. */
const STEPS_PER_RUN_MAX = 200;

/** Sends an endpoint the events that it missed, in batches. */
export async function replay(input: ReplayInput): Promise<void> {
  for (let step = 0; step < STEPS_PER_RUN_MAX; step += 1) {
    setCurrentDetails(`Endpoint \`${input.endpointId}\` is being sent what it missed.`);
    if (await replayWebhooks(input)) {
      setCurrentDetails(`What endpoint \`${input.endpointId}\` missed is **queued**.`);
      return;
    }
  }
  await continueAsNew<typeof replay>(input);
}
