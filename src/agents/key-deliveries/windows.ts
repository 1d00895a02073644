import type { Collection, Db } from "mongodb";
import { isDuplicateKey } from "../../lib/duplicate-key.ts";
import { type AgentDocument, COLLECTIONS, type KeyDeliveryDocument } from "../../store/documents.ts";
import type { Clock, DeliveryWindows } from "../../payments/ports.ts";
import type { DeliveryKeys } from "./delivery-keys.ts";

/** Maximum reads of a create's record; each retry means a concurrent write. */
const READS_MAX = 3;

export class MongoDeliveryWindows implements DeliveryWindows {
  readonly #agents: Collection<AgentDocument>;
  readonly #deliveries: Collection<KeyDeliveryDocument>;
  readonly #keys: DeliveryKeys;
  readonly #clock: Clock;

  constructor(db: Db, keys: DeliveryKeys, clock: Clock) {
    this.#deliveries = db.collection<KeyDeliveryDocument>(COLLECTIONS.keyDeliveries, {
      readPreference: "primary",
    });
    this.#agents = db.collection<AgentDocument>(COLLECTIONS.agents, { readPreference: "primary" });
    this.#keys = keys;
    this.#clock = clock;
  }

  async close(agentId: string): Promise<"committed" | "discarded"> {
    // The sealing key is destroyed first: if the rest has to be repeated, the sealed key can't be opened any more.
    await this.#keys.destroy(agentId);
    const end = await this.#conclude(agentId);
    // A late create may have recreated the key meanwhile; from now on none can commit.
    await this.#keys.destroy(agentId);
    return end;
  }

  async #conclude(agentId: string): Promise<"committed" | "discarded"> {
    const at = this.#clock();
    for (let reads = 0; reads < READS_MAX; reads += 1) {
      const change = { $set: { state: "closed" as const, sealed: null, at, endedAt: at } };
      const closed = await this.#deliveries.updateOne({ _id: agentId, state: "open" }, change);
      if (closed.matchedCount > 0) return "committed";
      const found = await this.#deliveries.findOne({ _id: agentId });
      if (found?.state === "closed") return "committed";
      if (found?.state === "discarded") return "discarded";
      // The agent exists; its delivery record was removed by retention long after the window.
      if (found === null && (await this.#isCommitted(agentId))) return "committed";
      if (found === null && (await this.#discard(agentId, at))) return "discarded";
    }
    throw new Error(`the create of agent ${agentId} could not be concluded`);
  }

  async #isCommitted(agentId: string): Promise<boolean> {
    return (await this.#agents.findOne({ _id: agentId }, { projection: { _id: 1 } })) !== null;
  }

  /** Inserts a record in place of the create's own; returns false if the create's was there first. */
  async #discard(agentId: string, at: Date): Promise<boolean> {
    try {
      await this.#deliveries.insertOne({ _id: agentId, state: "discarded", sealed: null, at, endedAt: at });
      return true;
    } catch (error) {
      if (isDuplicateKey(error)) return false;
      throw error;
    }
  }
}
