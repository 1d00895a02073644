import { randomBytes } from "node:crypto";
import type { AgentKeyRecord } from "../../activities/documents.ts";
import { formatApiKey, last4 } from "../../src/domain/api-key.ts";
import { refusal } from "../../src/domain/errors.ts";
import { ok, refused } from "../../src/domain/result.ts";
import { ActorUnavailable } from "../actors/actor-unavailable.ts";
import { newId } from "../ids.ts";
import { mcpConfigBlock } from "../mcp/config-block.ts";
import { agentKeyView } from "../views.ts";
import { agentsIn } from "./agent-records.ts";
import type { HandlerDependencies } from "./dependencies.ts";
import type { Handlers } from "./types.ts";

/** Keys that are being minted for one agent at once; older candidates make room. */
const CANDIDATES_MAX = 100;

const candidates = { $ifNull: ["$candidateKeys", []] };

/**
 * Minting and revoking an agent's key. The actor decides by the keys' ids, one after
 * another. A new key lies with the agent's record as a candidate before the actor is asked, so whatever dies in between,
 * a key that the actor chose is one that works.
 */
export function agentKeyHandlers(
  dependencies: HandlerDependencies,
): Pick<Handlers, "mintAgentKey" | "revokeAgentKey"> {
  const { agents, clock, collections, hashApiKey, mcpUrl } = dependencies;
  const current = agentsIn(collections);

  function newKey(): { readonly apiKey: string; readonly record: AgentKeyRecord } {
    const apiKey = formatApiKey("agent", randomBytes);
    const hash = hashApiKey(apiKey);
    const id = newId("akey");
    return { apiKey, record: { id, hash, last4: last4(apiKey), createdAt: clock(), lastUsedAt: null } };
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
      const { apiKey, record } = newKey();
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
      const { _id, candidateKeys = [], key, lifecycle } = await current(target._id);
      if (lifecycle === "archived") return refused(refusal("AGENT_ARCHIVED"));
      await audit.begin({ before: key === null ? null : namedBy(key), after: null });
      const reply = await agents.submit(_id, { kind: "revoke_key" });
      if (reply.kind === "archived") return refused(refusal("AGENT_ARCHIVED"));
      if (reply.kind !== "key") return refused(refusal("NOT_FOUND"));
      const now = await current(_id);
      const known = key === null ? candidateKeys : [key, ...candidateKeys];
      const revoked = known.find(({ id }) => id === reply.keyId);
      if (now.key?.id === reply.keyId || revoked === undefined) {
        throw new ActorUnavailable("the agent's record does not follow its actor");
      }
      audit.change(namedBy(revoked), null);
      return ok({ body: { key: agentKeyView(revoked, "revoked") } });
    },
  };
}

/** A key as the audit log has it. */
const namedBy = (key: AgentKeyRecord) => ({ keyId: key.id, last4: key.last4 });
