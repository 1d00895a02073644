import type { ClientSession, Document, MongoClient } from "mongodb";
import { DISABLE_AFTER_FAILURES } from "../../domain/webhooks/attempts.ts";
import type { AccessProofs } from "../../secrets/access-proofs.ts";
import { TRANSACTION_OPTIONS } from "../../store/transactions.ts";
import type { Clock } from "../../payments/ports.ts";
import {
  ATTEMPTS_RETAINED_MAX,
  type AttemptRecord,
  type DeliveryDocument,
  type EndpointDocument,
  type WebhookCollections,
} from "../../store/webhook-documents.ts";

export interface OutcomeDependencies {
  readonly accessProofs: Pick<AccessProofs, "changed" | "genuine">;
  readonly client: MongoClient;
  readonly webhooks: WebhookCollections;
  readonly clock: Clock;
}

/**
 * Records the outcomes of attempts, and counts an endpoint's failures. Each delivery's failure is counted once: the
 * status changes in the transaction that counts it.
 */
export class DeliveryOutcomes {
  readonly #dependencies: OutcomeDependencies;

  constructor(dependencies: OutcomeDependencies) {
    this.#dependencies = dependencies;
  }

  /** Records success, even if the endpoint was disabled meanwhile. The count is reset before the delivery ends. */
  async succeeded(delivery: DeliveryDocument, attempt: AttemptRecord): Promise<boolean> {
    const { deliveries, endpoints } = this.#dependencies.webhooks;
    if (!delivery.isTest) {
      const failing = { _id: delivery.endpointId, isActive: true, consecutiveFailures: { $gt: 0 } };
      await endpoints.updateOne(failing, { $set: { consecutiveFailures: 0 } });
    }
    const { matchedCount } = await deliveries.updateOne(
      { ...attemptOf(delivery), status: { $in: ["pending", "dropped"] } },
      withAttempt(attempt, { status: "succeeded", nextAttemptAt: null, pendingAction: "$$REMOVE" }),
    );
    return matchedCount === 1;
  }

  /** Records a failed attempt that is followed by another. False if the delivery must not go on. */
  async retried(delivery: DeliveryDocument, attempt: AttemptRecord, nextAttemptAt: Date): Promise<boolean> {
    const { deliveries } = this.#dependencies.webhooks;
    const { matchedCount } = await deliveries.updateOne(
      { ...attemptOf(delivery), status: "pending" },
      withAttempt(attempt, { nextAttemptAt }),
    );
    return matchedCount === 1;
  }

  /** Records the failure of the last attempt. The tenth consecutive failed delivery disables the endpoint. */
  async failed(delivery: DeliveryDocument, attempt: AttemptRecord): Promise<boolean> {
    const { client, webhooks } = this.#dependencies;
    return client.withSession((session) =>
      session.withTransaction(async (own) => {
        const { matchedCount } = await webhooks.deliveries.updateOne(
          { ...attemptOf(delivery), status: "pending" },
          withAttempt(attempt, { status: "failed", nextAttemptAt: null }),
          { session: own },
        );
        if (matchedCount === 1 && !delivery.isTest) await this.#count(delivery, own);
        return matchedCount === 1;
      }, TRANSACTION_OPTIONS),
    );
  }

  /** Records that nothing more of the delivery is sent. */
  async dropped({ _id, run }: DeliveryDocument): Promise<void> {
    const { deliveries } = this.#dependencies.webhooks;
    await deliveries.updateOne(
      { _id, run, status: "pending" },
      { $set: { status: "dropped", nextAttemptAt: null }, $unset: { pendingAction: "" } },
    );
  }

  async #count({ _id, endpointId, run }: DeliveryDocument, session: ClientSession): Promise<void> {
    const { accessProofs, clock, webhooks } = this.#dependencies;
    const counted = await webhooks.endpoints.findOneAndUpdate(
      { _id: endpointId, isActive: true },
      { $inc: { consecutiveFailures: 1 } },
      { session, returnDocument: "after" },
    );
    if (counted === null || counted.consecutiveFailures < DISABLE_AFTER_FAILURES) return;
    const at = clock();
    const disabled = { at, reason: "consecutive_failures", by: { deliveryId: _id, run } } as const;
    const off = { isActive: false, disabled, updatedAt: at };
    const isGenuine = accessProofs.genuine("webhook", counted) !== null;
    const $set = isGenuine ? accessProofs.changed("webhook", counted, off) : off;
    await webhooks.endpoints.updateOne({ _id: endpointId }, { $set }, { session });
    await dropQueued(webhooks, endpointId, session);
  }
}

/** Drops deliveries that wait for an attempt; the dispatcher signals their workflows. */
export async function dropQueued(
  { deliveries }: WebhookCollections,
  endpointId: string,
  session: ClientSession,
): Promise<void> {
  await deliveries.updateMany(
    { endpointId, status: "pending", isTest: false },
    { $set: { status: "dropped", nextAttemptAt: null, pendingAction: "drop" } },
    { session },
  );
}

export const isDisabledBy = (
  { disabled }: EndpointDocument,
  { _id, run }: Pick<DeliveryDocument, "_id" | "run">,
): boolean => disabled?.by?.deliveryId === _id && disabled.by.run === run;

/** Matches the delivery while this attempt is not recorded. */
const attemptOf = ({ _id, run, runAttempts }: DeliveryDocument) => ({ _id, run, runAttempts });

/** Returns an update that adds an attempt and keeps the newest. A pipeline, since it reads the array it extends. */
const withAttempt = (attempt: AttemptRecord, change: object): Document[] => [
  {
    $set: {
      attempts: {
        $slice: [{ $concatArrays: ["$attempts", [{ $literal: attempt }]] }, -ATTEMPTS_RETAINED_MAX],
      },
      runAttempts: { $add: ["$runAttempts", 1] },
      attemptCount: { $add: ["$attemptCount", 1] },
      ...change,
    },
  },
];
