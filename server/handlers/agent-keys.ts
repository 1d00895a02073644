import { randomBytes } from "node:crypto";
import type { AgentDocument, AgentKeyRecord } from "../../src/store/documents.ts";
import { formatApiKey, last4 } from "../../src/domain/api-key.ts";
import { refusal } from "../../src/domain/errors.ts";
import { ok, refused, type Result } from "../../src/domain/result.ts";
import { ActorUnavailable } from "../../src/actors/actor-unavailable.ts";
import { newId } from "../../src/lib/ids.ts";
import { mcpConfigBlock } from "../mcp/config-block.ts";
import { agentKeyView } from "../../src/views/views.ts";
import { keyMinterOf } from "./agent-key-records.ts";
import { agentsIn } from "./agent-records.ts";
import type { HandlerDependencies } from "./dependencies.ts";
import type { Handlers } from "./types.ts";

export function agentKeyHandlers(
  dependencies: HandlerDependencies,
): Pick<Handlers, "mintAgentKey" | "revokeAgentKey"> {
  const { agentProofs, clock, collections, hashApiKey, mcpUrl } = dependencies;
  const current = agentsIn(collections);
  const mint = keyMinterOf(dependencies);
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

  return {
    async mintAgentKey(_input, { audit, target: { _id, lifecycle } }) {
      if (lifecycle === "archived") return refused(refusal("AGENT_ARCHIVED"));
      const { apiKey, record } = newKey(_id);
      await audit.begin({ before: null, after: namedBy(record) });
      const minted = await mint(_id, record);
      if (!minted.ok) return minted;
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

/**
 * Revokes an agent's active key, which its actor determines. With `keyId`, revokes only that key. Answers 404 if there
 * is no such key. A connection's grants and tokens are removed as well; any left behind belong to a key that no longer
 * works.
 */
export const keyRevokerOf = ({
  agents,
  collections,
  connections,
}: Pick<HandlerDependencies, "agents" | "collections" | "connections">) => {
  const current = agentsIn(collections);
  return async (
    { _id, candidateKeys = [], key }: AgentDocument,
    keyId?: string,
  ): Promise<Result<AgentKeyRecord>> => {
    const only = keyId === undefined ? {} : { keyId };
    const reply = await agents.submit(_id, { kind: "revoke_key", ...only });
    if (reply.kind === "archived") return refused(refusal("AGENT_ARCHIVED"));
    if (reply.kind !== "key") return refused(refusal("NOT_FOUND"));
    const now = await current(_id);
    const known = key === null ? candidateKeys : [key, ...candidateKeys];
    const revoked = known.find(({ id }) => id === reply.keyId);
    if (now.key?.id === reply.keyId || revoked === undefined) {
      throw new ActorUnavailable("the agent's record does not follow its actor");
    }
    if (revoked.connection !== undefined) await connections?.end(revoked.id);
    return ok(revoked);
  };
};

/** Fields of a key in the audit log. */
export const namedBy = ({ connection, id, last4: end }: AgentKeyRecord) => ({
  keyId: id,
  last4: end,
  ...(connection && { clientName: connection.clientName, tools: connection.tools }),
});
