import { randomBytes } from "node:crypto";
import type { AgentDocument, AgentKeyRecord, TeamDocument, WalletRecord } from "../../src/store/documents.ts";
import { createdEvent } from "../../src/store/journal.ts";
import { NoSuchActor } from "../../src/actors/no-such-actor.ts";
import type { AgentReply } from "../../src/domain/agent/commands.ts";
import { isDeliverable } from "../../src/domain/agent/access.ts";
import { labelsOf, setLabelsIn } from "../../src/domain/agent/labels.ts";
import type { BudgetPolicy } from "../../src/domain/ledger/policy.ts";
import { formatApiKey, last4 } from "../../src/domain/api-key.ts";
import { type Refusal, refusal } from "../../src/domain/errors.ts";
import { ok, refused } from "../../src/domain/result.ts";
import { firstKeyId } from "../../src/lib/ids.ts";
import { mcpConfigBlock } from "../mcp/config-block.ts";
import type { ManagementPrincipal } from "../../src/identity/principals.ts";
import { agentView } from "../../src/views/views.ts";
import type { HandlerDependencies } from "./dependencies.ts";
import { profileOf } from "./dependencies.ts";
import type { Handler } from "./types.ts";

/** The version of the policy that an agent is created with; each change makes it one more. */
const CREATED_VERSION = 1;

type CreateBody = Parameters<Handler<"createAgent">>[0]["body"];
type CreateReply = Awaited<ReturnType<Handler<"createAgent">>>;

interface NewAgent {
  readonly record: AgentDocument;
  readonly apiKey: string;
  /** Null where the key is not delivered again. */
  readonly sealed: string | null;
}

/**
 * Creates an agent: its actor, its wallet's address and the sealed key come
 * first, each repeatable under the same id; one transaction commits the record, which makes the key good, with the event
 * and the delivery. What died before that is finished by a replay, or given up by the actor when the window ends.
 */
