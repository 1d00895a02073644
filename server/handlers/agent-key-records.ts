import type { AgentKeyRecord } from "../../src/store/documents.ts";
import { refusal } from "../../src/domain/errors.ts";
import { ok, refused, type Result } from "../../src/domain/result.ts";
import { ActorUnavailable } from "../../src/actors/actor-unavailable.ts";
import { agentsIn } from "./agent-records.ts";
import type { HandlerDependencies } from "./dependencies.ts";

/** Keys that are being minted for one agent at once; older candidates make room. */
const CANDIDATES_MAX = 100;

const candidates = { $ifNull: ["$candidateKeys", []] };

/**
 * Mints a key of an agent. The actor decides by the keys' ids, one after another. A new key is in the agent's record as a candidate
 * before the actor decides, so whatever dies in between, a key that the actor chose is one that works.
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
    // Revoked or archived since, or not written: a key that does not work is not given out.
    if ((await current(agentId)).key?.id !== record.id) {
      throw new ActorUnavailable("the agent's record does not show the new key");
    }
    return ok(null);
  };
};
