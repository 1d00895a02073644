import { proxyActivities, setCurrentDetails, sleep } from "@temporalio/workflow";
import type { Activities } from "../activities/types.ts";
import type { SecretExpiryInput } from "../src/messages/delivery.ts";

const { eraseWebhookSecret } = proxyActivities<Activities>({
  startToCloseTimeout: "1 minute",
  retry: { initialInterval: "1 second", backoffCoefficient: 2, maximumInterval: "1 minute" },
});

/** Waits until a rotated signing secret has expired, then erases it. */
export async function secretExpiry(input: SecretExpiryInput): Promise<void> {
  setCurrentDetails(
    `The rotated secret of endpoint \`${input.endpointId}\` signs until ${new Date(input.expiresAt).toISOString()}.`,
  );
  await sleep(Math.max(1, input.expiresAt - Date.now()));
  await eraseWebhookSecret(input);
  setCurrentDetails(`The rotated secret of endpoint \`${input.endpointId}\` is **erased**.`);
}
