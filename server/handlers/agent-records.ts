import type { AgentDocument } from "../../src/store/documents.ts";
import { ActorUnavailable } from "../../src/actors/actor-unavailable.ts";
import type { Ledgers } from "../../src/actors/ledgers.ts";
import type { Collections } from "../../src/store/collections.ts";

/** Returns an agent's current record. The pipeline has found it, and agents' records are never removed. */
export const agentsIn =
  ({ agents }: Pick<Collections, "agents">) =>
  async (id: string): Promise<AgentDocument> => {
    const agent = await agents.findOne({ _id: id });
    if (agent === null) throw new Error(`agent ${id} has lost its record`);
    return agent;
  };

/**
 * Returns an agent's record that shows its account at this revision or later. Throws `ActorUnavailable` if that takes
 * too long: no response is sent before the record shows the change.
 */
export const agentsFollowing = (
  collections: Pick<Collections, "agents">,
  ledgers: Pick<Ledgers, "flush">,
) => {
  const current = agentsIn(collections);
  return async (
    { _id, projectId }: Pick<AgentDocument, "_id" | "projectId">,
    revision: number,
  ): Promise<AgentDocument> => {
    await ledgers.flush({ projectId }, _id);
    const agent = await current(_id);
    if (agent.accountRevision >= revision) return agent;
    throw new ActorUnavailable("the agent's record does not follow its ledger");
  };
};
