import { MongoServerError } from "mongodb";
import { randomBytes } from "node:crypto";
import type { AgentDocument, AgentKeyRecord, TeamDocument } from "../../activities/documents.ts";
import type { BudgetPolicy } from "../../src/domain/agent/policy.ts";
import { formatApiKey, last4 } from "../../src/domain/api-key.ts";
import { refusal } from "../../src/domain/errors.ts";
import type { Result } from "../../src/domain/result.ts";
import { ok, refused } from "../../src/domain/result.ts";
import type { CreateDocument } from "../collections.ts";
import { given, type Page } from "../lists.ts";
import { ActorUnavailable } from "../actors/mailbox.ts";
import { newId, newUuid, payloadHash, shortHash } from "../ids.ts";
import type { ManagementPrincipal } from "../principals.ts";
import { agentView, budgetPolicyView } from "../views.ts";
import { caughtUp } from "./catch-up.ts";
import type { HandlerDependencies } from "./dependencies.ts";
import { profileOf } from "./dependencies.ts";
import type { Handler, Handlers } from "./types.ts";

type AgentHandlers = Pick<
  Handlers,
  | "createAgent"
  | "listAgents"
  | "getAgent"
  | "getAgentBudgetPolicy"
  | "updateAgentBudgetPolicy"
  | "pauseAgent"
  | "resumeAgent"
>;

type CreateBody = Parameters<Handler<"createAgent">>[0]["body"];

const DUPLICATE_KEY = 11_000;

/** Agents (management-api.md sections 2.1, 3.1 and 4.1). */
export function agentHandlers(dependencies: HandlerDependencies): AgentHandlers {
  const { actors, clock, collections, lists, mailboxes } = dependencies;

  /** An agent's record as it is by now; the pipeline has found it, and records of agents are never removed. */
  async function current(id: string): Promise<AgentDocument> {
    const agent = await collections.agents.findOne({ _id: id });
    if (agent === null) throw new Error(`agent ${id} has lost its record`);
    return agent;
  }

  async function budgetPolicy(agentId: string) {
    await caughtUp(mailboxes.flush(agentId));
    const budget = await actors.budget(agentId, { now: clock().getTime(), amountCents: null });
    return ok({ body: budgetPolicyView(budget) });
  }

  async function setLifecycle(id: string, kind: "pause" | "resume") {
    const reply = await mailboxes.submit(id, { kind });
    if (reply.kind === "archived") return refused(refusal("AGENT_ARCHIVED"));
    // The record is what keeps a paused agent's key out, so the answer waits until it says so.
    await mailboxes.flush(id);
    const agent = await current(id);
    if (reply.kind === "lifecycle" && agent.lifecycle !== reply.lifecycle) {
      throw new ActorUnavailable("the agent's record does not follow its actor");
    }
    return ok({ body: { agent: agentView(agent) } });
  }

  return {
    createAgent: createAgentHandler(dependencies),

    async listAgents({ query }, { principal, target: reach }) {
      const { cursor, limit, state, ...contained } = query;
      const request = {
        collection: collections.agents,
        list: "agents",
        filter: { organizationId: principal.organizationId, ...given({ ...contained, lifecycle: state }) },
        within: reach.contained,
        limit,
        cursor,
      };
      const page = await lists.page(request);
      if (!page.ok) return page;
      const behind = page.value.items.filter(({ _id }) => mailboxes.isBehind(_id));
      if (behind.length > 0) {
        await caughtUp(Promise.all(behind.map(({ _id }) => mailboxes.flush(_id))));
        const refreshed = await lists.page(request);
        if (refreshed.ok) return ok({ body: agentsView(refreshed.value) });
      }
      return ok({ body: agentsView(page.value) });
    },

    async getAgent(_input, { target: { _id } }) {
      await caughtUp(mailboxes.flush(_id));
      return ok({ body: { agent: agentView(await current(_id)) } });
    },

    getAgentBudgetPolicy: (_input, { target: { _id } }) => budgetPolicy(_id),

    async updateAgentBudgetPolicy({ body: { version, ...fields } }, { target: { _id } }) {
      const command = { kind: "change_policy", patch: given(fields), version } as const;
      const reply = await mailboxes.submit(_id, command);
      if (reply.kind === "archived") return refused(refusal("AGENT_ARCHIVED"));
      if (reply.kind === "version_conflict") return refused(refusal("VERSION_CONFLICT"));
      return budgetPolicy(_id);
    },

    pauseAgent: (_input, { target: { _id } }) => setLifecycle(_id, "pause"),
    resumeAgent: (_input, { target: { _id } }) => setLifecycle(_id, "resume"),
  };
}

const agentsView = ({ items, nextCursor }: Page<AgentDocument>) => ({
  agents: items.map(agentView),
  nextCursor,
});

/**
 * Creates an agent. The id is fixed before anything is done, so a create that died halfway is finished by its
 * replay; the actor runs before its key exists, so no key ever lacks an actor.
 */
