import { z } from "zod";
import { createdLabels, sentLabels } from "../agent-labels.ts";
import { AGENT_TOOLS } from "../tool-names.ts";
import { manages } from "../access.ts";
import { define } from "../define.ts";
import { CREATE_INSIDE_ERRORS } from "../creates.ts";
import { choices, heldCents, idempotencyKey, name, paging, uuid } from "../primitives.ts";
import { agent, budgetPolicy, keySummary, listOf, policyFields, wallet } from "../records.ts";
import { changes, creates, managementTool, switches } from "../tools.ts";

const params = z.strictObject({ id: uuid });
const answer = z.strictObject({ agent });

export const createAgentBody = z.strictObject({
  name,
  teamId: uuid.meta({ description: "The team that the agent is created in." }),
  ...z.strictObject(policyFields).partial().required({ budgetCents: true }).shape,
  ...createdLabels,
  scopes: choices(AGENT_TOOLS)
    .optional()
    .meta({ description: "The tools that the agent may use; left out: all." }),
  idempotencyKey: idempotencyKey.optional(),
});

/** `mcpConfigBlock`: what an MCP client is configured with. */
export const mcpConfigBlock = z.strictObject({
  mcpServers: z.strictObject({
    "agent-spending-control": z.strictObject({
      type: z.literal("http"),
      url: z.string(),
      headers: z.strictObject({ Authorization: z.string() }),
    }),
  }),
});

export const createAgent = define({
  summary: "Create an agent",
  description:
    "Creates an agent with its policy, its wallet and first API key; a limit that is left out or null is none. Replaying the same idempotencyKey with the same " +
    "payload answers 200 with the same agent and never creates another; another payload is 422. A key of the " +
    "organization must send one, and creates as many a day as its daily limit allows. To it, and the keys that it is " +
    "rotated into, a replay delivers the agent's key again for about 30 minutes; after that `apiKey` and " +
    "`mcpConfigBlock` are null and `keyDelivery` is `expired`; a first answer that took that long says so, too. A person " +
    "gets the key in the first answer only. Replay after a time-out, REQUEST_IN_PROGRESS, ORG_NOT_READY, CREATE_RETRYABLE and any other 5xx.",
  tag: "Agents",
  access: manages("agents:write", "newAgent", { role: "admin" }),
  rate: "standard",
  http: { method: "post", path: "/v1/agents", successStatus: 201 },
  tool: managementTool("create_agent", "Create an agent", creates),
  body: createAgentBody,
  output: z.strictObject({
    agent,
    apiKey: z.string().nullable(),
    mcpConfigBlock: mcpConfigBlock.nullable(),
    keyDelivery: z.enum(["expired"]).optional(),
  }),
  errors: [...CREATE_INSIDE_ERRORS, "PROJECT_FULL"],
});

export const listAgents = define({
  summary: "List agents",
  description:
    "The organization's agents, newest first, archived ones too. An unknown project or team as a filter gives an empty list.",
  tag: "Agents",
  access: manages("agents:read", "list"),
  rate: "standard",
  http: { method: "get", path: "/v1/agents", successStatus: 200 },
  tool: managementTool("list_agents", "List agents"),
  query: z.strictObject({
    ...paging,
    projectId: uuid.optional(),
    teamId: uuid.optional(),
    state: z.enum(["active", "paused", "archived"]).optional(),
    name: name.optional().meta({ description: "Only agents whose name has this in it, in whatever case." }),
    with: z
      .enum(["lastPayment"])
      .optional()
      .meta({ description: "`lastPayment`: with each agent's newest payment." }),
  }),
  output: listOf("agents", agent),
  errors: ["BAD_CURSOR"],
});

const total = z.int().min(0);
const count = (what: string) => total.meta({ description: `How many are ${what}.` });

