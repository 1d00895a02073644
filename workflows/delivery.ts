import {
  CancellationScope,
  defineSignal,
  isCancellation,
  proxyActivities,
  setCurrentDetails,
  setHandler,
  upsertSearchAttributes,
  workflowInfo,
} from "@temporalio/workflow";
import type { Activities } from "../activities/types.ts";
import { type DeliveryEnd, type DeliveryInput, DROPPED_SIGNAL } from "../src/messages/delivery.ts";
import { deliveryStateKey } from "../src/messages/search-attributes.ts";
import { sideTaskQueue } from "../src/messages/task-queues.ts";

export const dropped = defineSignal(DROPPED_SIGNAL);

/**
 * Delivers an event to an endpoint. One activity makes an attempt each time Temporal retries it; its failure says when
 * the next attempt is due. Any other failure, such as an unreachable database, is retried soon and does not count as an
 * attempt.
 */
export async function delivery(input: DeliveryInput): Promise<DeliveryEnd> {
  const { deliverWebhook } = proxyActivities<Activities>({
    taskQueue: sideTaskQueue(workflowInfo().taskQueue, "webhooks"),
    startToCloseTimeout: "40 seconds",
    retry: { initialInterval: "1 second", backoffCoefficient: 2, maximumInterval: "1 minute" },
  });
  let isDropped = false;
  const sending = new CancellationScope();
  setHandler(dropped, () => {
    isDropped = true;
    sending.cancel();
  });
  setCurrentDetails(describe(input, "pending"));
  const end = await sending
    .run(() => deliverWebhook(input))
    .catch((error: unknown): DeliveryEnd => {
      if (isDropped && isCancellation(error)) return "dropped";
      throw error;
    });
  upsertSearchAttributes([{ key: deliveryStateKey, value: end }]);
  setCurrentDetails(describe(input, end));
  return end;
}

const describe = ({ deliveryId, endpointId, eventType }: DeliveryInput, state: string): string =>
  `**${state}**: \`${eventType}\` to endpoint \`${endpointId}\` as \`${deliveryId}\``;
