import { z } from "zod";
import { createdLabels, sentLabels } from "../agent-labels.ts";
import { AGENT_TOOLS } from "../tool-names.ts";
import { manages, reads } from "../access.ts";
import { define } from "../define.ts";
import { CREATE_INSIDE_ERRORS } from "../creates.ts";
import {
  cents,
  choices,
  heldCents,
  idempotencyKey,
  name,
  paging,
  paymentCents,
  timestamp,
  uuid,
} from "../primitives.ts";
import { spendLimits } from "../spend-limits.ts";
import { agent, budgetPolicy, keySummary, listOf, policyFields, wallet } from "../records.ts";
import { changes, creates, managementTool, switches } from "../tools.ts";
import type { PersonRequirements } from "../types.ts";

const params = z.strictObject({ id: uuid });
const answer = z.strictObject({ agent });

/** Only people, with a step-up, may have the treasury's money moved. */
const byPeopleIf = (isTarget: (sent: unknown) => boolean) => {
  const withTarget = z.object({ walletTargetCents: z.unknown().refine(isTarget) });
  const requirementsOf = (body: unknown): PersonRequirements | null =>
    withTarget.safeParse(body).success ? { role: "admin", stepUp: true } : null;
  return { requirementsOf };
};

export const createAgentBody = z.strictObject({
  name,
  teamId: uuid.meta({ description: "The team that the agent is created in." }),
  ...z.strictObject(policyFields).partial().required({ budgetCents: true }).shape,
  spendLimits: spendLimits.optional(),
  walletTargetCents: paymentCents.nullable().optional(),
  ...createdLabels,
  scopes: choices(AGENT_TOOLS, "AgentTool")
    .optional()
    .meta({ description: "The tools that the agent may use; if left out, all." }),
  idempotencyKey: idempotencyKey.optional(),
});

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
    "Creates an agent with its policy, its wallet and its first API key. A limit that is left out or null does not " +
    "apply. Repeating the request with the same idempotencyKey and payload answers 200 with the same agent and never " +
    "creates another; a different payload is 422. An organization key must send an idempotencyKey, and its daily " +
    "create limit applies. For about 30 minutes a repeat by that key, or by a key that it was rotated into, returns " +
    "the agent's API key again; after that `apiKey` and `mcpConfigBlock` are null and `keyDelivery` is `expired`, " +
    "also in a first answer that took that long. A person receives the API key in the first answer only. Only a person, " +
    "after a step-up, may set walletTargetCents; 404 where there is no wallet or no treasury. Repeat the " +
    "request after a time-out, REQUEST_IN_PROGRESS, ORG_NOT_READY, CREATE_RETRYABLE and any other 5xx.",
  tag: "Agents",
  access: {
    ...manages("agents:write", "newAgent", { role: "admin" }),
    ...byPeopleIf((sent) => sent !== undefined && sent !== null),
  },
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
    "The organization's agents, newest first, including archived ones. Filtering by an unknown project or team gives " +
    "an empty list.",
  tag: "Agents",
  access: reads("agents:read", "list"),
  rate: "standard",
  http: { method: "get", path: "/v1/agents", successStatus: 200 },
  tool: managementTool("list_agents", "List agents"),
  query: z.strictObject({
    ...paging,
    projectId: uuid.optional(),
    teamId: uuid.optional(),
    state: z.enum(["active", "paused", "archived"]).optional(),
    name: name.optional().meta({ description: "Only agents whose name contains this text, ignoring case." }),
    with: z
      .enum(["lastPayment"])
      .optional()
      .meta({ description: "`lastPayment`: adds each agent's newest payment." }),
  }),
  output: listOf("agents", agent),
  errors: ["BAD_CURSOR"],
});

const total = z.int().min(0);
const count = (what: string) => total.meta({ description: `How many are ${what}.` });

