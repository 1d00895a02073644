import { firstKeyId } from "../api-key.ts";
import { MC_PER_CENT } from "../money.ts";
import { bitLength, BitReader, BitWriter, type Coder, folded, unfolded } from "./bits.ts";
import { PERIODS } from "./calendar.ts";
import type { ClosedKey } from "./closed-keys.ts";
import { type Increase, type Increased, increasesAt, WINDOWED_LIMITS, withIncreases } from "./increases.ts";
import { type BudgetPolicy, withSpendLimits } from "./policy.ts";
import type { Account, AccountStatus } from "./state.ts";
import {
  bucketEnd,
  type Counted,
  DAY_MS,
  emptyUsage,
  inBuckets,
  mostWidthMs,
  type Usage,
  utcDate,
} from "./usage.ts";
import { NO_WINDOWS, type SpendLimit, type Windows } from "./windows.ts";

/**
 * Packed form of accounts and remembered keys, in bits (`bits.ts`). `packedAt` is the time of the pack, which times are
 * coded relative to; counts that have expired by then are omitted.
 */

/**
 * Bits that each account is weighed with for what its payments change, from its opening on, so that payments find room
 * however many agents were opened.
 */
const CHANGING_BITS = 440;

const STATUSES: readonly AccountStatus[] = ["active", "paused", "closed"];

/**
 * Codes an account without its rare fields. `countedAt` is the last counted instant, that of windows and increases. A
 * reader keeps `open`, `outbox`, `grant` and `pausedAt` as given. The result is one object literal, since objects spread
 * from others are slow to read and large.
 */
export function codeAccount(coder: Coder, account: Account, packedAt: number, countedAt: number): Account {
  const agentId = coder.token(account.agentId);
  const name = coder.text(account.name);
  const status = STATUSES[coder.small(STATUSES.indexOf(account.status))] ?? "active";
  const isStatusTold = coder.flag(account.isStatusTold);
  // An account with a revoked key has no key that may pay.
  const isRevoked = coder.flag(account.revokedKeyId !== null);
  const eitherId = codeKeyId(coder, account.keyId ?? account.revokedKeyId, agentId);
  const followedRevision = coder.small(account.followedRevision);
  const policy = codePolicy(coder, account.policy, packedAt, countedAt);
  const policyVersion = coder.small(account.policyVersion);
  const rulesVersion = coder.flag(account.rulesVersion > 0) ? coder.number(account.rulesVersion) : 0;
  const changing = coder.reserving(CHANGING_BITS, () => codeChanging(coder, account, packedAt, countedAt));
  const {
    closed,
    confirmedRevision,
    evictedThrough,
    foreseenSequence,
    revision,
    sequence,
    updatedAt,
    usage,
  } = changing;
  return {
    agentId,
    teamId: account.teamId,
    name,
    status,
    isStatusTold,
    keyId: isRevoked ? null : eitherId,
    revokedKeyId: isRevoked ? eitherId : null,
    followedRevision,
    policy,
    policyVersion,
    rulesVersion,
    usage,
    sequence,
    open: account.open,
    closed,
    evictedThrough,
    revision,
    foreseenSequence,
    confirmedRevision,
    updatedAt,
    mirroredPolicyVersion: near(coder, account.mirroredPolicyVersion, policyVersion),
    grant: account.grant,
    outbox: account.outbox,
    pausedAt: account.pausedAt,
    weightBytes: 0,
  };
}

type Changing = Payments & Pick<Account, "confirmedRevision" | "foreseenSequence" | "revision" | "updatedAt">;

/** Codes what payments change. */
function codeChanging(coder: Coder, account: Account, packedAt: number, countedAt: number): Changing {
  const { closed, evictedThrough, sequence, usage } = codePayments(coder, account, packedAt, countedAt);
  const revision = coder.number(account.revision);
  const foresees = coder.flag(account.foreseenSequence > 0);
  return {
    closed,
    evictedThrough,
    sequence,
    usage,
    revision,
    foreseenSequence: foresees ? near(coder, account.foreseenSequence, sequence) : 0,
    confirmedRevision: near(coder, account.confirmedRevision, revision),
    updatedAt: packedAt - codeSigned(coder, packedAt - account.updatedAt),
  };
}

type Payments = Pick<Account, "closed" | "evictedThrough" | "sequence" | "usage">;

