import { BitReader, BitWriter, SEPARATOR } from "./bits.ts";
import { type CodedKey, codeAccount, codeKey, UNREAD_KEY } from "./pack-accounts.ts";
import type { BudgetPolicy } from "./policy.ts";
import type { OpenPayment, Account, Cap, Ledger, Level, Totals } from "./state.ts";
import { LEDGER_BOUNDS, type LedgerBounds, newAccount, NO_CAP, NO_TOTALS } from "./state.ts";
import { type Calendar, UTC_CALENDAR } from "./calendar.ts";
import { type LifecycleEvent, lifecycleEventId, type LifecycleEventType } from "../events.ts";
import { withoutEnded } from "./increases.ts";
import type { Grant } from "./raises.ts";
import type { CachedReply } from "./reply-cache.ts";
import { type ClosedKey, noClosedKeys } from "./closed-keys.ts";
import { levelsBytes, weightIn } from "./weight.ts";
import { boundsNow, fullMinute, NO_WINDOWS, type Windows, windowsAsOf } from "./windows.ts";

/**
 * A ledger as carried over to a new run: minimal plain data. What every account has is written in bits
 * (`pack-accounts.ts`), so that ten thousand accounts stay small; other fields are omitted if they have a new account's
 * values.
 */
export interface PackedLedger {
  readonly schemaVersion: 1;
  readonly packedAt: number;
  readonly organizationId: string;
  readonly projectId: string;
  readonly revision: number;
  readonly recordedRevision: number;
  /** Missing if none was set. */
  readonly calendar?: Calendar;
  readonly project: PackedLevel;
  readonly teams: readonly PackedTeam[];
  /** Accounts team by team, then the keys of closed payments in closing order. */
  readonly bits: string;
  readonly texts: readonly string[];
  /** Counts of accounts, each in separate bits. */
  readonly counts: string;
  readonly keyCount: number;
  /** Missing if no key was evicted. */
  readonly evictedCreatedAt?: number;
  /** Rare fields of accounts, by index. */
  readonly more: readonly (readonly [place: number, more: PackedRest])[];
  readonly replies: readonly (readonly [requestId: string, ...CachedReply])[];
  readonly droppedAccounts: number;
  readonly droppedRevision: number;
  readonly droppedClosed: number;
}

interface PackedLevel {
  readonly cap?: Cap;
  readonly totals?: Totals;
  readonly windows?: Windows;
  readonly rulesVersion?: number;
  readonly recordedCap?: number;
  readonly capChangedAt?: number;
}

interface PackedTeam extends PackedLevel {
  readonly teamId: string;
  readonly accounts: number;
}

/** Fields that few accounts have. */
interface PackedRest {
  readonly open?: readonly OpenPayment[];
  readonly pausedAt?: number;
  readonly grant?: Grant;
  readonly outbox?: readonly PackedEvent[];
}

/** An event without its id, which follows from agent and revision. */
type PackedEvent = readonly [type: LifecycleEventType, at: number, revision: number];

export function packLedger(ledger: Ledger, packedAt: number): PackedLedger {
  const {
    replies,
    droppedAccounts,
    droppedClosed,
    droppedRevision,
    organizationId,
    project,
    projectId,
    teams,
  } = ledger;
  const { recordedRevision, revision } = ledger;
  const ofTeams = new Map<string, Account[]>();
  for (const account of ledger.accounts.values()) {
    const ofTeam = ofTeams.get(account.teamId);
    if (ofTeam === undefined) ofTeams.set(account.teamId, [account]);
    else ofTeam.push(account);
  }
  const accounts = [...teams.keys()].flatMap((teamId) => ofTeams.get(teamId) ?? []);
  const writer = new BitWriter();
  // As of the last counted instant: if the clock goes back, all amounts and increases still count.
  const bounds = boundsNow(ledger, 0);
  const countedAt = fullMinute(bounds.at);
  for (const account of accounts) {
    account.usage.windows = windowsAsOf(account.usage.windows, bounds);
    codeAccount(writer, account, packedAt, countedAt);
  }
  const keys = keysIn(ledger, accounts);
  for (const key of keys) codeKey(writer, key, (place) => accounts[place]?.closed ?? 0, packedAt);
  return {
    schemaVersion: 1,
    packedAt,
    organizationId,
    projectId,
    revision,
    recordedRevision,
    ...unlessDefault("calendar", ledger.calendar, UTC_CALENDAR),
    project: packLevel(project, countedAt),
    teams: [...teams].map(([teamId, level]) => ({
      teamId,
      ...packLevel(level, countedAt),
      accounts: ofTeams.get(teamId)?.length ?? 0,
    })),
    bits: writer.all,
    texts: writer.texts,
    counts: writer.copied.join(SEPARATOR),
    keyCount: keys.length,
    ...unlessDefault("evictedCreatedAt", ledger.keys.evictedCreatedAt, 0),
    more: accounts.flatMap((account, place) => {
      const rest = packRest(account);
      return Object.keys(rest).length === 0 ? [] : [[place, rest] as const];
    }),
    replies: [...replies].map(([requestId, answer]) => [requestId, ...answer] as const),
    droppedAccounts,
    droppedRevision,
    droppedClosed,
  };
}

