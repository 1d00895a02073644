import { createSecretKey, hkdfSync } from "node:crypto";
import type { ClientSession, Collection } from "mongodb";
import type { KeyDeliveryDocument } from "../../store/documents.ts";
import type { DeliveryKeys } from "./delivery-keys.ts";
import { isDeliverable } from "../../domain/agent/access.ts";
import type { DerivedKey, MasterKey } from "../../secrets/master-key.ts";
import { Sealer } from "../../secrets/sealer.ts";

export interface KeyDeliveriesDependencies {
  readonly deliveries: Collection<KeyDeliveryDocument>;
  readonly deliveryKeys: DeliveryKeys;
  readonly masterKey: MasterKey;
  readonly clock: () => Date;
}

const PURPOSE = "first-agent-key";
const SIZE_BYTES = 32;

/**
 * Agents' first keys while they may be delivered again. Each is sealed in MongoDB under a key derived from three: the
 * agent's delivery key outside of MongoDB, which is destroyed when the window ends, the master key, and the caller's
 * idempotency key, which is not stored.
 */
export class KeyDeliveries {
  readonly #dependencies: KeyDeliveriesDependencies;

  constructor(dependencies: KeyDeliveriesDependencies) {
    this.#dependencies = dependencies;
  }

  async seal(agentId: string, idempotencyKey: string, apiKey: string): Promise<string> {
    const deliveryKey = await this.#dependencies.deliveryKeys.obtain(agentId);
    return new Sealer(this.#sealingKeys(deliveryKey, idempotencyKey)).seal(PURPOSE, agentId, apiKey);
  }

  /** Inserts the delivery in the create's transaction. A duplicate key means that the create was given up. */
  async begin(agentId: string, sealed: string | null, session: ClientSession): Promise<void> {
    const { clock, deliveries } = this.#dependencies;
    await deliveries.insertOne({ _id: agentId, state: "open", sealed, at: clock() }, { session });
  }

  async isDiscarded(agentId: string): Promise<boolean> {
    const found = await this.#dependencies.deliveries.findOne({ _id: agentId }, { projection: { state: 1 } });
    return found?.state === "discarded";
  }

  /** Returns the key again; null if an input for opening it is gone, or the window has ended by the time it is read. */
  async open(agentId: string, idempotencyKey: string, until: Date): Promise<string | null> {
    const { clock, deliveries, deliveryKeys } = this.#dependencies;
    const [delivery, deliveryKey] = await Promise.all([
      deliveries.findOne({ _id: agentId }),
      deliveryKeys.read(agentId),
    ]);
    const sealed = delivery?.sealed ?? null;
    if (sealed === null || deliveryKey === null) return null;
    // The read took time; a response may meanwhile have said that the key is no longer deliverable.
    if (!isDeliverable(until.getTime(), clock().getTime())) return null;
    return new Sealer(this.#sealingKeys(deliveryKey, idempotencyKey)).tryOpen(PURPOSE, agentId, sealed);
  }

  /** Destroys the delivery key of a create that failed. */
  forget(agentId: string): Promise<void> {
    return this.#dependencies.deliveryKeys.destroy(agentId);
  }

  #sealingKeys(deliveryKey: Buffer, idempotencyKey: string): readonly DerivedKey[] {
    const info = Buffer.from(idempotencyKey, "utf8");
    return this.#dependencies.masterKey.deriveKeys("key-delivery").map((each) => {
      // HKDF limits `info` to 1,024 bytes, which exceeds any idempotency key.
      const bytes = hkdfSync("sha256", deliveryKey, each.key.export(), info, SIZE_BYTES);
      return { ...each, key: createSecretKey(Buffer.from(bytes)) };
    });
  }
}
