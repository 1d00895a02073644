import { LRUCache } from "lru-cache";
import type { Collection, Db } from "mongodb";
import type { AgentProfile } from "../domain/agent/state.ts";
import { type AgentDocument, COLLECTIONS } from "../store/documents.ts";
import type { AgentProofs } from "./agent-proofs.ts";

export type AgentPlace = Pick<AgentProfile, "organizationId" | "projectId" | "teamId">;

const CACHED_MAX = 50_000;

/** Places of agents, from records as the service wrote them. A place never changes, so each is read once. */
export class AgentPlaces {
  readonly #agents: Collection<AgentDocument>;
  readonly #proofs: Pick<AgentProofs, "genuine">;
  readonly #cached = new LRUCache<string, AgentPlace>({ max: CACHED_MAX });

  constructor(db: Db, proofs: Pick<AgentProofs, "genuine">) {
    this.#agents = db.collection(COLLECTIONS.agents);
    this.#proofs = proofs;
  }

  /** Throws if the agent has no record, or something other than the service has changed it. */
  async of(agentId: string): Promise<AgentPlace> {
    const cached = this.#cached.get(agentId);
    if (cached !== undefined) return cached;
    const agent = this.#proofs.genuine(await this.#agents.findOne({ _id: agentId }));
    if (agent === null) throw new Error(`agent ${agentId} has no record as the service wrote it`);
    const { organizationId, projectId, teamId } = agent;
    const place = { organizationId, projectId, teamId };
    this.#cached.set(agentId, place);
    return place;
  }
}