export const summarizeAgents = define({
  summary: "Summarize agents",
  description:
    "How many agents are in each state, and the sums of the budgets of agents that are not archived, with what is " +
    "spent and reserved of them. An organization key sees only its binding. Filtering by an unknown project or team " +
    "gives zeros. The sums follow payments within about a second.",
  tag: "Agents",
  access: reads("agents:read", "list"),
  rate: "summary",
  http: { method: "get", path: "/v1/agents/summary", successStatus: 200 },
  query: z.strictObject({ projectId: uuid.optional(), teamId: uuid.optional() }),
  output: z.strictObject({
    counts: z
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
  description: "Returns one agent.",
  tag: "Agents",
  access: reads("agents:read", "agent"),
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
    "The address of the agent's wallet and its current balance on the chain, with the part of it in the agent's " +
    "pocket. Both are null if the chain does not answer; `wallet` is null for an agent without a wallet.",
  tag: "Agents",
  access: reads("agents:read", "agent"),
  rate: "standard",
  http: { method: "get", path: "/v1/agents/:id/wallet", successStatus: 200 },
  params,
  output: z.strictObject({
    wallet: wallet
      .extend({
        balanceCents: heldCents.nullable(),
        pocketCents: heldCents.nullable(),
        currency: z.literal("USD"),
      })
      .nullable(),
  }),
  errors: ["NOT_FOUND"],
});

export const fundAgent = define({
  summary: "Fund an agent's wallet from the treasury",
  description:
    "Moves money from the organization's treasury to the agent's wallet; the event `wallet.funded` follows. `pending`: " +
    "the chain has not settled it yet; repeat the request with its idempotencyKey to see its end. `failed`: nothing " +
    "was moved, see failureReason. Repeating the request with the same idempotencyKey and payload answers 200 and " +
    "moves nothing again. 404 where there is no wallet or no treasury. People only, with step-up.",
  tag: "Agents",
  access: manages("never", "agent", { role: "admin", stepUp: true }),
  rate: "standard",
  http: { method: "post", path: "/v1/agents/:id/fund", successStatus: 201 },
  params,
  body: z.strictObject({ amountCents: paymentCents, idempotencyKey: idempotencyKey.optional() }),
  output: z.strictObject({
    funding: z.strictObject({
      id: z.string(),
      agentId: uuid,
      amountCents: cents,
      currency: z.literal("USD"),
      status: z.enum(["pending", "settled", "failed"]),
      failureCode: z.string().nullable(),
      failureReason: z.string().nullable(),
      onChainTxHash: z.string().nullable(),
      chainCaip2: z.string().nullable(),
      createdAt: timestamp,
      settledAt: timestamp.nullable(),
    }),
  }),
  errors: ["NOT_FOUND", "AGENT_ARCHIVED", "IDEMPOTENCY_KEY_REUSED"],
});

/** The policy as shown to people, including the balance at which the wallet is kept. */
const fundedPolicy = budgetPolicy.extend({ walletTargetCents: paymentCents.nullable() });

export const getAgentBudgetPolicy = define({
  summary: "Read an agent's budget policy",
  description: "The policy in force, its usage, and the `version` that a change must name.",
  tag: "Agents",
  access: reads("agents:write", "agent"),
  rate: "standard",
  http: { method: "get", path: "/v1/agents/:id/budget-policy", successStatus: 200 },
  tool: managementTool("get_agent_budget_policy", "Read an agent's budget policy", { idName: "agentId" }),
  params,
  output: fundedPolicy,
  errors: ["NOT_FOUND"],
});

export const updateAgentBudgetPolicy = define({
  summary: "Change an agent's budget policy",
  description:
    "A partial change: a field that is left out stays unchanged, null removes a limit, and [] all `spendLimits`. An outdated `version` is " +
    "409. A limit below what is already used is accepted and stops further payments.",
  tag: "Agents",
  access: {
    ...manages("agents:write", "agent", { role: "admin", stepUp: true }),
    ...byPeopleIf((sent) => sent !== undefined),
  },
  rate: "standard",
  http: { method: "patch", path: "/v1/agents/:id/budget-policy", successStatus: 200 },
  tool: managementTool("update_agent_budget_policy", "Change an agent's budget policy", {
    idName: "agentId",
    hints: changes,
  }),
  params,
  body: z.strictObject({
    ...z.strictObject(policyFields).partial().shape,
    spendLimits: spendLimits.optional(),
    walletTargetCents: paymentCents.nullable().optional(),
    version: z.int(),
  }),
  output: fundedPolicy,
  errors: ["SESSION_REQUIRED", "NOT_FOUND", "VERSION_CONFLICT", "AGENT_ARCHIVED"],
});

export const pauseAgent = define({
  summary: "Pause an agent",
  description:
    "Takes effect at once: every request with the agent's key is refused. The key, the configuration and payments on " +
    "hold stay. Pausing a paused agent is 200.",
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
  summary: "Read how an agent is connected",
  description:
    "To copy: a request that makes a first payment, the configuration of each common MCP client, and a program for " +
    "each common agent framework. The service does not know the agent's key, so a `text` contains " +
    "`keyPlaceholder` instead.",
  tag: "Agents",
  access: reads("agents:read", "agent"),
  rate: "standard",
  http: { method: "get", path: "/v1/agents/:id/connect", successStatus: 200 },
  params,
  output: z.strictObject({
    mcpUrl: z.string().meta({ description: "The MCP endpoint." }),
    keyPlaceholder: z.string().meta({ description: "Replace it by the agent's key in every `text`." }),
    clients: z
      .array(
        z.strictObject({
          client: z.string().meta({ description: "The client's id, such as `claude-code`." }),
          name: z.string(),
          kind: z.enum(["trial", "mcp_client", "framework"]).meta({
            description:
              "`trial`: a request that makes a first payment. `mcp_client`: the configuration of an MCP client. " +
              "`framework`: a program or workflow of an agent framework.",
          }),
          place: z.string().meta({ description: "The file that the text belongs in, or `a shell`." }),
          format: z
            .enum(["json", "toml", "shell", "python", "typescript"])
            .meta({ description: "The format of `text`." }),
          text: z.string().meta({ description: "To copy, after the placeholder is replaced." }),
          remark: z
            .string()
            .nullable()
            .meta({
              description:
                "What to know before using it, such as which key the model needs, or that the address is plain http. " +
                "Else null.",
            }),
        }),
      )
      .meta({ description: "The request, the common clients and the common frameworks." }),
  }),
  errors: ["NOT_FOUND"],
});

export const mintAgentKey = define({
  summary: "Create an agent's key",
  description:
    "Creates a key for an agent that has none and shows its value once. While a key is active the answer is 409 " +
    "KEY_ALREADY_EXISTS: revoke that key first. People only, with step-up.",
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
    "Revokes the active key: it is refused from its next request on. Without an active key the answer is 404. " +
    "Pausing the agent and revoking its key is the emergency stop; creating a key and resuming the agent reverses it. " +
    "People only, with step-up.",
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
    "Permanent. Revokes the agent's key, denies its payments on hold, and gives up the service's right to spend from " +
    "the wallet; the wallet's balance stays with the organization. Repeat the request until `walletsFailed` is " +
    "empty. People need step-up. An organization key may archive only an agent of its own lineage, whose key " +
    "provably was never delivered, that never authenticated, that holds nothing, and whose keys no person has " +
    "changed. MACHINE_ARCHIVE_DENIED is final. After KEY_STILL_DELIVERABLE, KEY_DELIVERY_UNPROVEN (repeat the " +
    "create) or BALANCE_UNVERIFIABLE the request may succeed later.",
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
