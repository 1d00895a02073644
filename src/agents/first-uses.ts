import { LRUCache } from "lru-cache";
import type { AgentDocument, AgentKeyRecord } from "../store/documents.ts";
import type { AgentGateway } from "../payments/ports.ts";

/** Cache of keys known to be used, until their agents' records show it some seconds later. */
const CACHED_KEYS = { max: 10_000, ttl: 30_000 } as const;

/** The part of an agent's record that says whether its actor has to be asked. */
type CreatedAgent = Pick<AgentDocument, "_id" | "createdByLineage"> & {
  readonly key: Pick<AgentKeyRecord, "id"> | null;
};

export interface FirstUse {
  readonly agentId: string;
  readonly keyId: string;
  readonly at: Date;
}

/**
 * Has the first request of an agent that a machine created confirmed by its actor before the request has any effect, so
 * that the request and a machine's archive of a never authenticated agent never both succeed. The record follows later;
 * until it shows the first use, each server asks the actor. No machine archives a person's agent.
 */
export class FirstUses {
  readonly #agents: AgentGateway;
  readonly #onAccepted: (use: FirstUse) => void;
  readonly #accepted = new LRUCache<string, true>(CACHED_KEYS);

  constructor(agents: AgentGateway, onAccepted: (use: FirstUse) => void) {
    this.#agents = agents;
    this.#onAccepted = onAccepted;
  }

  async accept({ _id, createdByLineage, key }: CreatedAgent): Promise<boolean> {
    if (key === null) return false;
    if (createdByLineage === null) return true;
    if (this.#accepted.has(key.id)) return true;
    const reply = await this.#agents.submit(_id, { kind: "authenticate", keyId: key.id });
    if (reply.kind !== "authenticated" || reply.firstUsedAt === null) return false;
    this.#accepted.set(key.id, true);
    this.#onAccepted({ agentId: _id, keyId: key.id, at: new Date(reply.firstUsedAt) });
    return true;
  }
}
