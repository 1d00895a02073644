import { MAX_CENTS, mcOf, usedCents } from "../money.ts";
import type { CommandOf, LedgerReply, RecordedCap } from "./commands.ts";
import type { Draft } from "./draft.ts";
import {
  type Increase,
  type Increased,
  INCREASE_MS_MAX,
  increasesAt,
  INCREASES_MAX,
  WINDOWED_LIMITS,
  type WindowedLimit,
} from "./increases.ts";
import { type StandingLimit, standingLimits } from "./measures.ts";
import type { BudgetPolicy, DenialCode } from "./policy.ts";
import { type Account, type Cap, type Ledger, levelOf } from "./state.ts";
import type { BREACH_LIMITS } from "./books.ts";
import { boundsNow, type SpendLimit } from "./windows.ts";

/** Raises of limits that a person grants so that an amount fits. */

/** Denials by limits on amounts. A raise does not increase limits on the number of payments. */
export const RAISABLE: readonly DenialCode[] = [
  "PER_TRANSACTION_LIMIT_EXCEEDED",
  "BUDGET_EXCEEDED",
  "DAILY_SPEND_LIMIT_EXCEEDED",
  "SPEND_LIMIT_EXCEEDED",
  "TEAM_CAP_EXCEEDED",
  "TEAM_SPEND_LIMIT_EXCEEDED",
  "PROJECT_CAP_EXCEEDED",
  "PROJECT_SPEND_LIMIT_EXCEEDED",
];

/** A limit without room for an amount. */
export interface Shortfall extends Omit<StandingLimit, "limit" | "usedMc"> {
  readonly limit: (typeof BREACH_LIMITS)[number];
  readonly usedCents: number;
  readonly missingCents: number;
}

/**
 * Returns all limits on amounts, at all levels, without room for an additional amount. Empty if `checkLimits` and
 * `checkCaps` deny no amount.
 */
export function shortfalls(
  ledger: Ledger,
  account: Account,
  amountMc: number,
  now: number,
): readonly Shortfall[] {
  const { perTransactionLimitCents: limitCents } = account.policy;
  const ofPayment =
    limitCents === null
      ? []
      : [{ level: "agent", limit: "per_transaction", limitCents, usedMc: 0, ...NO_WINDOW } as const];
  const limits = [...ofPayment, ...standingLimits(ledger, account, boundsNow(ledger, now), now)];
  return limits.flatMap(({ usedMc, ...limit }) => {
    const missingMc = usedMc + amountMc - mcOf(limit.limitCents);
    if (missingMc <= 0) return [];
    return [{ ...limit, usedCents: usedCents(usedMc), missingCents: usedCents(missingMc) }];
  });
}

const NO_WINDOW = { startedAt: null, resetsAt: null } as const;

export interface Raised extends Pick<Shortfall, "level" | "limit"> {
  readonly fromCents: number;
  readonly toCents: number;
  /** Epoch milliseconds; null if permanent. */
  readonly endsAt: number | null;
}

/** Newest judged grant of an account, kept until the next one so that a repeated command gets the same reply. */
export interface Grant {
  readonly raiseId: string;
  /** Number among the account's grants, from 1. */
  readonly number: number;
  /** Empty once the grant's record is known to be written. */
  readonly raised: readonly Raised[];
  readonly refused?: "raise_not_needed" | "raise_impossible";
}

/**
 * State of an account and its levels when a person decides on a raise. A grant based on an older state changes nothing:
 * a stalled server may submit it after other grants, or after somebody has set the limits.
 */
export interface RaiseBasis {
  readonly grants: number;
  readonly policyVersion: number;
  readonly teamVersion: number;
  readonly projectVersion: number;
}

export const raiseBasis = (ledger: Ledger, { grant, policyVersion, teamId }: Account): RaiseBasis => ({
  grants: grant?.number ?? 0,
  policyVersion,
  teamVersion: levelOf(ledger, teamId).cap.version,
  projectVersion: ledger.project.cap.version,
});

/** Basis without an account. */
export const NO_RAISE_BASIS: RaiseBasis = { grants: 0, policyVersion: 0, teamVersion: 0, projectVersion: 0 };

const isSameBasis = (one: RaiseBasis, other: RaiseBasis): boolean =>
  one.grants === other.grants &&
  one.policyVersion === other.policyVersion &&
  one.teamVersion === other.teamVersion &&
  one.projectVersion === other.projectVersion;

/**
 * Raises every limit without room for an amount, at all levels, in one decision. Limits per period and day are raised
 * until `endsAt`: until the end of each one's window if missing, permanently if null. All other limits are raised
 * permanently. A repeated grant, or one on an older basis, raises nothing.
 */