/** Codes what an account has by its payments: one bit if it never paid. */
function codePayments(coder: Coder, account: Account, packedAt: number, countedAt: number): Payments {
  if (!coder.flag(hasPaid(account)))
    return { closed: 0, evictedThrough: 0, sequence: 0, usage: emptyUsage() };
  const sequence = coder.number(account.sequence);
  const openCount = coder.small(account.open.size);
  const closed = near(coder, account.closed, sequence - openCount);
  return {
    closed,
    evictedThrough: coder.flag(account.evictedThrough > 0) ? near(coder, account.evictedThrough, closed) : 0,
    sequence,
    usage: codeUsage(coder, account.usage, packedAt, countedAt),
  };
}

function hasPaid({ closed, evictedThrough, sequence, usage }: Payments): boolean {
  if (sequence > 0 || closed > 0 || evictedThrough > 0) return true;
  const { day, reservedMc, spentMc, windows, windowsMs } = usage;
  const isCounted = day.date !== "" || windows.at > 0 || windowsMs.length > 0 || usage.counts.length > 0;
  return isCounted || spentMc !== 0 || reservedMc !== 0;
}

/** Codes a number that mostly equals `expected`. */
const near = (coder: Coder, value: number, expected: number): number =>
  expected + unfolded(coder.small(folded(value - expected)));

const codeSigned = (coder: Coder, value: number): number => unfolded(coder.number(folded(value)));

const codeNullable = (coder: Coder, value: number | null): number | null =>
  coder.flag(value !== null) ? coder.number(value ?? 0) : null;

const codeLimit = (coder: Coder, cents: number | null): number | null =>
  coder.flag(cents !== null) ? codeRound(coder, cents ?? 0) : null;

/** Codes a key id. Most agents have the key that they were created with, whose id follows from the agent's. */
function codeKeyId(coder: Coder, keyId: string | null, agentId: string): string | null {
  if (!coder.flag(keyId !== null)) return null;
  const firstId = firstKeyId(agentId);
  return coder.flag(keyId === firstId) ? firstId : coder.token(keyId ?? "");
}

const codePolicy = (
  coder: Coder,
  policy: BudgetPolicy,
  packedAt: number,
  countedAt: number,
): BudgetPolicy => ({
  budgetCents: codeRound(coder, policy.budgetCents),
  autoApprovalThresholdCents: codeLimit(coder, policy.autoApprovalThresholdCents),
  perTransactionLimitCents: codeLimit(coder, policy.perTransactionLimitCents),
  dailySpendLimitCents: codeLimit(coder, policy.dailySpendLimitCents),
  hourlyVelocityLimit: codeNullable(coder, policy.hourlyVelocityLimit),
  dailyVelocityLimit: codeNullable(coder, policy.dailyVelocityLimit),
  ...withSpendLimits(codeSpendLimits(coder, policy.spendLimits ?? [])),
  ...withIncreases(codeIncreases(coder, increasesAt(policy, countedAt), packedAt)),
});

function codeIncreases(coder: Coder, { increases = [] }: Increased, packedAt: number): readonly Increase[] {
  const coded: Increase[] = [];
  for (let left = coder.small(increases.length); left > 0; left -= 1) {
    const { cents, endsAt, id, limit } = increases[coded.length] ?? UNREAD_INCREASE;
    coded.push({
      id: coder.token(id),
      limit: WINDOWED_LIMITS[coder.small(WINDOWED_LIMITS.indexOf(limit))] ?? limit,
      cents: coder.number(cents),
      endsAt: packedAt + codeSigned(coder, endsAt - packedAt),
    });
  }
  return coded;
}

const UNREAD_INCREASE: Increase = { id: "", limit: "daily_spend", cents: 0, endsAt: 0 };

/** Codes limits in the order of periods. */
function codeSpendLimits(coder: Coder, limits: readonly SpendLimit[]): readonly SpendLimit[] {
  if (!coder.flag(limits.length > 0)) return [];
  return PERIODS.flatMap((period) => {
    const limit = limits.find((each) => each.period === period);
    if (!coder.flag(limit !== undefined)) return [];
    return [{ period, limitCents: codeRound(coder, limit?.limitCents ?? 0) }];
  });
}

