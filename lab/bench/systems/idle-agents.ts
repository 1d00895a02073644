import { AgentProofs } from "../../../src/agents/agent-proofs.ts";
import { randomBytes } from "node:crypto";
import { setTimeout as sleep } from "node:timers/promises";
import type { Client } from "@temporalio/client";
import type { Db } from "mongodb";
import { type AgentDocument, profileOf } from "../../../src/store/documents.ts";
import { TemporalCalls } from "../../../src/actors/calls.ts";
import { TemporalActors } from "../../../src/actors/temporal.ts";
import { collectionsOf } from "../../../src/store/collections.ts";
import { newUuid } from "../../../src/lib/ids.ts";
import { isUnavailable } from "../../../src/lib/unavailable.ts";
import { apiKeyHashes } from "../../../src/secrets/api-key-hash.ts";
import { MasterKey } from "../../../src/secrets/master-key.ts";
import { firstKeyId, formatApiKey, last4 } from "../../../src/domain/api-key.ts";
import type { LedgerCommand } from "../../../src/messages/ledger.ts";
import type { PayingAgent } from "./payments-agents.ts";
import { BUDGET_CENTS, MASTER_KEY } from "./system.ts";

/** Place of the agents. */
export interface AgentScope {
  readonly organizationId: string;
  readonly projectId: string;
  readonly teamId: string;
}

export interface IdleAgents {
  readonly db: Db;
  readonly temporal: Client;
  readonly taskQueue: string;
  readonly place: AgentScope;
  readonly count: number;
  /** None is begun after that. */
  readonly withinMs: number;
}

const IN_FLIGHT = 50;
/** Accounts that are opened in one update of the ledger. */
const OPENED_AT_ONCE = 100;
/** For so long the worker may be busy with what it was given before. */
const ANSWERED_MS = 180_000;

/** As the service has it by default. */
const DELIVERY_WINDOW_MS = 1_800_000;

/**
 * Agents as if persons had created them, at less expense: their actors are started by what the service starts them with,
 * their records are written in bulk, and no request, reservation, wallet or event is made. In the order of their start.
 */
export async function makeIdleAgents(options: IdleAgents): Promise<readonly PayingAgent[]> {
  const { count, db, place, taskQueue, temporal, withinMs } = options;
  const actors = new TemporalActors(new TemporalCalls(temporal, taskQueue));
  const until = performance.now() + withinMs;
  const made: PayingAgent[] = [];
  while (made.length < count && performance.now() < until) {
    const some = newAgents(place, made.length, Math.min(OPENED_AT_ONCE, count - made.length));
    const records = some.map(({ record }) => record);
    const waiting = [...records];
    const start = async (): Promise<void> => {
      for (let record = waiting.shift(); record !== undefined; record = waiting.shift()) {
        const deliverableUntil = record.createdAt.getTime() + DELIVERY_WINDOW_MS;
        const firstKey = { keyId: firstKeyId(record._id), lineageId: null, deliverableUntil };
        await untilAnswered(() => actors.startAgent(profileOf(record), firstKey));
      }
    };
    await Promise.all(Array.from({ length: IN_FLIGHT }, start));
    await untilAnswered(() => actors.submitToLedger(place, records.map(accountOf)));
    // Soon after: an actor that finds no record of its agent takes it for a create that came to nothing.
    await insert(db, records);
    made.push(...some.map(({ apiKey, record }) => ({ id: record._id, apiKey })));
  }
  return made;
}

interface NewAgent {
  readonly record: AgentDocument;
  readonly apiKey: string;
}

function newAgents(place: AgentScope, from: number, count: number): NewAgent[] {
  const masterKey = MasterKey.parse(MASTER_KEY, "the bench");
  const proofs = new AgentProofs(masterKey.macs("agent-proofs"));
  return Array.from({ length: count }, (_none, index) => {
    const apiKey = formatApiKey("agent", randomBytes);
    const hash = apiKeyHashes(masterKey).make(apiKey);
    return { record: recordOf(place, from + index + 1, { apiKey, hash, proofs }), apiKey };
  });
}

async function insert(db: Db, records: readonly AgentDocument[]): Promise<void> {
  const { agents, keyDeliveries } = collectionsOf(db);
  await keyDeliveries.insertMany(
    records.map(({ _id, createdAt: at }) => ({ _id, state: "open" as const, sealed: null, at })),
  );
  await agents.insertMany([...records]);
}

/** Repeated: the worker may still be busy with the actors that were started; an actor is started once, and an account opened once. */
async function untilAnswered(call: () => Promise<unknown>): Promise<void> {
  const until = performance.now() + ANSWERED_MS;
  for (;;) {
    try {
      await call();
      return;
    } catch (error) {
      if (!isUnavailable(error) || performance.now() > until) throw error;
      await sleep(1_000);
    }
  }
}

const accountOf = ({ _id, key, name, policy, teamId }: AgentDocument): LedgerCommand => ({
  kind: "open_account",
  agentId: _id,
  teamId,
  name,
  policy,
  keyId: key?.id ?? null,
});

function recordOf(
  place: AgentScope,
  number: number,
  { apiKey, hash, proofs }: { readonly apiKey: string; readonly hash: string; readonly proofs: AgentProofs },
): AgentDocument {
  const _id = newUuid();
  const now = new Date();
  const id = firstKeyId(_id);
  const key = {
    id,
    hash,
    proof: proofs.ofKey(_id, { id, hash }),
    last4: last4(apiKey),
    createdAt: now,
    lastUsedAt: null,
  };
  const record = {
    _id,
    ...place,
    name: `Idle agent ${String(number)}`,
    description: null,
    scopes: null,
    lifecycle: "active" as const,
    policy: {
      budgetCents: BUDGET_CENTS,
      autoApprovalThresholdCents: null,
      perTransactionLimitCents: null,
      dailySpendLimitCents: null,
      hourlyVelocityLimit: null,
      dailyVelocityLimit: null,
    },
    policyVersion: 1,
    spentCents: 0,
    reservedCents: 0,
    wallet: null,
    key,
    keyDeliverableUntil: null,
    appearance: null,
    authenticatedAt: null,
    createdBy: { type: "user" as const, id: "bench" },
    createdByLineage: null,
    createdAt: now,
    updatedAt: now,
    archivedAt: null,
    walletDetached: false,
    revision: 1,
    accountRevision: 1,
    accountStatus: "active" as const,
    accountProof: "",
  };
  return { ...record, proof: proofs.ofAgent(record) };
}
