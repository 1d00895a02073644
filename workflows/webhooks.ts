import { continueAsNew, proxyActivities, setCurrentDetails, sleep } from "@temporalio/workflow";
import type { Activities } from "../activities/types.ts";
import type { ReplayInput, SecretExpiryInput } from "../src/messages/delivery.ts";

const { eraseWebhookSecret, replayWebhooks } = proxyActivities<Activities>({
  startToCloseTimeout: "1 minute",
  retry: { initialInterval: "1 second", backoffCoefficient: 2, maximumInterval: "1 minute" },
});

/** Maximum steps in one run. The workflow then continues as new, which keeps its history short. */
const STEPS_PER_RUN_MAX = 200;

/** Waits until a rotated signing secret has expired, then erases it. */
export async function secretExpiry(input: SecretExpiryInput): Promise<void> {
  setCurrentDetails(
    `The rotated secret of endpoint \`${input.endpointId}\` signs until ${new Date(input.expiresAt).toISOString()}.`,
  );
  await sleep(Math.max(1, input.expiresAt - Date.now()));
  await eraseWebhookSecret(input);
  setCurrentDetails(`The rotated secret of endpoint \`${input.endpointId}\` is **erased**.`);
}

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