export function createAgentHandler(dependencies: HandlerDependencies): Handler<"createAgent"> {
  const {
    actors,
    clock,
    collections,
    agents,
    creates,
    hashApiKey,
    keyDeliveries,
    ledgers,
    mcpUrl,
    wallets,
    windows,
  } = dependencies;

  const untilOf = (begunAt: Date): Date =>
    new Date(begunAt.getTime() + dependencies.keyDeliveryWindowSeconds * 1_000);

  /** Its address follows from the agent's id and its owner, so it can be funded before it is deployed. */
  async function newWallet(
    id: string,
    { organizationId }: ManagementPrincipal,
  ): Promise<WalletRecord | null> {
    if (wallets === null) return null;
    // Read again: a wallet's owner is final, and callers' organizations may be some seconds old.
    const organization = await collections.organizations.findOne({ _id: organizationId });
    const owner = organization?.walletOwner ?? wallets.defaultOwner;
    return owner === null ? null : wallets.newWallet(id, owner);
  }

  /** Nothing is kept of a key that a person is given, nor of one that is too late to be delivered again. */
  async function seal(id: string, until: Date, apiKey: string, key: string | null): Promise<string | null> {
    if (key === null || !isDeliverable(until.getTime(), clock().getTime())) return null;
    return keyDeliveries.seal(id, key, apiKey);
  }

  /** Its money is the ledger's from then on; why not, where the project takes no more agents. */
  async function openAccount(agent: AgentDocument, keyId: string): Promise<Refusal | null> {
    const { _id: agentId, name, policy, teamId } = agent;
    const reply = await ledgers.submit(agent, { kind: "open_account", agentId, teamId, name, policy, keyId });
    return reply.kind === "project_full" ? refusal("PROJECT_FULL") : null;
  }

  async function prepare(
    id: string,
    begunAt: Date,
    body: CreateBody,
    team: TeamDocument,
    principal: ManagementPrincipal,
  ): Promise<NewAgent | Refusal> {
    const apiKey = formatApiKey("agent", randomBytes);
    const until = untilOf(begunAt);
    const key: AgentKeyRecord = {
      id: firstKeyId(id),
      hash: hashApiKey(apiKey),
      last4: last4(apiKey),
      createdAt: begunAt,
      lastUsedAt: null,
    };
    const draft: AgentDocument = {
      ...recordOf({ id, body, team, principal, key, now: clock() }),
      keyDeliverableUntil: principal.type === "session" ? null : until,
    };
    const firstKey = {
      keyId: key.id,
      lineageId: draft.createdByLineage,
      deliverableUntil: until.getTime(),
    };
    const machinesKey = principal.type === "session" ? null : (body.idempotencyKey ?? null);
    // The actor runs before its key is good, and before there is anything that it has to destroy if all ends here.
    const started = actors.startAgent(profileOf(draft), firstKey);
    const [wallet, [sealed, full]] = await Promise.all([
      newWallet(id, principal),
      started.then(() => Promise.all([seal(id, until, apiKey, machinesKey), openAccount(draft, key.id)])),
    ]);
    if (full !== null) return full;
    return { record: { ...draft, wallet }, apiKey, sealed };
  }

  /** The key of a create that was just committed: given out here, or, where that took too long, never. */
  function firstAnswer({ apiKey, record }: NewAgent): CreateReply {
    const isTooLate = !isStillDeliverable(record, clock());
    return ok({
      body: isTooLate ? { ...answer(record, null), keyDelivery: "expired" } : answer(record, apiKey),
    });
  }

  /** Null: the agent is archived, its actor has ended, and nothing of it is delivered any more. */
  async function provenBy(agentId: string, lineageId: string): Promise<AgentReply | null> {
    try {
      return await agents.submit(agentId, { kind: "prove_non_delivery", lineageId });
    } catch (error) {
      if (!(error instanceof NoSuchActor)) throw error;
      const agent = await collections.agents.findOne({ _id: agentId });
      if (agent?.lifecycle === "archived") return null;
      throw error;
    }
  }

  /**
   * The proof is in the actor before the answer is on its way, and no server can deliver the key any more, whatever its
   * clock says. False while the window is open by the actor's time.
   */
  async function isProvenUndelivered(agent: AgentDocument, lineageId: string): Promise<boolean> {
    const reply = await provenBy(agent._id, lineageId);
    if (reply !== null && (reply.kind !== "non_delivery" || !reply.windowOver)) return false;
    // The actor's own timer has, or is about to. What a person created has no window to close.
    if ((agent.keyDeliverableUntil ?? null) !== null) await windows.close(agent._id);
    return true;
  }

  /** A replay. */
  async function replayed(
    agent: AgentDocument,
    principal: ManagementPrincipal,
    idempotencyKey: string | undefined,
  ): Promise<CreateReply> {
    if (principal.type === "session" || idempotencyKey === undefined) return again(answer(agent, null));
    const until = agent.keyDeliverableUntil ?? null;
    if (until !== null && isDeliverable(until.getTime(), clock().getTime())) {
      if (agent.key?.id !== firstKeyId(agent._id) || agent.lifecycle === "archived") {
        return again(answer(agent, null));
      }
      const apiKey = await keyDeliveries.open(agent._id, idempotencyKey, until);
      if (apiKey !== null) return again(answer(agent, apiKey));
      return again({ ...answer(agent, null), keyDelivery: "expired" });
    }
    if (await isProvenUndelivered(agent, principal.lineageId)) {
      return again({ ...answer(agent, null), keyDelivery: "expired" });
    }
    return refused(refusal("CREATE_RETRYABLE", undefined, { retryAfterSeconds: 1 }));
  }

  const answer = answerWith(mcpUrl);

  return async ({ body }, { audit, deadline, principal, target: team }) => {
    const created = await creates.once<AgentDocument, NewAgent>({
      kind: "agent",
      audit,
      principal,
      deadline,
      idempotencyKey: body.idempotencyKey,
      payload: payloadOf(body),
      parent: { kind: "team", id: team._id, archivedAt: team.archivedAt },
      find: (id) => collections.agents.findOne({ _id: id }),
      prepare: (id, begunAt) => prepare(id, begunAt, body, team, principal),
      async insert({ record, sealed }, session) {
        await keyDeliveries.begin(record._id, sealed, session);
        await collections.agents.insertOne(record, { session });
        await collections.events.insertOne(createdEvent(record), { session });
        return { after: createdOf(record) };
      },
      discarding: {
        isDue: (begunAt) => !isDeliverable(untilOf(begunAt).getTime(), clock().getTime()),
        discard: (id) => windows.close(id),
        async isDiscarded(id) {
          if (!(await keyDeliveries.isDiscarded(id))) return false;
          await keyDeliveries.forget(id);
          return true;
        },
      },
    });
    if (!created.ok) return created;
    const { value } = created;
    return value.replayed ? replayed(value.record, principal, body.idempotencyKey) : firstAnswer(value.made);
  };
}

