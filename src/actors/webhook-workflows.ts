import { WorkflowIdConflictPolicy, WorkflowIdReusePolicy, WorkflowNotFoundError } from "@temporalio/client";
import type { WebhookWorkflows } from "../webhooks/delivery/ports.ts";
import {
  DELIVERY_WORKFLOW,
  type DeliveryEnd,
  type DeliveryInput,
  deliveryWorkflowId,
  DROPPED_SIGNAL,
  REPLAY_WORKFLOW,
  type ReplayInput,
  replayWorkflowId,
  SECRET_EXPIRY_WORKFLOW,
  type SecretExpiryInput,
  secretExpiryWorkflowId,
} from "../messages/delivery.ts";
import { deliverySearchAttributes } from "../messages/search-attributes.ts";
import { type Watch, WATCH_WORKFLOW, watchWorkflowId } from "../messages/watch.ts";
import type { TemporalCalls } from "./calls.ts";

export class TemporalWebhooks implements WebhookWorkflows {
  readonly #calls: TemporalCalls;

  constructor(calls: TemporalCalls) {
    this.#calls = calls;
  }

  startDelivery(input: DeliveryInput): Promise<void> {
    return this.#calls.startOnce(DELIVERY_WORKFLOW, deliveryWorkflowId(input), [input], {
      typedSearchAttributes: deliverySearchAttributes(input, "pending"),
      staticSummary: `Delivers ${input.eventType}`,
    });
  }

  async dropDelivery(delivery: Pick<DeliveryInput, "deliveryId" | "run">): Promise<void> {
    const handle = this.#calls.client.workflow.getHandle(deliveryWorkflowId(delivery));
    try {
      await this.#calls.bounded(() => handle.signal(DROPPED_SIGNAL));
    } catch (error) {
      if (!(error instanceof WorkflowNotFoundError)) throw error;
    }
  }

  /** Returns how a delivery ended; null if that takes longer than `withinMs`. */
  deliveryEnd(
    delivery: Pick<DeliveryInput, "deliveryId" | "run">,
    withinMs: number,
  ): Promise<DeliveryEnd | null> {
    return this.#calls.resultWithin(deliveryWorkflowId(delivery), withinMs);
  }

  startReplay(input: ReplayInput): Promise<void> {
    return this.#calls.startOnce(REPLAY_WORKFLOW, replayWorkflowId(input.replayId), [input], {
      staticSummary: `Sends endpoint ${input.endpointId} what it missed`,
    });
  }

  startSecretExpiry(input: SecretExpiryInput): Promise<void> {
    return this.#calls.startOnce(SECRET_EXPIRY_WORKFLOW, secretExpiryWorkflowId(input), [input], {
      staticSummary: `Erases a rotated secret of endpoint ${input.endpointId}`,
    });
  }

  /** Starts a watch, which runs for good. Idempotent. */
  async startWatch(watch: Watch): Promise<void> {
    const { client, once } = this.#calls;
    await this.#calls.bounded(() =>
      client.workflow.start(WATCH_WORKFLOW, {
        taskQueue: once.taskQueue,
        workflowId: watchWorkflowId(once.taskQueue, watch),
        workflowIdConflictPolicy: WorkflowIdConflictPolicy.USE_EXISTING,
        workflowIdReusePolicy: WorkflowIdReusePolicy.ALLOW_DUPLICATE,
        args: [watch],
        staticSummary: `Watches ${watch}`,
      }),
    );
  }
}
