import type { Filter } from "mongodb";
import type { z } from "zod";
import type { AgentDocument } from "../../src/store/documents.ts";
import type { agent } from "../../src/contract/records.ts";
import { labelsIn, labelsOf } from "../../src/domain/agent/labels.ts";
import { refusal } from "../../src/domain/errors.ts";
import { ok, refused } from "../../src/domain/result.ts";
import type { AuditNotes } from "../../src/audit/notes.ts";
import type { Deadline } from "../../src/lib/deadline.ts";
import { definedFields, type Page } from "../../src/store/lists.ts";
import { mostSpecificScope } from "../../src/identity/most-specific-scope.ts";
import { type LastPayments, lastPaymentsIn } from "./last-payments.ts";
import { clientConfigs, KEY_PLACEHOLDER } from "../mcp/client-configs.ts";
import { agentView } from "../../src/views/views.ts";
import { awaitFlush } from "../../src/actors/catch-up.ts";
import { agentKeyHandlers } from "./agent-keys.ts";
import { agentsIn } from "./agent-records.ts";
import { archiveAgentHandler } from "./archive-agent.ts";
import { agentPausing } from "./agent-pausing.ts";
import { createAgentHandler } from "./create-agent.ts";
import type { HandlerDependencies } from "./dependencies.ts";
import type { Handlers } from "./types.ts";

type AgentHandlers = Pick<
  Handlers,
  | "createAgent"
  | "listAgents"
  | "getAgent"
  | "updateAgent"
  | "connectAgent"
  | "pauseAgent"
  | "resumeAgent"
  | "mintAgentKey"
  | "revokeAgentKey"
  | "archiveAgent"
>;

export function agentHandlers(dependencies: HandlerDependencies): AgentHandlers {
  const { agents, clock, collections, ledgers, lists } = dependencies;

  const current = agentsIn(collections);
  const lastPayments = lastPaymentsIn(collections);
  const pausing = agentPausing(dependencies);

  async function setLifecycle(
    agent: AgentDocument,
    kind: "pause" | "resume",
    { audit, deadline }: { readonly audit: AuditNotes; readonly deadline: Deadline },
  ) {
    await audit.begin({
      before: { state: agent.lifecycle },
      after: { state: kind === "pause" ? "paused" : "active" },
    });
    const set = await (kind === "pause" ? pausing.pause(agent) : pausing.resume(agent, deadline));
    if (!set.ok) return set;
    if (set.value.changed) {
      const states = kind === "pause" ? ["active", "paused"] : ["paused", "active"];
      audit.change({ state: states[0] }, { state: states[1] });
    }
    return ok({ body: { agent: agentView(set.value.shown) } });
  }

  return {
    createAgent: createAgentHandler(dependencies),

    connectAgent() {
      const { baseUrl, mcpUrl } = dependencies;
      const clients = clientConfigs(baseUrl, mcpUrl);
      return Promise.resolve(
        ok({ body: { mcpUrl: `${mcpUrl}/mcp`, keyPlaceholder: KEY_PLACEHOLDER, clients } }),
      );
    },

    async listAgents({ query }, { principal, target: reach }) {
      const { cursor, limit, name, state, with: more, ...containers } = query;
      const { organizationId } = principal;
      const { bindingFilter } = reach;
      const scope = await mostSpecificScope(collections, organizationId, containers, bindingFilter);
      const request = {
        collection: collections.agents,
        list: "agents",
        filters: { organizationId, ...containers, state, name, bindingFilter },
        ...(name === undefined && state !== undefined
          ? { equals: scope && { ...scope, lifecycle: state } }
          : { equals: scope, where: name === undefined ? {} : named(name, state), indexed: ["name"] }),
        limit,
        cursor,
      };
      const shown = (found: Page<AgentDocument>) =>
        agentsView(found, more === "lastPayment" ? lastPayments : null);
      const page = await lists.page(request);
      if (!page.ok) return page;
      const behind = page.value.items.filter((agent) => ledgers.isBehind(agent, agent._id));
      if (behind.length > 0) {
        await awaitFlush(Promise.all(behind.map((agent) => ledgers.flush(agent, agent._id))));
        const refreshed = await lists.page(request);
        if (refreshed.ok) return ok({ body: await shown(refreshed.value) });
      }
      return ok({ body: await shown(page.value) });
    },

    async getAgent(_input, { target }) {
      await awaitFlush(ledgers.flush(target, target._id));
      return ok({ body: { agent: agentView(await current(target._id)) } });
    },

    async updateAgent({ body }, { audit, target }) {
      if (target.lifecycle === "archived") return refused(refusal("AGENT_ARCHIVED"));
      const { name, ...fields } = body;
      const labels = labelsIn(fields);
      const before = shownOf(target);
      await audit.begin({ before, after: { ...before, ...definedFields({ name }), ...labels } });
      if (name !== undefined) {
        const reply = await agents.submit(target._id, { kind: "rename", name });
        if (reply.kind !== "renamed") return refused(refusal("AGENT_ARCHIVED"));
      }
      if (Object.keys(labels).length > 0) {
        const live = { _id: target._id, lifecycle: { $ne: "archived" as const } };
        const changed = { $set: { ...labels, updatedAt: clock() } };
        const { matchedCount } = await collections.agents.updateOne(live, changed);
        if (matchedCount === 0) return refused(refusal("AGENT_ARCHIVED"));
      }
      const agent = await current(target._id);
      audit.change(before, shownOf(agent));
      return ok({ body: { agent: agentView(agent) } });
    },

    ...agentKeyHandlers(dependencies),
    archiveAgent: archiveAgentHandler(dependencies),

    pauseAgent: (_input, { target, ...call }) => setLifecycle(target, "pause", call),
    resumeAgent: (_input, { target, ...call }) => setLifecycle(target, "resume", call),
  };
}

const shownOf = (agent: AgentDocument) => ({ name: agent.name, ...labelsOf(agent) });

/** Filter that finds agents by the index on names, ignoring case. */
const named = (name: string, lifecycle: AgentDocument["lifecycle"] | undefined): Filter<AgentDocument> => ({
  name: { $regex: name.replaceAll(/[.*+?^${}()|[\]\\]/g, String.raw`\$&`), $options: "i" },
  ...definedFields({ lifecycle }),
});

async function agentsView(
  { items, nextCursor }: Page<AgentDocument>,
  lastPayments: LastPayments | null,
): Promise<{ agents: z.input<typeof agent>[]; nextCursor: string | null }> {
  if (lastPayments === null) return { agents: items.map(agentView), nextCursor };
  const last = await Promise.all(items.map(({ _id }) => lastPayments(_id)));
  const agents = items.map((item, index) => ({ ...agentView(item), lastPayment: last[index] ?? null }));
  return { agents, nextCursor };
}
