import type { OpenPayment, Account, Cap, Ledger, Level, Totals } from "./state.ts";
import { LEDGER_BOUNDS, type LedgerBounds, NO_CAP, NO_TOTALS } from "./state.ts";
import type { BudgetPolicy } from "./policy.ts";
import type { Counted, Usage } from "./usage.ts";
import type { LifecycleEvent } from "../events.ts";
import type { CachedReply } from "./reply-cache.ts";
import type { ClosedKey } from "./closed-keys.ts";
import { weightOf } from "./weight.ts";

/**
 * A ledger as it is carried over to a new run: plain data, and as little of it as says everything. What an idle account has as it was
 * opened is left out, so ten thousand of them stay small.
 */
export interface PackedLedger {
  readonly schemaVersion: 1;
  readonly organizationId: string;
  readonly projectId: string;
  readonly revision: number;
  readonly recordedRevision: number;
  readonly project: PackedLevel;
  readonly teams: readonly PackedTeam[];
  /** In the order of closing: agent, key and what is remembered of it. */
  readonly keys: readonly (readonly [agentId: string, keyHash: string, ...ClosedKey])[];
  readonly replies: readonly (readonly [requestId: string, ...CachedReply])[];
  readonly droppedAccounts: number;
}

interface PackedLevel {
  readonly cap?: Cap;
  readonly totals?: Totals;
  readonly rulesVersion?: number;
  readonly recordedCap?: number;
  readonly capChangedAt?: number;
}

interface PackedTeam extends PackedLevel {
  readonly teamId: string;
  readonly accounts: readonly PackedAccount[];
}

type PackedPolicy = readonly (number | null)[];

interface PackedAccount {
  readonly id: string;
  readonly name: string;
  readonly key: string | null;
  readonly policy: PackedPolicy;
  readonly at: number;
  readonly status?: "paused" | "closed";
  readonly followed?: number;
  readonly policyVersion?: number;
  readonly mirrored?: number;
  readonly spent?: number;
  readonly reserved?: number;
  readonly day?: readonly [date: string, amountCents: number, count: number];
  /** The first instant, then how much later each is, and how many payments it has. */
  readonly instants?: readonly number[];
  readonly sequence?: number;
  readonly open?: readonly OpenPayment[];
  readonly closed?: number;
  readonly evicted?: number;
  readonly revision?: number;
  readonly unconfirmed?: number;
  readonly pausedAt?: number;
  readonly outbox?: readonly LifecycleEvent[];
}

export function packLedger(ledger: Ledger): PackedLedger {
  const { replies, droppedAccounts, keys, organizationId, project, projectId, teams } = ledger;
  const { recordedRevision, revision } = ledger;
  const accounts = new Map<string, PackedAccount[]>();
  for (const account of ledger.accounts.values()) {
    const { teamId } = account;
    const ofTeam = accounts.get(teamId);
    if (ofTeam === undefined) accounts.set(teamId, [packAccount(account)]);
    else ofTeam.push(packAccount(account));
  }
  return {
    schemaVersion: 1,
    organizationId,
    projectId,
    revision,
    recordedRevision,
    project: packLevel(project),
    teams: [...teams].map(([teamId, level]) => ({
      teamId,
      ...packLevel(level),
      accounts: accounts.get(teamId) ?? [],
    })),
    keys: keys.order.flatMap(([agentId, keyHash]) => {
      const key = keys.byAgent.get(agentId)?.get(keyHash);
      return key === undefined ? [] : [[agentId, keyHash, ...key] as const];
    }),
    replies: [...replies].map(([requestId, answer]) => [requestId, ...answer] as const),
    droppedAccounts,
  };
}

export function unpackLedger(packed: PackedLedger, bounds: LedgerBounds = LEDGER_BOUNDS): Ledger {
  const { organizationId, projectId, recordedRevision, revision } = packed;
  const ledger: Ledger = {
    bounds,
    organizationId,
    projectId,
    revision,
    recordedRevision,
    project: unpackLevel(packed.project),
    teams: new Map(packed.teams.map((team) => [team.teamId, unpackLevel(team)])),
    accounts: new Map(),
    keys: { byAgent: new Map(), order: [], count: 0 },
    replies: new Map(packed.replies.map(([requestId, at, reply]) => [requestId, [at, reply]])),
    droppedAccounts: packed.droppedAccounts,
    weightBytes: 0,
    openPayments: 0,
    touched: new Set(),
  };
  for (const { accounts, teamId } of packed.teams) {
    for (const each of accounts) put(ledger, unpackAccount(teamId, each));
  }
  for (const [agentId, keyHash, ...key] of packed.keys) {
    const ofAgent = ledger.keys.byAgent.get(agentId) ?? new Map<string, ClosedKey>();
    ledger.keys.byAgent.set(agentId, ofAgent.set(keyHash, key));
    ledger.keys.order.push([agentId, keyHash]);
    ledger.keys.count += 1;
  }
  return ledger;
}

function put(ledger: Ledger, account: Account): void {
  ledger.accounts.set(account.agentId, account);
  ledger.weightBytes += weightOf(account);
  ledger.openPayments += account.open.size;
}

