import { LRUCache } from "lru-cache";
import type { AgentDocument } from "../store/documents.ts";
import type { AgentGateway } from "../payments/ports.ts";

/** Cache of keys known to be used, until their agents' records show it some seconds later. */
const CACHED_KEYS = { max: 10_000, ttl: 30_000 } as const;

export interface FirstUse {
  readonly agentId: string;
  readonly keyId: string;
  readonly at: Date;
}

/**
 * Has an agent's first request confirmed by its actor before the request has any effect, so that the request and a
 * machine's archive of a never authenticated agent never both succeed. The record follows later; until it shows the
 * first use, each server asks the actor.
 */
export class FirstUses {
  readonly #agents: AgentGateway;
  readonly #onAccepted: (use: FirstUse) => void;
  readonly #accepted = new LRUCache<string, true>(CACHED_KEYS);

  constructor(agents: AgentGateway, onAccepted: (use: FirstUse) => void) {
    this.#agents = agents;
    this.#onAccepted = onAccepted;
  }

  async accept({ _id, key }: AgentDocument): Promise<boolean> {
    if (key === null) return false;
    if (this.#accepted.has(key.id)) return true;
    const reply = await this.#agents.submit(_id, { kind: "authenticate", keyId: key.id });
    if (reply.kind !== "authenticated" || reply.firstUsedAt === null) return false;
    this.#accepted.set(key.id, true);
    this.#onAccepted({ agentId: _id, keyId: key.id, at: new Date(reply.firstUsedAt) });
    return true;
  }
}