export const summarizeAgents = define({
  summary: "Summarize agents",
  description:
    "How many agents there are in each state, and what the budgets of those that are not archived come to, with what is spent and on hold of them; " +
    "of a key's binding only. An unknown project or team as a filter gives zeros. The totals follow payments within a second or so.",
  tag: "Agents",
  access: manages("agents:read", "list"),
  rate: "summary",
  http: { method: "get", path: "/v1/agents/summary", successStatus: 200 },
  query: z.strictObject({ projectId: uuid.optional(), teamId: uuid.optional() }),
  output: z.strictObject({
    agents: z
      .strictObject({ active: count("active"), paused: count("paused"), archived: count("archived") })
      .meta({ description: "How many there are in each state." }),
    budgetCents: total.meta({ description: "The budgets of active and paused agents together." }),
    spentCents: total.meta({ description: "What is spent of these budgets." }),
    reservedCents: total.meta({ description: "What is on hold of these budgets." }),
  }),
  errors: [],
});

export const getAgent = define({
  summary: "Read an agent",
  description: "One agent's record.",
  tag: "Agents",
  access: manages("agents:read", "agent"),
  rate: "standard",
  http: { method: "get", path: "/v1/agents/:id", successStatus: 200 },
  tool: managementTool("get_agent", "Read an agent", { idName: "agentId" }),
  params,
  output: answer,
  errors: ["NOT_FOUND"],
});

export const getAgentWallet = define({
  summary: "Read an agent's wallet",
  description:
    "The address of the agent's wallet and its current balance on the chain; `balanceCents` is null if the chain does not answer. `wallet` is null for an agent that has none.",
  tag: "Agents",
  access: manages("agents:read", "agent"),
  rate: "standard",
  http: { method: "get", path: "/v1/agents/:id/wallet", successStatus: 200 },
  params,
  output: z.strictObject({
    wallet: wallet.extend({ balanceCents: heldCents.nullable(), currency: z.literal("USD") }).nullable(),
  }),
  errors: ["NOT_FOUND"],
});

export const getAgentBudgetPolicy = define({
  summary: "Read an agent's budget policy",
  description: "The policy that is in force now, with usage and the `version` that a change must name.",
  tag: "Agents",
  access: manages("agents:write", "agent"),
  rate: "standard",
  http: { method: "get", path: "/v1/agents/:id/budget-policy", successStatus: 200 },
  tool: managementTool("get_agent_budget_policy", "Read an agent's budget policy", { idName: "agentId" }),
  params,
  output: budgetPolicy,
  errors: ["NOT_FOUND"],
});

export const updateAgentBudgetPolicy = define({
  summary: "Change an agent's budget policy",
  description:
    "A partial change: a field left out stays, null clears a ceiling. An outdated `version` is 409. A limit may be set below what is already used; it then stops further payments.",
  tag: "Agents",
  access: manages("agents:write", "agent", { role: "admin", stepUp: true }),
  rate: "standard",
  http: { method: "patch", path: "/v1/agents/:id/budget-policy", successStatus: 200 },
  tool: managementTool("update_agent_budget_policy", "Change an agent's budget policy", {
    idName: "agentId",
    hints: changes,
  }),
  params,
  body: z.strictObject({ ...z.strictObject(policyFields).partial().shape, version: z.int() }),
  output: budgetPolicy,
  errors: ["NOT_FOUND", "VERSION_CONFLICT", "AGENT_ARCHIVED"],
});

export const pauseAgent = define({
  summary: "Pause an agent",
  description:
    "At once: every request of its key is refused from now on. Key and configuration are kept, what is on hold stays. " +
    "Pausing a paused agent is 200.",
  tag: "Agents",
  access: manages("agents:write", "agent"),
  rate: "standard",
  http: { method: "post", path: "/v1/agents/:id/pause", successStatus: 200 },
  tool: managementTool("pause_agent", "Pause an agent", { idName: "agentId", hints: switches }),
  params,
  output: answer,
  errors: ["NOT_FOUND", "AGENT_ARCHIVED"],
});

export const resumeAgent = define({
  summary: "Resume a paused agent",
  description: "The agent may pay again. Resuming an active agent is 200.",
  tag: "Agents",
  access: manages("agents:write", "agent"),
  rate: "standard",
  http: { method: "post", path: "/v1/agents/:id/resume", successStatus: 200 },
  tool: managementTool("resume_agent", "Resume a paused agent", { idName: "agentId", hints: switches }),
  params,
  output: answer,
  errors: ["NOT_FOUND", "AGENT_ARCHIVED"],
});