/** Returns the keys in closing order, without those of dropped accounts. */
function keysIn({ keys }: Ledger, accounts: readonly Account[]): CodedKey[] {
  const places = new Map(accounts.map(({ agentId }, place) => [agentId, place]));
  return keys.order.flatMap(([agentId, keyHash]) => {
    const place = places.get(agentId);
    const key = keys.byAgent.get(agentId)?.get(keyHash);
    return place === undefined || key === undefined ? [] : [{ place, keyHash, key }];
  });
}

export function unpackLedger(packed: PackedLedger, bounds: LedgerBounds = LEDGER_BOUNDS): Ledger {
  const { organizationId, packedAt, projectId, recordedRevision, revision } = packed;
  const ledger: Ledger = {
    bounds,
    organizationId,
    projectId,
    revision,
    recordedRevision,
    calendar: packed.calendar ?? UTC_CALENDAR,
    project: unpackLevel(packed.project),
    teams: new Map(packed.teams.map((team) => [team.teamId, unpackLevel(team)])),
    accounts: new Map(),
    keys: { ...noClosedKeys(), evictedCreatedAt: packed.evictedCreatedAt ?? 0 },
    replies: new Map(packed.replies.map(([requestId, at, reply]) => [requestId, [at, reply]])),
    droppedAccounts: packed.droppedAccounts,
    droppedRevision: packed.droppedRevision,
    droppedClosed: packed.droppedClosed,
    weightBytes: 0,
    weighedAt: packedAt,
    openPayments: 0,
    touched: new Set(),
  };
  const reader = new BitReader(packed.bits, packed.texts, packed.counts.split(SEPARATOR));
  const accounts = unpackAccounts(reader, packed, fullMinute(boundsNow(ledger, 0).at));
  for (const account of accounts) put(ledger, account);
  ledger.weightBytes += levelsBytes(ledger);
  for (let left = packed.keyCount; left > 0; left -= 1) {
    const { place, keyHash, key } = codeKey(reader, UNREAD_KEY, (at) => accounts[at]?.closed ?? 0, packedAt);
    const agentId = accounts[place]?.agentId ?? "";
    const ofAgent = ledger.keys.byAgent.get(agentId) ?? new Map<string, ClosedKey>();
    ledger.keys.byAgent.set(agentId, ofAgent.set(keyHash, key));
    ledger.keys.order.push([agentId, keyHash]);
    ledger.keys.count += 1;
  }
  return ledger;
}

const UNREAD_POLICY: BudgetPolicy = {
  budgetCents: 0,
  autoApprovalThresholdCents: null,
  perTransactionLimitCents: null,
  dailySpendLimitCents: null,
  hourlyVelocityLimit: null,
  dailyVelocityLimit: null,
};

function unpackAccounts(
  reader: BitReader,
  { more, packedAt, teams }: PackedLedger,
  countedAt: number,
): Account[] {
  const rests = new Map(more);
  const accounts: Account[] = [];
  for (const { teamId, accounts: count } of teams) {
    const unread = newAccount({ agentId: "", teamId, name: "", policy: UNREAD_POLICY, keyId: null }, 0);
    for (let left = count; left > 0; left -= 1) {
      const before = reader.bitCount;
      const account = codeAccount(reader, unread, packedAt, countedAt);
      unpackRest(account, rests.get(accounts.length));
      account.weightBytes = weightIn(account, reader.bitCount - before);
      accounts.push(account);
    }
  }
  return accounts;
}

function put(ledger: Ledger, account: Account): void {
  ledger.accounts.set(account.agentId, account);
  ledger.weightBytes += account.weightBytes;
  ledger.openPayments += account.open.size;
}

const packLevel = (
  { cap, capChangedAt, recordedCapVersion, rulesVersion, totals, windows }: Level,
  countedAt: number,
): PackedLevel => ({
  ...(cap.capCents === null && cap.version === NO_CAP.version ? {} : { cap: withoutEnded(cap, countedAt) }),
  ...(totals.spentMc === 0 && totals.reservedMc === 0 ? {} : { totals }),
  ...(windows.at === 0 ? {} : { windows }),
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
  windows = NO_WINDOWS,
}: PackedLevel): Level => ({
  cap,
  totals,
  windows,
  rulesVersion,
  recordedCapVersion: recordedCap,
  capChangedAt,
});

/** Returns a field unless it has a new account's value. */
function unlessDefault<K extends string, V>(name: K, value: V, usual: V): Partial<Record<K, V>>;
function unlessDefault(name: string, value: unknown, usual: unknown): Record<string, unknown> {
  return value === usual ? {} : { [name]: value };
}

function packRest({ grant, open, outbox, pausedAt }: Account): PackedRest {
  return {
    ...(open.size === 0 ? {} : { open: [...open.values()] }),
    ...(pausedAt === null ? {} : { pausedAt }),
    ...(grant === null ? {} : { grant }),
    ...(outbox.length === 0
      ? {}
      : { outbox: outbox.map(({ at, revision, type }) => [type, at, revision] as const) }),
  };
}

function unpackRest(
  account: Account,
  {
    grant = null,
    open = [],
    outbox = [],
    pausedAt,
  }: Omit<PackedRest, "grant"> & { readonly grant?: Grant | null } = {},
): void {
  account.open = new Map(open.map((each) => [each.payment.request.transactionId, each]));
  account.outbox = outbox.map((event) => unpackEvent(account.agentId, event));
  account.pausedAt = pausedAt ?? null;
  account.grant = grant;
}

const unpackEvent = (agentId: string, [type, at, revision]: PackedEvent): LifecycleEvent => ({
  id: lifecycleEventId(agentId, "account", revision),
  type,
  at,
  revision,
});
