import { LRUCache } from "lru-cache";
import type { AgentDocument } from "../store/documents.ts";
import type { AgentGateway } from "../payments/ports.ts";

/** Agents that are known to have used a key, until their records show it. */
const CACHED_AGENTS_MAX = 10_000;

/**
 * An agent's first request ever is confirmed by its actor before it has any effect, so that this and a machine's archive ("the
 * agent never authenticated") never both succeed. Once in an agent's life.
 */
export class FirstUses {
  readonly #agents: AgentGateway;
  /** By key: a record may be read a little before it shows what its actor has said. */
  readonly #accepted = new LRUCache<string, true>({ max: CACHED_AGENTS_MAX });

  constructor(agents: AgentGateway) {
    this.#agents = agents;
  }

  async accept({ _id, key }: AgentDocument): Promise<boolean> {
    if (key === null) return false;
    if (this.#accepted.has(key.id)) return true;
    const reply = await this.#agents.submit(_id, { kind: "authenticate", keyId: key.id });
    if (reply.kind !== "authenticated" || !reply.accepted) return false;
    this.#accepted.set(key.id, true);
    return true;
  }
}
