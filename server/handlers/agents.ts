import type { Filter } from "mongodb";
import { MongoServerError } from "mongodb";
import { randomBytes } from "node:crypto";
import type { AgentDocument, AgentKeyRecord, TeamDocument } from "../../activities/documents.ts";
import type { BudgetPolicy } from "../../src/domain/agent/policy.ts";
import { formatApiKey, last4 } from "../../src/domain/api-key.ts";
import { refusal } from "../../src/domain/errors.ts";
import type { Result } from "../../src/domain/result.ts";
import { ok, refused } from "../../src/domain/result.ts";
import type { AgentCreateDocument } from "../collections.ts";
import type { Page } from "../lists.ts";
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

  const find = (id: string, principal: ManagementPrincipal) =>
    collections.agents.findOne({ _id: id, organizationId: principal.organizationId });

  async function budgetPolicy(agentId: string) {
    await caughtUp(mailboxes.flush(agentId));
    const budget = await actors.budget(agentId, { now: clock().getTime(), amountCents: null });
    return ok({ body: budgetPolicyView(budget) });
  }

  async function setLifecycle(id: string, kind: "pause" | "resume", principal: ManagementPrincipal) {
    if ((await find(id, principal)) === null) return refused(refusal("NOT_FOUND"));
    const reply = await mailboxes.submit(id, { kind });
    if (reply.kind === "archived") return refused(refusal("AGENT_ARCHIVED"));
    // The record is what keeps a paused agent's key out, so the answer waits until it says so.
    await mailboxes.flush(id);
    const agent = await find(id, principal);
    if (agent === null) return refused(refusal("NOT_FOUND"));
    if (reply.kind === "lifecycle" && agent.lifecycle !== reply.lifecycle) {
      throw new ActorUnavailable("the agent's record does not follow its actor");
    }
    return ok({ body: { agent: agentView(agent) } });
  }

  return {
    createAgent: createAgentHandler(dependencies),

    async listAgents({ query }, { principal }) {
      const filter: Filter<AgentDocument> = {
        organizationId: principal.organizationId,
        ...(query.projectId === undefined ? {} : { projectId: query.projectId }),
        ...(query.teamId === undefined ? {} : { teamId: query.teamId }),
        ...(query.state === undefined ? {} : { lifecycle: query.state }),
      };
      const { cursor, limit } = query;
      const request = { collection: collections.agents, list: "agents", filter, limit, cursor };
      const page = await lists.page(request);
      if (!page.ok) return page;
      const behind = page.value.items.filter(({ _id }) => mailboxes.isBehind(_id));
      if (behind.length > 0) {
        await caughtUp(Promise.all(behind.map(({ _id }) => mailboxes.flush(_id))));
        const current = await lists.page(request);
        if (current.ok) return ok({ body: agentsView(current.value) });
      }
      return ok({ body: agentsView(page.value) });
    },

    async getAgent({ params }, { principal }) {
      if ((await find(params.id, principal)) === null) return refused(refusal("NOT_FOUND"));
      await caughtUp(mailboxes.flush(params.id));
      const agent = await find(params.id, principal);
      return agent === null ? refused(refusal("NOT_FOUND")) : ok({ body: { agent: agentView(agent) } });
    },

    async getAgentBudgetPolicy({ params }, { principal }) {
      if ((await find(params.id, principal)) === null) return refused(refusal("NOT_FOUND"));
      return budgetPolicy(params.id);
    },

    async updateAgentBudgetPolicy({ params, body: { version, ...fields } }, { principal }) {
      if ((await find(params.id, principal)) === null) return refused(refusal("NOT_FOUND"));
      const patch = withoutUndefined(fields);
      const reply = await mailboxes.submit(params.id, { kind: "change_policy", patch, version });
      if (reply.kind === "archived") return refused(refusal("AGENT_ARCHIVED"));
      if (reply.kind === "version_conflict") return refused(refusal("VERSION_CONFLICT"));
      return budgetPolicy(params.id);
    },

    pauseAgent: ({ params }, { principal }) => setLifecycle(params.id, "pause", principal),
    resumeAgent: ({ params }, { principal }) => setLifecycle(params.id, "resume", principal),
  };
}

