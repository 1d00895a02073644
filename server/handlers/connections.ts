import type { AuditLog } from "../../src/audit/chain/appender.ts";
import { auditValue } from "../../src/domain/audit/canonical.ts";
import { type Connected, connectionText } from "../../src/identity/authenticator.ts";
import { refusal } from "../../src/domain/errors.ts";
import { ok, refused, type Result } from "../../src/domain/result.ts";
import type { AgentTool } from "../../src/contract/tool-names.ts";
import { newId } from "../../src/lib/ids.ts";
import type { AgentDocument, AgentKeyRecord } from "../../src/store/documents.ts";
import { agentKeyView } from "../../src/views/views.ts";
import type { AskingClient, ClientConnections } from "../oauth/client-connections.ts";
import { keyMinterOf } from "./agent-key-records.ts";
import { keyRevokerOf, namedBy } from "./agent-keys.ts";
import { agentsIn } from "./agent-records.ts";
import type { HandlerDependencies } from "./dependencies.ts";
import type { Handlers } from "./types.ts";

const OVER =
  "This request is over, was decided, or was begun in another browser. Connect again from the client.";

/** Length of the end of a connection's id that identifies it to people, as the end of a key does. */
const SHOWN_CHARACTERS = 4;

/** Connects MCP clients. A connection has a key, as minting creates one. */
export function connectionHandlers(
  dependencies: HandlerDependencies,
): Pick<Handlers, "getConnection" | "connectClient" | "denyConnection"> {
  const { agentProofs, clock, collections, connections, hashApiKey } = dependencies;
  const current = agentsIn(collections);
  const mint = keyMinterOf(dependencies);
  const revoke = keyRevokerOf(dependencies);

  function newKey(agentId: string, { clientName }: AskingClient, tools: AgentTool[] | null): AgentKeyRecord {
    const id = newId("akey");
    const named = { id, hash: hashApiKey(connectionText(id)), connection: { clientName, tools } };
    return {
      ...named,
      proof: agentProofs.ofKey(agentId, named),
      last4: id.slice(-SHOWN_CHARACTERS),
      createdAt: clock(),
      lastUsedAt: null,
    };
  }

  /** Replaces the agent's key if it is the one that the person was shown. */
  async function replaceKey(
    agent: AgentDocument,
    record: AgentKeyRecord,
    revokeKeyId: string | undefined,
  ): Promise<Result<null>> {
    if (agent.key !== null && agent.key.id === revokeKeyId) {
      const revoked = await revoke(agent, revokeKeyId);
      if (!revoked.ok && revoked.refusal.code !== "NOT_FOUND") return revoked;
    }
    return mint(agent._id, record);
  }

  return {
    async getConnection({ params: { id } }) {
      const client = (await connections?.askingClient(id)) ?? null;
      if (client === null) return refused(refusal("NOT_FOUND", OVER));
      return ok({ body: { connection: { id, ...client, expiresAt: client.expiresAt.toISOString() } } });
    },

    async connectClient({ body }, { audit, target }) {
      const { browserToken, connectionId, revokeKeyId, tools = null } = body;
      const client = (await connections?.askingClient(connectionId)) ?? null;
      if (connections === null || client === null || !connections.isOfBrowser(connectionId, browserToken))
        return refused(refusal("NOT_FOUND", OVER));
      const agent = await current(target._id);
      if (agent.lifecycle === "archived") return refused(refusal("AGENT_ARCHIVED"));
      const before = agent.key === null ? null : namedBy(agent.key);
      if (agent.key !== null && agent.key.id !== revokeKeyId) return refused(refusal("KEY_ALREADY_EXISTS"));
      const record = newKey(agent._id, client, tools);
      await audit.begin({ before, after: namedBy(record) });
      return deciding(connections, connectionId, async () => {
        const replaced = await replaceKey(agent, record, revokeKeyId);
        if (!replaced.ok) return replaced;
        audit.change(before, namedBy(record));
        const redirectTo = await connections.grant(connectionId, { agentId: agent._id, keyId: record.id });
        return ok({ body: { key: agentKeyView(record, "active"), redirectTo } });
      });
    },

    async denyConnection({ body: { browserToken, connectionId } }, { audit }) {
      const client = (await connections?.askingClient(connectionId)) ?? null;
      if (connections === null || client === null || !connections.isOfBrowser(connectionId, browserToken))
        return refused(refusal("NOT_FOUND", OVER));
      const denied = { clientName: client.clientName, returnsTo: client.returnsTo };
      await audit.begin({ before: null, after: denied });
      return deciding(connections, connectionId, async () => {
        const redirectTo = await connections.deny(connectionId);
        audit.change(null, denied);
        return ok({ body: { redirectTo } });
      });
    },
  };
}

/**
 * Revokes the key of a connection whose grant has ended because its client revoked a token, or a code or refresh token
 * was replayed. The audit entry gives the reason, since nobody requested the revocation.
 */
export const endedConnectionsOf = (
  dependencies: Pick<HandlerDependencies, "agents" | "clock" | "collections"> & {
    readonly auditLog: AuditLog;
  },
) => {
  const { auditLog, clock, collections } = dependencies;
  const revoke = keyRevokerOf({ ...dependencies, connections: null });
  return async ({ agentId: _id, keyId }: Connected): Promise<void> => {
    const agent = await collections.agents.findOne({ _id, "key.id": keyId });
    if (agent === null || agent.key === null) return;
    // The entry comes first, so that no crash leaves a revocation without one. The connection has ended in any case.
    await auditLog.append({
      organizationId: agent.organizationId,
      entryKey: `connection-ended/${keyId}`,
      at: clock().getTime(),
      action: "revokeAgentKey",
      actor: { type: "system", id: "connections" },
      resource: { type: "agent", id: _id },
      from: null,
      result: { status: null, code: null },
      before: auditValue(namedBy(agent.key)),
      after: null,
      decision: null,
    });
    await revoke(agent, keyId);
  };
};

/** Decides a request once, even if others try concurrently. */
async function deciding<T>(
  connections: ClientConnections,
  uid: string,
  decide: () => Promise<Result<T>>,
): Promise<Result<T>> {
  if (!(await connections.claim(uid))) return refused(refusal("NOT_FOUND", OVER));
  let isDecided = false;
  try {
    const decided = await decide();
    isDecided = decided.ok;
    return decided;
  } finally {
    if (!isDecided) await connections.release(uid);
  }
}
