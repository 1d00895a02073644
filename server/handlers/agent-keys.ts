import { randomBytes } from "node:crypto";
import type { AgentDocument, AgentKeyRecord } from "../../src/store/documents.ts";
import { formatApiKey, last4 } from "../../src/domain/api-key.ts";
import { refusal } from "../../src/domain/errors.ts";
import { ok, refused, type Result } from "../../src/domain/result.ts";
import { ActorUnavailable } from "../../src/actors/actor-unavailable.ts";
import { newId } from "../../src/lib/ids.ts";
import { mcpConfigBlock } from "../mcp/config-block.ts";
import { agentKeyView } from "../../src/views/views.ts";
import { agentsIn } from "./agent-records.ts";
import type { HandlerDependencies } from "./dependencies.ts";
import type { Handlers } from "./types.ts";

/** Keys that are being minted for one agent at once; older candidates make room. */
const CANDIDATES_MAX = 100;

const candidates = { $ifNull: ["$candidateKeys", []] };

/**
 * Minting and revoking an agent's key. The actor decides by the keys' ids, one after another. A new key is in the agent's record
 * as a candidate before the actor decides, so whatever dies in between, a key that the actor chose is one that works.
 */
export function agentKeyHandlers(
  dependencies: HandlerDependencies,
): Pick<Handlers, "mintAgentKey" | "revokeAgentKey"> {
  const { agentProofs, agents, clock, collections, hashApiKey, mcpUrl } = dependencies;
  const current = agentsIn(collections);
  const revoke = keyRevokerOf(dependencies);

  function newKey(agentId: string): { readonly apiKey: string; readonly record: AgentKeyRecord } {
    const apiKey = formatApiKey("agent", randomBytes);
    const hash = hashApiKey(apiKey);
    const id = newId("akey");
    const proof = agentProofs.ofKey(agentId, { hash, id });
    return {
      apiKey,
      record: { id, hash, proof, last4: last4(apiKey), createdAt: clock(), lastUsedAt: null },
    };
  }

  async function propose(agentId: string, record: AgentKeyRecord): Promise<void> {
    const longer = { $concatArrays: [candidates, [{ $literal: record }]] };
    const candidateKeys = { $slice: [longer, -CANDIDATES_MAX] };
    await collections.agents.updateOne({ _id: agentId }, [{ $set: { candidateKeys } }]);
  }

  async function withdraw(agentId: string, { id }: AgentKeyRecord): Promise<void> {
    const candidateKeys = { $filter: { input: candidates, cond: { $ne: ["$$this.id", id] } } };
    await collections.agents.updateOne({ _id: agentId }, [{ $set: { candidateKeys } }]);
  }

  return {
    async mintAgentKey(_input, { audit, target: { _id, lifecycle } }) {
      if (lifecycle === "archived") return refused(refusal("AGENT_ARCHIVED"));
      const { apiKey, record } = newKey(_id);
      await audit.begin({ before: null, after: namedBy(record) });
      await propose(_id, record);
      const reply = await agents.submit(_id, { kind: "mint_key", keyId: record.id });
      if (reply.kind === "archived" || reply.kind === "key_exists") {
        await withdraw(_id, record);
        return refused(refusal(reply.kind === "archived" ? "AGENT_ARCHIVED" : "KEY_ALREADY_EXISTS"));
      }
      // Revoked or archived since, or not written: a key that does not work is not given out.
      if ((await current(_id)).key?.id !== record.id) {
        throw new ActorUnavailable("the agent's record does not show the new key");
      }
      audit.change(null, namedBy(record));
      const body = {
        apiKey,
        mcpConfigBlock: mcpConfigBlock(mcpUrl, apiKey),
        key: agentKeyView(record, "active"),
      };
      return ok({ body });
    },

    async revokeAgentKey(_input, { audit, target }) {
      const agent = await current(target._id);
      if (agent.lifecycle === "archived") return refused(refusal("AGENT_ARCHIVED"));
      await audit.begin({ before: agent.key === null ? null : namedBy(agent.key), after: null });
      const revoked = await revoke(agent);
      if (!revoked.ok) return revoked;
      audit.change(namedBy(revoked.value), null);
      return ok({ body: { key: agentKeyView(revoked.value, "revoked") } });
    },
  };
}

/** Revokes an agent's active key; 404 where it has none. Its actor decides which one that is. */
export const keyRevokerOf = ({
  agents,
  collections,
}: Pick<HandlerDependencies, "agents" | "collections">) => {
  const current = agentsIn(collections);
  return async ({ _id, candidateKeys = [], key }: AgentDocument): Promise<Result<AgentKeyRecord>> => {
    const reply = await agents.submit(_id, { kind: "revoke_key" });
    if (reply.kind === "archived") return refused(refusal("AGENT_ARCHIVED"));
    if (reply.kind !== "key") return refused(refusal("NOT_FOUND"));
    const now = await current(_id);
    const known = key === null ? candidateKeys : [key, ...candidateKeys];
    const revoked = known.find(({ id }) => id === reply.keyId);
    if (now.key?.id === reply.keyId || revoked === undefined) {
      throw new ActorUnavailable("the agent's record does not follow its actor");
    }
    return ok(revoked);
  };
};

/** A key as the audit log has it. */
export const namedBy = (key: AgentKeyRecord) => ({ keyId: key.id, last4: key.last4 });