export const updateAgent = define({
  summary: "Change an agent's descriptive fields",
  description: "A field that is left out stays unchanged; null clears it. People only.",
  tag: "Agents",
  access: manages("never", "agent", { role: "admin" }),
  rate: "standard",
  http: { method: "patch", path: "/v1/agents/:id", successStatus: 200 },
  params,
  body: z.strictObject({
    name: name.optional(),
    ...sentLabels,
  }),
  output: answer,
  errors: ["NOT_FOUND", "AGENT_ARCHIVED"],
});

export const connectAgent = define({
  summary: "How an agent's MCP client is connected",
  description:
    "The configuration for each client that people use, to copy. The service does not know the agent's key: `keyPlaceholder` " +
    "stands in its place.",
  tag: "Agents",
  access: manages("agents:read", "agent"),
  rate: "standard",
  http: { method: "get", path: "/v1/agents/:id/connect", successStatus: 200 },
  params,
  output: z.strictObject({
    mcpUrl: z.string().meta({ description: "The MCP endpoint." }),
    keyPlaceholder: z.string().meta({ description: "To be replaced by the agent's key in every `text`." }),
    clients: z
      .array(
        z.strictObject({
          client: z.string().meta({ description: "Such as `claude-code`." }),
          name: z.string(),
          place: z.string().meta({ description: "The file that it goes into, or `a shell`." }),
          format: z.enum(["json", "toml", "shell"]).meta({ description: "What `text` is written in." }),
          text: z.string().meta({ description: "To copy, once the placeholder is replaced." }),
        }),
      )
      .meta({ description: "The clients that people use." }),
  }),
  errors: ["NOT_FOUND"],
});

export const mintAgentKey = define({
  summary: "Mint an agent's key",
  description:
    "A new key for an agent that has none; its value is shown once. 409 KEY_ALREADY_EXISTS while one is active: revoke it " +
    "first. People only, with step-up.",
  tag: "Agents",
  access: manages("never", "agent", { role: "admin", stepUp: true }),
  rate: "keyMint",
  http: { method: "post", path: "/v1/agents/:id/key", successStatus: 201 },
  params,
  output: z.strictObject({ apiKey: z.string(), mcpConfigBlock, key: keySummary }),
  errors: ["NOT_FOUND", "KEY_ALREADY_EXISTS", "AGENT_ARCHIVED"],
});

export const revokeAgentKey = define({
  summary: "Revoke an agent's key",
  description:
    "The active key is refused from its next request on; without an active key it is 404. Pausing and revoking is the emergency stop; minting " +
    "and resuming takes it back. People only, with step-up.",
  tag: "Agents",
  access: manages("never", "agent", { role: "admin", stepUp: true }),
  rate: "keyRevoke",
  http: { method: "delete", path: "/v1/agents/:id/key", successStatus: 200 },
  params,
  output: z.strictObject({ key: keySummary }),
  errors: ["NOT_FOUND", "AGENT_ARCHIVED"],
});

export const archiveAgent = define({
  summary: "Archive an agent",
  description:
    "Permanent: its key is revoked, payments on hold are denied, and the service gives up its right to spend from the wallet, whose balance stays the organization's. Repeat it until `walletsFailed` " +
    "is empty: a repeat is 200. People need step-up. A key of the organization may archive only an agent that its lineage created, whose key " +
    "provably was never delivered, that never authenticated, holds nothing, and whose keys no person touched: " +
    "MACHINE_ARCHIVE_DENIED is terminal, KEY_STILL_DELIVERABLE, KEY_DELIVERY_UNPROVEN (replay the create) and " +
    "BALANCE_UNVERIFIABLE are not.",
  tag: "Agents",
  access: manages("agents:write", "agent", { role: "admin", stepUp: true }),
  rate: "archive",
  http: { method: "delete", path: "/v1/agents/:id", successStatus: 200 },
  tool: managementTool("archive_agent", "Archive an agent", { idName: "agentId", hints: changes }),
  params,
  output: z.strictObject({ agent, walletsFailed: z.array(wallet) }),
  errors: [
    "NOT_FOUND",
    "MACHINE_ARCHIVE_DENIED",
    "KEY_STILL_DELIVERABLE",
    "KEY_DELIVERY_UNPROVEN",
    "BALANCE_UNVERIFIABLE",
  ],
});
