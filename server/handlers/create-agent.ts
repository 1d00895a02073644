import { walletOwnerOf } from "../../src/rails/wallet/treasuries.ts";
import { projectFull } from "../../src/payments/full-ledger.ts";
import { randomBytes } from "node:crypto";
import {
  type AgentDocument,
  type AgentKeyRecord,
  type TeamDocument,
  type WalletRecord,
  profileOf,
} from "../../src/store/documents.ts";
import { createdEvent } from "../../src/store/journal.ts";
import { isDeliverable } from "../../src/domain/agent/access.ts";
import { labelsOf, setLabelsIn } from "../../src/domain/agent/labels.ts";
import { type BudgetPolicy, withSpendLimits } from "../../src/domain/ledger/policy.ts";
import { firstKeyId, formatApiKey, last4 } from "../../src/domain/api-key.ts";
import type { Refusal } from "../../src/domain/errors.ts";
import type { ManagementPrincipal } from "../../src/identity/principals.ts";
import { createAgentAnswers, type NewAgent } from "./create-agent-answers.ts";
import type { HandlerDependencies } from "./dependencies.ts";
import { notFundable } from "./fundings.ts";
import type { Handler } from "./types.ts";

/** Initial version of an agent's policy. Each change increments it. */
const CREATED_VERSION = 1;

type CreateBody = Parameters<Handler<"createAgent">>[0]["body"];

/**
 * Creates an agent. Its actor, its wallet's address and the sealed key come first, each repeatable under the same id.
 * One transaction then commits the record, which activates the key, with the event and the delivery. A create that dies
 * before that is finished by a replay, or given up by the actor when the window ends.
 */
export function createAgentHandler(dependencies: HandlerDependencies): Handler<"createAgent"> {
  const {
    accessProofs,
    actors,
    agentProofs,
    clock,
    collections,
    creates,
    hashApiKey,
    keyDeliveries,
    ledgers,
    wallets,
    windows,
  } = dependencies;
  const { firstAnswer, replayed } = createAgentAnswers(dependencies);

  const untilOf = (begunAt: Date): Date =>
    new Date(begunAt.getTime() + dependencies.keyDeliveryWindowSeconds * 1_000);

  /**
   * Returns the new agent's wallet. Its address follows from the agent's id and the owner, so it can be funded before
   * it is deployed.
   */
  async function newWallet(
    id: string,
    { organizationId }: ManagementPrincipal,
  ): Promise<WalletRecord | null> {
    if (wallets === null) return null;
    // Read again: a wallet's owner is final, and a cached organization may be seconds old.
    const organization = await collections.organizations.findOne({ _id: organizationId });
    const named = organization === null ? null : walletOwnerOf(organization, accessProofs);
    const owner = named ?? wallets.defaultOwner;
    return owner === null ? null : wallets.newWallet(id, owner);
  }

  const isFundable = async ({ organizationId }: ManagementPrincipal): Promise<boolean> =>
    wallets !== null && (await wallets.fundings.hasTreasury(organizationId));

  /** Seals a key for redelivery. A person's key is never kept, nor one whose window has ended. */
  async function seal(id: string, until: Date, apiKey: string, key: string | null): Promise<string | null> {
    if (key === null || !isDeliverable(until.getTime(), clock().getTime())) return null;
    return keyDeliveries.seal(id, key, apiKey);
  }

  /**
   * Opens the account in the ledger, which keeps the agent's money from then on. Returns the refusal if the project has
   * no room for more agents.
   */
  async function openAccount(agent: AgentDocument, keyId: string): Promise<Refusal | null> {
    const { _id: agentId, name, policy, teamId } = agent;
    const reply = await ledgers.submit(agent, { kind: "open_account", agentId, teamId, name, policy, keyId });
    return reply.kind === "project_full" ? projectFull(reply) : null;
  }

  async function prepare(
    id: string,
    begunAt: Date,
    body: CreateBody,
    team: TeamDocument,
    principal: ManagementPrincipal,
  ): Promise<NewAgent | Refusal> {
    // An organization with a treasury has an owner, so its agents have wallets.
    if (targetIn(body) !== null && !(await isFundable(principal))) return notFundable();
    const apiKey = formatApiKey("agent", randomBytes);
    const until = untilOf(begunAt);
    const named = { id: firstKeyId(id), hash: hashApiKey(apiKey) };
    const key: AgentKeyRecord = {
      ...named,
      proof: agentProofs.ofKey(id, named),
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
    // The actor runs before the key is valid, and before there is anything it must destroy if the create fails.
    const started = actors.startAgent(profileOf(draft), firstKey);
    const [wallet, [sealed, full]] = await Promise.all([
      newWallet(id, principal),
      started.then(() => Promise.all([seal(id, until, apiKey, machinesKey), openAccount(draft, key.id)])),
    ]);
    if (full !== null) return full;
    const record = { ...draft, wallet };
    const proof = agentProofs.ofAgent(record);
    const accountProof = accessProofs.make("agentAccount", record);
    return { record: { ...record, proof, accountProof }, apiKey, sealed };
  }

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
        await collections.events.insertOne(createdEvent(record, accessProofs), { session });
        const walletTargetCents = targetIn(body);
        if (walletTargetCents === null) return { after: createdOf(record) };
        await wallets?.targets.set(profileOf(record), walletTargetCents, session);
        return { after: { ...createdOf(record), walletTargetCents } };
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

/** Fields of a new agent in the audit log. */
const createdOf = ({ policy, scopes }: AgentDocument) => ({ ...policy, version: CREATED_VERSION, scopes });

/** Payload that a replay must repeat. A default equals the same value given explicitly. */
const payloadOf = (body: CreateBody) => ({
  name: body.name,
  teamId: body.teamId,
  ...setLabelsIn(body),
  ...policyIn(body),
  walletTargetCents: targetIn(body),
  scopes: body.scopes ?? null,
});

const targetIn = ({ walletTargetCents }: CreateBody): number | null => walletTargetCents ?? null;

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
  // The proofs are set once the wallet is known.
  proof: "",
  updatedAt: now,
  archivedAt: null,
  revision: 1,
  accountRevision: 1,
  accountStatus: "active",
  accountProof: "",
});

/** Returns the key that created the agent, and the lineage that a machine's archive checks. */
function creatorOf(principal: ManagementPrincipal): Pick<AgentDocument, "createdBy" | "createdByLineage"> {
  if (principal.type === "session") {
    return { createdBy: { type: "user", id: principal.userId }, createdByLineage: null };
  }
  const { keyId, lineageId } = principal;
  return { createdBy: { type: "organization_key", id: keyId }, createdByLineage: lineageId };
}

/** Missing limits become null, which means no limit. */
const policyIn = (body: CreateBody): BudgetPolicy => ({
  budgetCents: body.budgetCents,
  autoApprovalThresholdCents: body.autoApprovalThresholdCents ?? null,
  perTransactionLimitCents: body.perTransactionLimitCents ?? null,
  dailySpendLimitCents: body.dailySpendLimitCents ?? null,
  hourlyVelocityLimit: body.hourlyVelocityLimit ?? null,
  dailyVelocityLimit: body.dailyVelocityLimit ?? null,
  ...withSpendLimits(body.spendLimits),
});