/** Codes an amount chosen by a person: mostly a few digits and zeros. */
function codeRound(coder: Coder, cents: number): number {
  let [digits, zeros] = [cents, 0];
  for (; digits > 0 && digits % 10 === 0; digits /= 10) zeros += 1;
  if (!coder.flag(digits < ROUND_DIGITS_MAX)) return coder.number(cents);
  const codedZeros = near(coder, zeros, USUAL_ZEROS);
  const place = COMMON_DIGITS.indexOf(digits);
  const coded = coder.small(place < 0 ? digits + COMMON_DIGITS.length : place, DIGITS_ORDER);
  return (COMMON_DIGITS[coded] ?? coded - COMMON_DIGITS.length) * 10 ** codedZeros;
}

const ROUND_DIGITS_MAX = 128;
/** Zeros of a thousand dollars in cents. */
const USUAL_ZEROS = 5;
/** Most common first. */
const COMMON_DIGITS: readonly number[] = [1, 2, 5, 25, 15, 3, 75, 4, 6, 8, 12];
const DIGITS_ORDER = 1;

function codeUsage(coder: Coder, usage: Usage, packedAt: number, countedAt: number): Usage {
  const spentMc = codeMc(coder, usage.spentMc);
  const reservedMc = coder.flag(usage.reservedMc !== 0) ? codeMc(coder, usage.reservedMc) : 0;
  const day = coder.flag(usage.day.date !== "") ? codeDay(coder, usage.day, packedAt) : emptyUsage().day;
  const windows = codeWindows(coder, usage.windows, spentMc + reservedMc, countedAt);
  const windowsMs: number[] = [];
  for (let left = coder.small(usage.windowsMs.length); left > 0; left -= 1)
    windowsMs.push(coder.number(usage.windowsMs[windowsMs.length] ?? 0));
  const coarser = 2 ** coder.small(Math.log2(usage.coarser));
  const packed = codePacked(coder, packedCountsOf(usage, packedAt), packedAt);
  return usageOf({ spentMc, reservedMc, day, windows, windowsMs, coarser }, packed);
}

/** Codes windows: an amount mostly equals the next longer period's or the total, and many are 0. */
function codeWindows(coder: Coder, { at, mc }: Windows, usedMc: number, countedAt: number): Windows {
  if (!coder.flag(at > 0)) return NO_WINDOWS;
  const coded: number[] = [];
  let longer = usedMc;
  for (let place = PERIODS.length - 1; place >= 0; place -= 1) {
    const amount = mc[place] ?? 0;
    if (!coder.flag(amount === longer)) longer = coder.flag(amount === 0) ? 0 : codeMc(coder, amount, longer);
    coded.push(longer);
  }
  return { at: countedAt, mc: coded.toReversed() };
}

/** Counts in separate bits, as of the time at which they were packed; empty bits for no counts. */
interface PackedCounts {
  readonly asOf: number;
  readonly bits: string;
}

/** Counts not read since they were unpacked: copied, since recoding them is most of a roll-over. */
const unread = new WeakMap<Usage, PackedCounts>();

/** Age at which counts are packed again, without expired ones. */
const REPACKED_MS = DAY_MS;

function packedCountsOf(usage: Usage, packedAt: number): PackedCounts {
  const known = unread.get(usage);
  if (known !== undefined && Math.abs(packedAt - known.asOf) < REPACKED_MS) return known;
  const counts = inBuckets(usage, packedAt);
  if (counts.length === 0) return { asOf: packedAt, bits: "" };
  const writer = new BitWriter();
  codeCounts(writer, counts, usage, packedAt);
  return { asOf: packedAt, bits: writer.all };
}

function codePacked(coder: Coder, { asOf, bits }: PackedCounts, packedAt: number): PackedCounts {
  if (!coder.flag(bits !== "")) return { asOf: packedAt, bits: "" };
  const isFresh = coder.flag(asOf === packedAt);
  return {
    asOf: isFresh ? packedAt : packedAt - codeSigned(coder, packedAt - asOf),
    bits: coder.written(bits),
  };
}

/** Returns usage whose counts are decoded on first read. */
function usageOf(
  { coarser, day, reservedMc, spentMc, windows, windowsMs }: Omit<Usage, "counts">,
  packed: PackedCounts,
): Usage {
  const { asOf, bits } = packed;
  if (bits === "") return { spentMc, reservedMc, day, windows, windowsMs, coarser, counts: [] };
  let counts: readonly Counted[] | null = null;
  const usage: Usage = {
    spentMc,
    reservedMc,
    day,
    windows,
    windowsMs,
    coarser,
    get counts() {
      return (counts ??= codeCounts(new BitReader(bits), [], { coarser, windowsMs }, asOf));
    },
    set counts(changed) {
      counts = changed;
      unread.delete(usage);
    },
  };
  unread.set(usage, packed);
  return usage;
}