/** What is kept of a new agent in the audit log. */
const createdOf = ({ policy, scopes }: AgentDocument) => ({ ...policy, version: CREATED_VERSION, scopes });

/** A machine's key: a person's is given once, whenever that is. */
const isStillDeliverable = (
  { keyDeliverableUntil = null, createdByLineage }: AgentDocument,
  now: Date,
): boolean =>
  keyDeliverableUntil === null
    ? createdByLineage === null
    : isDeliverable(keyDeliverableUntil.getTime(), now.getTime());

/** What a replay must repeat; a default that is spelt out is the same. */
const payloadOf = (body: CreateBody) => ({
  name: body.name,
  teamId: body.teamId,
  ...setLabelsIn(body),
  ...policyIn(body),
  scopes: body.scopes ?? null,
});

interface Draft {
  readonly id: string;
  readonly body: CreateBody;
  readonly team: TeamDocument;
  readonly principal: ManagementPrincipal;
  readonly key: AgentKeyRecord;
  readonly now: Date;
}

const recordOf = ({ body, id, key, now, principal, team }: Draft): AgentDocument => ({
  _id: id,
  organizationId: principal.organizationId,
  projectId: team.projectId,
  teamId: team._id,
  name: body.name,
  ...labelsOf(body),
  scopes: body.scopes ?? null,
  lifecycle: "active",
  policy: policyIn(body),
  policyVersion: CREATED_VERSION,
  spentCents: 0,
  reservedCents: 0,
  wallet: null,
  key,
  authenticatedAt: null,
  walletDetached: false,
  ...creatorOf(principal),
  createdAt: now,
  updatedAt: now,
  archivedAt: null,
  revision: 1,
  accountRevision: 1,
});

/** The key that created it, and the lineage that a machine's archive asks for. */
function creatorOf(principal: ManagementPrincipal): Pick<AgentDocument, "createdBy" | "createdByLineage"> {
  if (principal.type === "session") {
    return { createdBy: { type: "user", id: principal.userId }, createdByLineage: null };
  }
  const { keyId, lineageId } = principal;
  return { createdBy: { type: "organization_key", id: keyId }, createdByLineage: lineageId };
}

const answerWith = (mcpUrl: string) => (agent: AgentDocument, apiKey: string | null) => ({
  agent: agentView(agent),
  apiKey,
  mcpConfigBlock: apiKey === null ? null : mcpConfigBlock(mcpUrl, apiKey),
});

const again = <B>(body: B) => ok({ status: 200 as const, body });

/** A limit that is not given is none. */
const policyIn = (body: CreateBody): BudgetPolicy => ({
  budgetCents: body.budgetCents,
  autoApprovalThresholdCents: body.autoApprovalThresholdCents ?? null,
  perTransactionLimitCents: body.perTransactionLimitCents ?? null,
  dailySpendLimitCents: body.dailySpendLimitCents ?? null,
  hourlyVelocityLimit: body.hourlyVelocityLimit ?? null,
  dailyVelocityLimit: body.dailyVelocityLimit ?? null,
});