export function grantRaise(draft: Draft, command: CommandOf<"grant_raise">): LedgerReply {
  const { agentId, amountMc, basis, endsAt, raiseId } = command;
  const account = draft.account(agentId);
  if (account === undefined || account.status === "closed") return { kind: "no_account" };
  const { grant: newest } = account;
  const number = basis.grants + 1;
  if (newest?.raiseId === raiseId && newest.number === number)
    return newest.refused === undefined
      ? { kind: "raised", grant: newest, caps: [] }
      : { kind: newest.refused };
  if (!isSameBasis(basis, raiseBasis(draft.ledger, account))) return { kind: "raise_stale" };
  const refuse = (refused: NonNullable<Grant["refused"]>): LedgerReply => {
    account.grant = { raiseId, number, raised: [], refused };
    return { kind: refused };
  };
  const lacking = shortfalls(draft.ledger, account, amountMc, draft.now);
  if (lacking.length === 0) return refuse("raise_not_needed");
  const raised = lacking.map((each) => raisedBy(each, endsAt, draft));
  const { at } = draft.bounds;
  const isOver = ({ endsAt: until }: Raised): boolean => until !== null && until <= at;
  if (raised.some((each) => each.toCents > MAX_CENTS || isOver(each))) return refuse("raise_impossible");
  const policy = raisedPolicy(account.policy, raisedOf(raised, "agent"), raiseId, at);
  const levels = ([account.teamId, null] as const).flatMap((teamId) => {
    const ofLevel = raisedOf(raised, teamId === null ? "project" : "team");
    return ofLevel.length === 0
      ? []
      : [{ teamId, cap: raisedCap(draft.level(teamId).cap, ofLevel, raiseId, at) }];
  });
  const isFull = [policy, ...levels.map(({ cap }) => cap)].some(
    ({ increases = [] }) => increases.length > INCREASES_MAX,
  );
  if (isFull) return refuse("raise_impossible");
  for (const { cap, teamId } of levels) draft.setLevel(teamId, { cap, capChangedAt: draft.now });
  if (policy !== account.policy) {
    account.policy = policy;
    account.policyVersion += 1;
  }
  account.grant = { raiseId, number, raised };
  // The agent's record follows in any case, so that a caller can wait for it.
  draft.touch(account);
  return { kind: "raised", grant: account.grant, caps: levels satisfies readonly RecordedCap[] };
}

/** Notes that the grant's record is written. */
export function confirmRaise(draft: Draft, { agentId, raiseId }: CommandOf<"confirm_raise">): LedgerReply {
  const account = draft.account(agentId);
  if (account?.grant?.raiseId === raiseId) account.grant = { ...account.grant, raised: [] };
  return { kind: "confirmed" };
}

const isWindowed = (limit: Shortfall["limit"]): limit is WindowedLimit =>
  WINDOWED_LIMITS.some((each) => each === limit);

function raisedBy(
  { level, limit, limitCents, missingCents, resetsAt }: Shortfall,
  endsAt: number | null | undefined,
  { bounds: { at } }: Draft,
): Raised {
  const latest = at + INCREASE_MS_MAX;
  const until = endsAt === undefined ? (resetsAt ?? latest) : endsAt;
  const ends = isWindowed(limit) && until !== null ? Math.min(until, latest) : null;
  return { level, limit, fromCents: limitCents, toCents: limitCents + missingCents, endsAt: ends };
}

const raisedOf = (raised: readonly Raised[], level: Raised["level"]): readonly Raised[] =>
  raised.filter((each) => each.level === level);

const addedCents = ({ fromCents, toCents }: Raised): number => toCents - fromCents;

function raisedPolicy(
  policy: BudgetPolicy,
  raised: readonly Raised[],
  raiseId: string,
  at: number,
): BudgetPolicy {
  if (raised.length === 0) return policy;
  const { budgetCents, dailySpendLimitCents, perTransactionLimitCents } = policy;
  const { increases: _before, ...rest } = policy;
  return {
    ...rest,
    budgetCents: plus(budgetCents, raised, "budget"),
    perTransactionLimitCents: plus(perTransactionLimitCents, raised, "per_transaction"),
    dailySpendLimitCents: plus(dailySpendLimitCents, raised, "daily_spend"),
    ...raisedLimits(policy, raised),
    ...withIncreasesOf(policy, raised, raiseId, at),
  };
}

function raisedCap(cap: Cap, raised: readonly Raised[], raiseId: string, at: number): Cap {
  return {
    capCents: plus(cap.capCents, raised, "cap"),
    version: cap.version + 1,
    ...raisedLimits(cap, raised),
    ...withIncreasesOf(cap, raised, raiseId, at),
  };
}

/** Returns a limit with its permanent raise. */
function plus<C extends number | null>(
  cents: C,
  raised: readonly Raised[],
  limit: Raised["limit"],
): C | number {
  const found = raised.find((each) => each.limit === limit && each.endsAt === null);
  return cents === null || found === undefined ? cents : cents + addedCents(found);
}

const raisedLimits = (
  { spendLimits }: { readonly spendLimits?: readonly SpendLimit[] },
  raised: readonly Raised[],
): { readonly spendLimits?: readonly SpendLimit[] } =>
  spendLimits === undefined
    ? {}
    : {
        spendLimits: spendLimits.map(({ limitCents, period }) => ({
          period,
          limitCents: plus(limitCents, raised, period),
        })),
      };

function withIncreasesOf(
  { increases = [] }: Increased,
  raised: readonly Raised[],
  id: string,
  at: number,
): Increased {
  const added = raised.flatMap((each): Increase[] => {
    const { endsAt, limit } = each;
    return endsAt === null || !isWindowed(limit) ? [] : [{ id, limit, cents: addedCents(each), endsAt }];
  });
  return increasesAt({ increases: [...increases, ...added] }, at);
}
