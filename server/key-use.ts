import type { Collection } from "mongodb";
import type { AgentDocument } from "../activities/documents.ts";

/** How often the last use of keys is written, all of them in one bulk. */
const WRITE_EVERY_MS = 5_000;

/** Keeps `lastUsedAt` of agents' keys without a write per request. What a crash loses is a few seconds of it. */
export class KeyUse {
  readonly #agents: Collection<AgentDocument>;
  readonly #clock: () => Date;
  readonly #onError: (error: unknown) => void;
  #used = new Map<string, { keyId: string; at: Date }>();
  #timer: NodeJS.Timeout | null = null;

  constructor(agents: Collection<AgentDocument>, clock: () => Date, onError: (error: unknown) => void) {
    this.#agents = agents;
    this.#clock = clock;
    this.#onError = onError;
  }

  used(agent: AgentDocument): void {
    if (agent.key === null) return;
    this.#used.set(agent._id, { keyId: agent.key.id, at: this.#clock() });
    this.#timer ??= setTimeout(() => void this.flush(), WRITE_EVERY_MS);
  }

  async flush(): Promise<void> {
    if (this.#timer !== null) clearTimeout(this.#timer);
    this.#timer = null;
    const used = this.#used;
    this.#used = new Map();
    if (used.size === 0) return;
    const operations = [...used].map(([_id, { keyId, at }]) => ({
      updateOne: { filter: { _id, "key.id": keyId }, update: { $max: { "key.lastUsedAt": at } } },
    }));
    await this.#agents.bulkWrite(operations, { ordered: false }).catch(this.#onError);
  }
}