function codeDay(coder: Coder, { amountMc, count, date }: Usage["day"], packedAt: number): Usage["day"] {
  const today = Math.floor(packedAt / DAY_MS);
  const day = near(coder, Math.floor(Date.parse(date) / DAY_MS), today);
  return {
    date: utcDate(day * DAY_MS),
    amountMc: codeMc(coder, amountMc),
    count: coder.small(count, COUNT_ORDER),
  };
}

/** Codes an amount, mostly whole cents and, if `most` is given, mostly at most that. It can be negative. */
function codeMc(coder: Coder, mc: number, most?: number): number {
  const whole = folded(Math.floor(mc / MC_PER_CENT));
  const order = most === undefined ? null : bitLength(Math.max(0, Math.floor(most / MC_PER_CENT)));
  const cents = unfolded(order === null ? coder.number(whole) : coder.small(whole, order));
  const rest = mc - Math.floor(mc / MC_PER_CENT) * MC_PER_CENT;
  return cents * MC_PER_CENT + (coder.flag(rest !== 0) ? coder.small(rest, REST_ORDER) : 0);
}

/** Most fractions of a cent have this many bits. */
const REST_ORDER = 9;

const COUNT_ORDER = 4;

interface Bucket {
  readonly at: number;
  readonly count: number;
  readonly width: number;
}

/** Codes counts, newest first: the distance in the newer bucket's widths, and the counts' difference. */
function codeCounts(
  coder: Coder,
  counts: readonly Counted[],
  { coarser, windowsMs }: Pick<Usage, "coarser" | "windowsMs">,
  packedAt: number,
): Counted[] {
  const length = coder.small(counts.length, COUNT_ORDER);
  const newestFirst: Counted[] = [];
  let newer: Bucket = { at: packedAt, count: 1, width: 1 };
  for (let place = 0; place < length; place += 1) {
    const given = counts[counts.length - 1 - place];
    const givenAt = given === undefined ? newer.at : given[0];
    const at =
      place === 0
        ? packedAt - codeSigned(coder, packedAt - givenAt)
        : newer.at - newer.width * (1 + coder.small((newer.at - givenAt) / newer.width - 1));
    const mostWidth = mostWidthMs(packedAt - at, windowsMs, coarser);
    let { width } = newer;
    while (2 * width <= mostWidth && bucketEnd(at, 2 * width) === at) width *= 2;
    const expected = newer.count > 1 ? Math.min(newer.count * (width / newer.width), MOST_EXPECTED) : 1;
    // Counts deviate by about the square root of the expected count.
    const order = (32 - Math.clz32(expected)) >> 1;
    const count =
      expected + unfolded(coder.small(folded((given === undefined ? 0 : given[1]) - expected), order));
    newer = { at, count, width };
    newestFirst.push([at, count]);
  }
  return newestFirst.toReversed();
}

const MOST_EXPECTED = 1_000_000;

/** Key of a closed payment, and its agent's index among the accounts. */
export interface CodedKey {
  readonly place: number;
  readonly keyHash: string;
  readonly key: ClosedKey;
}

export const UNREAD_KEY: CodedKey = { place: 0, keyHash: "", key: [0, 0, null, 0] };

/** Revision of a payment that its rail settled at once. */
const USUAL_REVISION = 3;

/** `closedOf` returns how many payments the agent at an index has closed. */
export function codeKey(
  coder: Coder,
  { key, keyHash, place }: CodedKey,
  closedOf: (place: number) => number,
  packedAt: number,
): CodedKey {
  const [closedAs, createdAt, fingerprint, revision] = key;
  const codedPlace = coder.number(place);
  return {
    place: codedPlace,
    keyHash: coder.token(keyHash),
    key: [
      near(coder, closedAs, closedOf(codedPlace)),
      packedAt - codeSigned(coder, packedAt - createdAt),
      coder.flag(fingerprint !== null) ? coder.token(fingerprint ?? "") : null,
      near(coder, revision, USUAL_REVISION),
    ],
  };
}
