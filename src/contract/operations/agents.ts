import { z } from "zod";
import { AGENT_TOOLS } from "../tool-names.ts";
import { manages } from "../access.ts";
import { define } from "../define.ts";
import { CREATE_INSIDE_ERRORS } from "../creates.ts";
import { cents, choices, description, idempotencyKey, name, paging, uuid } from "../primitives.ts";
import { agent, budgetPolicy, listOf, policyFields } from "../records.ts";
import { changes, creates, managementTool } from "../tools.ts";

const params = z.strictObject({ id: uuid });
const answer = z.strictObject({ agent });

export const createAgentBody = z.strictObject({
  name,
  teamId: uuid,
  budgetCents: cents,
  description: description.nullable().optional(),
  autoApprovalThresholdCents: cents.nullable().optional(),
  scopes: choices(AGENT_TOOLS).optional(),
  idempotencyKey: idempotencyKey.optional(),
});

/** `mcpConfigBlock`: what an MCP client is configured with (decisions.md section 3). */
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
    "Creates an agent with its policy and first API key, which is shown once. Replaying the same idempotencyKey with " +
    "the same payload answers 200 with the same agent and never creates another; another payload is 422. A key of the " +
    "organization must send one, and creates as many a day as its daily limit allows. " +
    "Specification 2.1, 3.1, 4.1.",
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
  errors: CREATE_INSIDE_ERRORS,
});

export const listAgents = define({
  summary: "List agents",
  description:
    "The organization's agents, newest first, archived ones too. An unknown project or team as a filter gives an empty list. Specification 4.1.",
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
  }),
  output: listOf("agents", agent),
  errors: ["BAD_CURSOR"],
});

export const getAgent = define({
  summary: "Read an agent",
  description: "One agent's record. Specification 2.1.",
  tag: "Agents",
  access: manages("agents:read", "agent"),
  rate: "standard",
  http: { method: "get", path: "/v1/agents/:id", successStatus: 200 },
  tool: managementTool("get_agent", "Read an agent", { idName: "agentId" }),
  params,
  output: answer,
  errors: ["NOT_FOUND"],
});

export const getAgentBudgetPolicy = define({
  summary: "Read an agent's budget policy",
  description:
    "The policy as its actor has it now, with usage and the `version` that a change must name. Specification 2.1, 4.1.",
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
    "A partial change: a field left out stays, null clears a ceiling. A stale `version` is 409. A limit may be lowered " +
    "below what is used: it then stops the next payment. Specification 2.1, 4.1, 5.4.",
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
    "Pausing a paused agent is 200. Specification 3.1.",
  tag: "Agents",
  access: manages("agents:write", "agent"),
  rate: "standard",
  http: { method: "post", path: "/v1/agents/:id/pause", successStatus: 200 },
  tool: managementTool("pause_agent", "Pause an agent", { idName: "agentId", hints: changes }),
  params,
  output: answer,
  errors: ["NOT_FOUND", "AGENT_ARCHIVED"],
});

export const resumeAgent = define({
  summary: "Resume a paused agent",
  description: "The agent may pay again. Resuming an active agent is 200. Specification 3.1.",
  tag: "Agents",
  access: manages("agents:write", "agent"),
  rate: "standard",
  http: { method: "post", path: "/v1/agents/:id/resume", successStatus: 200 },
  tool: managementTool("resume_agent", "Resume a paused agent", { idName: "agentId", hints: changes }),
  params,
  output: answer,
  errors: ["NOT_FOUND", "AGENT_ARCHIVED"],
});
