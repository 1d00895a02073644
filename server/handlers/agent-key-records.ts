import type { AgentKeyRecord } from "../../src/store/documents.ts";
import { refusal } from "../../src/domain/errors.ts";
import { ok, refused, type Result } from "../../src/domain/result.ts";
import { ActorUnavailable } from "../../src/actors/actor-unavailable.ts";
import { agentsIn } from "./agent-records.ts";
import type { HandlerDependencies } from "./dependencies.ts";

/** Maximum keys being minted for one agent concurrently. The oldest candidates are dropped. */
const CANDIDATES_MAX = 100;

const candidates = { $ifNull: ["$candidateKeys", []] };

/**
 * Mints an agent's key. The actor decides on key ids in sequence. A new key is in the agent's record as a candidate
 * before the actor decides, so a key that the actor chose works whatever fails in between.
 */
export const keyMinterOf = ({ agents, collections }: Pick<HandlerDependencies, "agents" | "collections">) => {
  const current = agentsIn(collections);

  async function propose(agentId: string, record: AgentKeyRecord): Promise<void> {
    const longer = { $concatArrays: [candidates, [{ $literal: record }]] };
    const candidateKeys = { $slice: [longer, -CANDIDATES_MAX] };
    await collections.agents.updateOne({ _id: agentId }, [{ $set: { candidateKeys } }]);
  }

  async function withdraw(agentId: string, { id }: AgentKeyRecord): Promise<void> {
    const candidateKeys = { $filter: { input: candidates, cond: { $ne: ["$$this.id", id] } } };
    await collections.agents.updateOne({ _id: agentId }, [{ $set: { candidateKeys } }]);
  }

  return async (agentId: string, record: AgentKeyRecord): Promise<Result<null>> => {
    await propose(agentId, record);
    const reply = await agents.submit(agentId, { kind: "mint_key", keyId: record.id });
    if (reply.kind === "archived" || reply.kind === "key_exists") {
      await withdraw(agentId, record);
      return refused(refusal(reply.kind === "archived" ? "AGENT_ARCHIVED" : "KEY_ALREADY_EXISTS"));
    }
    // The key was revoked, the agent archived, or the record not written: a key that does not work is not delivered.
    if ((await current(agentId)).key?.id !== record.id) {
      throw new ActorUnavailable("the agent's record does not show the new key");
    }
    return ok(null);
  };
};
