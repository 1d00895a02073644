import { LRUCache } from "lru-cache";
import type { Collection, Db } from "mongodb";
import type { AgentProfile } from "../../src/domain/agent/state.ts";
import { type AgentDocument, COLLECTIONS } from "../../src/store/documents.ts";

type AgentScope = Pick<AgentDocument, "organizationId" | "projectId" | "teamId">;

/** Cached scopes; each is read once. */
const CACHED_SCOPES_MAX = 50_000;

/** The organization, project and team of agents, from their records. None ever moves, so cached scopes stay valid. */
export class AgentScopes {
  readonly #agents: Collection<AgentDocument>;
  readonly #cached = new LRUCache<string, AgentScope>({ max: CACHED_SCOPES_MAX });

  constructor(db: Db) {
    this.#agents = db.collection(COLLECTIONS.agents);
  }

  /** Whether the agent is of this organization, project and team. Throws for one that has no record, or not yet. */
  async isOf({ agentId, organizationId, projectId, teamId }: Omit<AgentProfile, "name">): Promise<boolean> {
    const scope = this.#cached.get(agentId) ?? (await this.#read(agentId));
    return (
      scope.organizationId === organizationId && scope.projectId === projectId && scope.teamId === teamId
    );
  }

  async #read(agentId: string): Promise<AgentScope> {
    const projection = { organizationId: 1, projectId: 1, teamId: 1 };
    const found = await this.#agents.findOne({ _id: agentId }, { projection });
    if (found === null) throw new Error(`agent ${agentId} has no record`);
    const { organizationId, projectId, teamId } = found;
    const scope = { organizationId, projectId, teamId };
    this.#cached.set(agentId, scope);
    return scope;
  }
}