function createAgentHandler(dependencies: HandlerDependencies): Handler<"createAgent"> {
  const { actors, clock, collections, hashApiKey, mcpUrl } = dependencies;

  /** What was reserved under the key before: null when nothing was. */
  async function earlierId(reservation: CreateDocument): Promise<Result<string> | null> {
    const earlier = await collections.creates.findOne({ _id: reservation._id });
    if (earlier === null) return null;
    if (earlier.payloadHash !== reservation.payloadHash) return refused(refusal("IDEMPOTENCY_KEY_REUSED"));
    return ok(earlier.createdId);
  }

  /** The id this create has for good: the one recorded under its idempotency key, or the new one. */
  async function reserveId(reservation: CreateDocument): Promise<Result<string>> {
    try {
      await collections.creates.insertOne(reservation);
      return ok(reservation.createdId);
    } catch (error) {
      if (!isDuplicate(error)) throw error;
    }
    return (await earlierId(reservation)) ?? ok(reservation.createdId);
  }

  function reservationOf(body: CreateBody, principal: ManagementPrincipal): CreateDocument | null {
    const { idempotencyKey, ...payload } = body;
    if (idempotencyKey === undefined) return null;
    const owner = [principal.organizationId, ...creatorOf(principal), idempotencyKey];
    return {
      _id: shortHash(JSON.stringify(owner)),
      payloadHash: payloadHash(payload),
      createdId: newUuid(),
      createdAt: clock(),
    };
  }

  function newAgent(id: string, body: CreateBody, team: TeamDocument, principal: ManagementPrincipal) {
    const apiKey = formatApiKey("agent", randomBytes);
    const now = clock();
    const key: AgentKeyRecord = {
      id: newId("akey"),
      hash: hashApiKey(apiKey),
      last4: last4(apiKey),
      createdAt: now,
      lastUsedAt: null,
    };
    const agent: AgentDocument = {
      _id: id,
      organizationId: principal.organizationId,
      projectId: team.projectId,
      teamId: team._id,
      name: body.name,
      description: body.description ?? null,
      scopes: body.scopes ?? null,
      lifecycle: "active",
      policy: initialPolicy(body),
      policyVersion: 1,
      spentCents: 0,
      reservedCents: 0,
      key,
      createdBy:
        principal.type === "session"
          ? { type: "user", id: principal.userId }
          : { type: "organization_key", id: principal.keyId },
      createdAt: now,
      updatedAt: now,
      archivedAt: null,
      revision: 1,
    };
    return { agent, apiKey };
  }

  /** The committed agent, whatever became of its team since; null when the create is new or was never finished. */
  async function replay(reservation: CreateDocument) {
    const id = await earlierId(reservation);
    if (id === null || !id.ok) return id;
    const existing = await collections.agents.findOne({ _id: id.value });
    return existing === null ? null : ok(replayed(existing));
  }

  async function create(body: CreateBody, principal: ManagementPrincipal, team: TeamDocument) {
    const reservation = reservationOf(body, principal);
    const earlier = reservation === null ? null : await replay(reservation);
    if (earlier !== null) return earlier;
    if (team.archivedAt !== null) return refused(refusal("CONTAINER_ARCHIVED"));
    const id = reservation === null ? ok(newUuid()) : await reserveId(reservation);
    if (!id.ok) return id;
    const { agent, apiKey } = newAgent(id.value, body, team, principal);
    await actors.startAgent(profileOf(agent), agent.policy);
    try {
      await collections.agents.insertOne(agent);
    } catch (error) {
      if (!isDuplicate(error)) throw error;
      const winner = await collections.agents.findOne({ _id: id.value });
      if (winner === null) throw error;
      return ok(replayed(winner));
    }
    return ok({ body: { agent: agentView(agent), apiKey, mcpConfigBlock: mcpConfig(mcpUrl, apiKey) } });
  }

  return ({ body }, { principal, target: team }) => create(body, principal, team);
}

/** Whose idempotency key it is: a user's, or that of a key and those that it was rotated into. */
const creatorOf = (principal: ManagementPrincipal): readonly [string, string] =>
  principal.type === "session" ? ["user", principal.userId] : ["organization_key", principal.lineageId];

/** A session gets the key once and never again (management-api.md section 4.1, rule 4). */
const replayed = (agent: AgentDocument) => ({
  status: 200 as const,
  body: { agent: agentView(agent), apiKey: null, mcpConfigBlock: null },
});

const initialPolicy = (body: CreateBody): BudgetPolicy => ({
  budgetCents: body.budgetCents,
  autoApprovalThresholdCents: body.autoApprovalThresholdCents ?? null,
  perTransactionLimitCents: null,
  dailySpendLimitCents: null,
  hourlyVelocityLimit: null,
  dailyVelocityLimit: null,
});

const mcpConfig = (mcpUrl: string, apiKey: string) => ({
  mcpServers: {
    "agent-spending-control": {
      type: "http" as const,
      url: `${mcpUrl}/mcp`,
      headers: { Authorization: `Bearer ${apiKey}` },
    },
  },
});

const isDuplicate = (error: unknown): boolean =>
  error instanceof MongoServerError && error.code === DUPLICATE_KEY;