const agentsView = ({ items, nextCursor }: Page<AgentDocument>) => ({
  agents: items.map(agentView),
  nextCursor,
});

type Defined<T> = { [K in keyof T]?: Exclude<T[K], undefined> };

/** Only the fields that were sent: an absent one stays as it is, null clears. */
function withoutUndefined<T extends object>(fields: T): Defined<T>;
function withoutUndefined(fields: object): object {
  return Object.fromEntries(Object.entries(fields).filter(([, value]) => value !== undefined));
}

/**
 * Creates an agent. The id is fixed before anything is done, so a create that died halfway is finished by its
 * replay; the actor runs before its key exists, so no key ever lacks an actor.
 */
function createAgentHandler(dependencies: HandlerDependencies): Handler<"createAgent"> {
  const { actors, clock, collections, hashApiKey, mcpUrl } = dependencies;

  async function checkPlace(body: CreateBody, principal: ManagementPrincipal): Promise<Result<TeamDocument>> {
    const { organizationId } = principal;
    const organization = await collections.organizations.findOne({ _id: organizationId });
    if (organization?.status !== "ready") return refused(refusal("ORG_NOT_READY"));
    const team = await collections.teams.findOne({ _id: body.teamId, organizationId });
    if (team === null) return refused(refusal("NOT_FOUND"));
    return team.archivedAt === null ? ok(team) : refused(refusal("CONTAINER_ARCHIVED"));
  }

  /** What was reserved under the key before: null when nothing was. */
  async function earlierId(reservation: AgentCreateDocument): Promise<Result<string> | null> {
    const earlier = await collections.agentCreates.findOne({ _id: reservation._id });
    if (earlier === null) return null;
    if (earlier.payloadHash !== reservation.payloadHash) return refused(refusal("IDEMPOTENCY_KEY_REUSED"));
    return ok(earlier.agentId);
  }

  /** The id this create has for good: the one recorded under its idempotency key, or the new one. */
  async function reserveId(reservation: AgentCreateDocument): Promise<Result<string>> {
    try {
      await collections.agentCreates.insertOne(reservation);
      return ok(reservation.agentId);
    } catch (error) {
      if (!isDuplicate(error)) throw error;
    }
    return (await earlierId(reservation)) ?? ok(reservation.agentId);
  }

  function reservationOf(body: CreateBody, principal: ManagementPrincipal): AgentCreateDocument | null {
    const { idempotencyKey, ...payload } = body;
    if (idempotencyKey === undefined) return null;
    const owner = [principal.organizationId, "user", principal.userId, idempotencyKey];
    return {
      _id: shortHash(JSON.stringify(owner)),
      payloadHash: payloadHash(payload),
      agentId: newUuid(),
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
      createdBy: { type: "user", id: principal.userId },
      createdAt: now,
      updatedAt: now,
      archivedAt: null,
      revision: 1,
    };
    return { agent, apiKey };
  }

  /** The committed agent, whatever became of its team since; null when the create is new or was never finished. */
  async function replay(reservation: AgentCreateDocument) {
    const id = await earlierId(reservation);
    if (id === null || !id.ok) return id;
    const existing = await collections.agents.findOne({ _id: id.value });
    return existing === null ? null : ok(replayed(existing));
  }

  async function create(body: CreateBody, principal: ManagementPrincipal) {
    const reservation = reservationOf(body, principal);
    const earlier = reservation === null ? null : await replay(reservation);
    if (earlier !== null) return earlier;
    const place = await checkPlace(body, principal);
    if (!place.ok) return place;
    const id = reservation === null ? ok(newUuid()) : await reserveId(reservation);
    if (!id.ok) return id;
    const { agent, apiKey } = newAgent(id.value, body, place.value, principal);
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

  return ({ body }, { principal }) => create(body, principal);
}

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