const packLevel = ({ cap, capChangedAt, recordedCapVersion, rulesVersion, totals }: Level): PackedLevel => ({
  ...(cap.capCents === null && cap.version === NO_CAP.version ? {} : { cap }),
  ...(totals.spentCents === 0 && totals.reservedCents === 0 ? {} : { totals }),
  ...unlessDefault("rulesVersion", rulesVersion, 0),
  ...unlessDefault("recordedCap", recordedCapVersion, cap.version),
  ...unlessDefault("capChangedAt", capChangedAt, 0),
});

const unpackLevel = ({
  cap = NO_CAP,
  capChangedAt = 0,
  recordedCap = cap.version,
  rulesVersion = 0,
  totals = NO_TOTALS,
}: PackedLevel): Level => ({ cap, totals, rulesVersion, recordedCapVersion: recordedCap, capChangedAt });

/** A field that is not as it is in a new account. */
function unlessDefault<K extends string, V>(name: K, value: V, usual: V): Partial<Record<K, V>>;
function unlessDefault(name: string, value: unknown, usual: unknown): Record<string, unknown> {
  return value === usual ? {} : { [name]: value };
}

function packAccount(account: Account): PackedAccount {
  const {
    confirmedRevision,
    day,
    recentPayments: hour,
    open,
    outbox,
    revision,
    status,
  } = { ...account, ...account.usage };
  return {
    id: account.agentId,
    name: account.name,
    key: account.keyId,
    policy: packPolicy(account.policy),
    at: account.updatedAt,
    ...(status === "active" ? {} : { status }),
    ...unlessDefault("followed", account.followedRevision, 0),
    ...unlessDefault("policyVersion", account.policyVersion, 1),
    ...unlessDefault("mirrored", account.mirroredPolicyVersion, account.policyVersion),
    ...unlessDefault("spent", account.usage.spentCents, 0),
    ...unlessDefault("reserved", account.usage.reservedCents, 0),
    ...(day.date === "" ? {} : { day: [day.date, day.amountCents, day.count] as const }),
    ...(hour.length === 0 ? {} : { instants: packInstants(hour) }),
    ...unlessDefault("sequence", account.sequence, 0),
    ...(open.size === 0 ? {} : { open: [...open.values()] }),
    ...unlessDefault("closed", account.closed, account.sequence - open.size),
    ...unlessDefault("evicted", account.evictedThrough, 0),
    ...unlessDefault("revision", revision, 1),
    ...unlessDefault("unconfirmed", revision - confirmedRevision, 0),
    ...(account.pausedAt === null ? {} : { pausedAt: account.pausedAt }),
    ...(outbox.length === 0 ? {} : { outbox }),
  };
}

function unpackAccount(teamId: string, packed: PackedAccount): Account {
  const { policyVersion = 1, revision = 1, sequence = 0 } = packed;
  const open = new Map((packed.open ?? []).map((each) => [each.payment.request.transactionId, each]));
  return {
    agentId: packed.id,
    teamId,
    name: packed.name,
    status: packed.status ?? "active",
    keyId: packed.key,
    followedRevision: packed.followed ?? 0,
    policy: unpackPolicy(packed.policy),
    policyVersion,
    usage: unpackUsage(packed),
    sequence,
    open,
    closed: packed.closed ?? sequence - open.size,
    evictedThrough: packed.evicted ?? 0,
    revision,
    confirmedRevision: revision - (packed.unconfirmed ?? 0),
    updatedAt: packed.at,
    mirroredPolicyVersion: packed.mirrored ?? policyVersion,
    pausedAt: packed.pausedAt ?? null,
    outbox: packed.outbox ?? [],
  };
}

const packPolicy = (policy: BudgetPolicy): PackedPolicy => [
  policy.budgetCents,
  policy.autoApprovalThresholdCents,
  policy.perTransactionLimitCents,
  policy.dailySpendLimitCents,
  policy.hourlyVelocityLimit,
  policy.dailyVelocityLimit,
];

const unpackPolicy = ([
  budget,
  threshold = null,
  single = null,
  day = null,
  hourly = null,
  daily = null,
]: PackedPolicy) => ({
  budgetCents: budget ?? 0,
  autoApprovalThresholdCents: threshold,
  perTransactionLimitCents: single,
  dailySpendLimitCents: day,
  hourlyVelocityLimit: hourly,
  dailyVelocityLimit: daily,
});

function unpackUsage({ day = ["", 0, 0], instants = [], reserved = 0, spent = 0 }: PackedAccount): Usage {
  const [date, amountCents, count] = day;
  return {
    spentCents: spent,
    reservedCents: reserved,
    day: { date, amountCents, count },
    recentPayments: unpackInstants(instants),
  };
}

function packInstants(hour: readonly Counted[]): number[] {
  const packed: number[] = [];
  let before = 0;
  for (const [at, count] of hour) {
    packed.push(at - before, count);
    before = at;
  }
  return packed;
}

function unpackInstants(instants: readonly number[]): Counted[] {
  const hour: Counted[] = [];
  let [at, through] = [0, 0];
  for (let index = 0; index + 1 < instants.length; index += 2) {
    const count = instants[index + 1] ?? 0;
    at += instants[index] ?? 0;
    through += count;
    hour.push([at, count, through]);
  }
  return hour;
}
