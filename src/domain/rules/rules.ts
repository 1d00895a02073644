import { mcOf } from "../money.ts";
import type { Rail } from "../ledger/payment.ts";
import { comparedName } from "./compared-name.ts";
import {
  isSameWindow,
  minutesOf,
  type TimeWindow,
  timeWindowFlags,
  type ZoneOffsets,
} from "./time-window.ts";

/**
 * Approval rules of a project or team: a payment that an enabled rule flags waits for a person. Everything about a type
 * is here: its parameters (`RuleParams`) and its judgement, by the server (`BY_SERVER`) or by the ledger (`BY_LEDGER`).
 */

export const RULE_TYPES = [
  "amount_above",
  "new_recipient",
  "recipient",
  "merchant_category",
  "rail",
  "velocity",
  "time_window",
  "duplicate",
] as const;
export type RuleType = (typeof RULE_TYPES)[number];

/** Monday first; a weekday is represented by its index. */
export const WEEKDAYS = ["mon", "tue", "wed", "thu", "fri", "sat", "sun"] as const;
export type Weekday = (typeof WEEKDAYS)[number];

/** Flags the entries of `anyOf`, or all but those of `noneOf`; the contract allows exactly one of the two. */
export interface Listed {
  readonly anyOf?: readonly string[] | undefined;
  readonly noneOf?: readonly string[] | undefined;
}

export interface RuleParams {
  /** Flags amounts above, not equal to, the limit. */
  readonly amount_above: { readonly amountCents: number };
  /** Flags until an earlier payment of the agent to the recipient on the rail has settled. */
  readonly new_recipient: Readonly<Record<string, never>>;
  /** Addresses and names, compared case-insensitively. */
  readonly recipient: Listed;
  /** Four digits each. A payment without a category is in no list. */
  readonly merchant_category: Listed;
  readonly rail: { readonly anyOf: readonly Rail[] };
  /** Flags the payment that would be number `count` + 1 of the agent in the window. */
  readonly velocity: { readonly count: number; readonly windowSeconds: number };
  /** `from` inclusive, `to` exclusive, in `HH:MM` local time; over midnight if `from` is later than `to`. */
  readonly time_window: {
    /** IANA name. */
    readonly timezone: string;
    readonly days: readonly Weekday[];
    readonly from: string;
    readonly to: string;
    /** Whether payments outside of the window are flagged, rather than those inside. */
    readonly outside: boolean;
  };
  /** Flags a payment similar to an earlier one of the agent, including held but not denied ones. */
  readonly duplicate: { readonly windowSeconds: number };
}

export type RuleOf<T extends RuleType> = {
  readonly [K in T]: {
    readonly id: string;
    readonly type: K;
    readonly enabled: boolean;
    /** Whether a disabled rule reports what it would have flagged. */
    readonly shadow?: boolean | undefined;
    readonly params: RuleParams[K];
  };
}[T];
export type ApprovalRule = RuleOf<RuleType>;

/** Maximum window of `velocity` and `duplicate`: 31 days. */
export const RULE_WINDOW_SECONDS_MAX = 2_678_400;

/** Facts of a payment by which the server judges rules. */
export interface RuledFacts {
  readonly rail: Rail;
  readonly amountMc: number;
  readonly merchantCategory: string | null;
  readonly comparedName: string;
  /** Names, as compared, of the shop at which a purchase is made; empty for other payments. */
  readonly shopNames: readonly string[];
  /** Whether no earlier payment of the agent to the recipient on the rail, or to the shop's host, has settled. */
  readonly isNewRecipient: boolean;
}

/** Facts by which the ledger judges a payment's checks. */
export interface LedgerFacts {
  /** Time of the decision, in epoch milliseconds. */
  readonly now: number;
  /** Wall clocks of the zones, which checks refer to by index. */
  readonly zones: readonly ZoneOffsets[] | undefined;
  /** Returns how many payments passed policy in the window ending now; one exactly as old is outside. */
  readonly countWithin: (windowMs: number) => number;
  /** Returns when the newest similar payment that is not denied was made; null if there is none. */
  readonly newestSimilarAt: () => number | null;
}

/** Parameters of the types that depend on other payments or on time. */
export interface LedgerChecks {
  readonly velocity: RuleParams["velocity"];
  readonly duplicate: RuleParams["duplicate"];
  readonly time_window: TimeWindow & {
    /** Index in `PaymentRules.zones`. */
    readonly zone: number;
  };
}
export type LedgerRuleType = keyof LedgerChecks;

/** Types that depend only on the payment and on records of settled ones. */
export type ServerRuleType = Exclude<RuleType, LedgerRuleType>;

type LedgerCheckOf<T extends LedgerRuleType> = {
  readonly [K in T]: { readonly type: K } & LedgerChecks[K];
}[T];
export type LedgerCheck = LedgerCheckOf<LedgerRuleType>;

/** The part of a rule that is sent with a payment; for a server's rule only that it flagged. */
export type RuleCheck = { readonly type: ServerRuleType } | LedgerCheck;

/** Judgement by the server, with everything precomputed that does not depend on the payment. */
interface ServerJudgement {
  readonly flags: (payment: RuledFacts) => boolean;
  /** Texts that the judgement keeps in memory. */
  readonly texts?: ReadonlySet<string>;
}

function judgeListed(
  { anyOf = [], noneOf }: Listed,
  compared: (entry: string) => string,
  namesOf: (payment: RuledFacts) => readonly string[],
): ServerJudgement {
  const texts = new Set((noneOf ?? anyOf).map(compared));
  const isFlaggedIfListed = noneOf === undefined;
  return {
    texts,
    flags: (payment) => namesOf(payment).some((name) => texts.has(name)) === isFlaggedIfListed,
  };
}

const BY_SERVER: { readonly [T in ServerRuleType]: (params: RuleParams[T]) => ServerJudgement } = {
  amount_above: ({ amountCents }) => ({ flags: (payment) => payment.amountMc > mcOf(amountCents) }),
  new_recipient: () => ({ flags: ({ isNewRecipient }) => isNewRecipient }),
  recipient: (listed) =>
    judgeListed(listed, comparedName, (payment) => [payment.comparedName, ...payment.shopNames]),
  merchant_category: (listed) =>
    judgeListed(
      listed,
      (category) => category,
      ({ merchantCategory }) => (merchantCategory === null ? [] : [merchantCategory]),
    ),
  rail({ anyOf }) {
    const rails = new Set(anyOf);
    return { flags: ({ rail }) => rails.has(rail) };
  },
};

/** Returns the index of a time zone among those sent with a payment. */
export type ZoneOf = (timezone: string) => number;

interface LedgerJudgement<T extends LedgerRuleType> {
  /** Prepares the check for the ledger; the part that does not depend on the payment is precomputed. */
  readonly ready: (params: RuleParams[T]) => (zoneOf: ZoneOf) => LedgerCheck;
  readonly flags: (check: LedgerCheckOf<T>, facts: LedgerFacts) => boolean;
  /** Whether the earlier check flags whenever the later one does. */
  readonly covers: (earlier: LedgerCheckOf<T>, later: LedgerCheckOf<T>) => boolean;
}

const BY_LEDGER: { readonly [T in LedgerRuleType]: LedgerJudgement<T> } = {
  velocity: {
    ready({ count, windowSeconds }) {
      const check = { type: "velocity", count, windowSeconds } as const;
      return () => check;
    },
    flags: ({ count, windowSeconds }, { countWithin }) => countWithin(windowSeconds * 1_000) >= count,
    covers: (earlier, later) => earlier.count <= later.count && earlier.windowSeconds >= later.windowSeconds,
  },
  duplicate: {
    ready({ windowSeconds }) {
      const check = { type: "duplicate", windowSeconds } as const;
      return () => check;
    },
    flags({ windowSeconds }, { newestSimilarAt, now }) {
      const likeAt = newestSimilarAt();
      return likeAt !== null && likeAt > now - windowSeconds * 1_000;
    },
    covers: (earlier, later) => earlier.windowSeconds >= later.windowSeconds,
  },
  time_window: {
    ready({ days, from, outside, timezone, to }) {
      const window = {
        days: days.map((day) => WEEKDAYS.indexOf(day)).toSorted((a, b) => a - b),
        fromMinutes: minutesOf(from),
        toMinutes: minutesOf(to),
        outside,
      };
      return (zoneOf) => ({ type: "time_window", zone: zoneOf(timezone), ...window });
    },
    flags: (check, { now, zones }) => timeWindowFlags(check, zones?.[check.zone], now),
    covers: (earlier, later) => earlier.zone === later.zone && isSameWindow(earlier, later),
  },
};

/** An enabled or shadow rule, prepared for judging payments. */
export type ReadyRule = { readonly isShadow: boolean } & (
  | ({ readonly type: ServerRuleType } & ServerJudgement)
  | { readonly type: LedgerRuleType; readonly checkWith: (zoneOf: ZoneOf) => LedgerCheck }
);

const isJudgedByLedger = (rule: ApprovalRule): rule is RuleOf<LedgerRuleType> => rule.type in BY_LEDGER;

/** Types of rules whose checks only say that they flag. */
export const SERVER_RULE_TYPES: readonly ServerRuleType[] = RULE_TYPES.filter(
  (type): type is ServerRuleType => type in BY_SERVER,
);

const readyForServer = <T extends ServerRuleType>(rule: RuleOf<T>): ReadyRule => ({
  type: rule.type,
  isShadow: !rule.enabled,
  ...BY_SERVER[rule.type](rule.params),
});

const readyForLedger = <T extends LedgerRuleType>(rule: RuleOf<T>): ReadyRule => ({
  type: rule.type,
  isShadow: !rule.enabled,
  checkWith: BY_LEDGER[rule.type].ready(rule.params),
});

/**
 * Prepares a container's enabled and shadow rules, in their order, to judge any number of payments. Long lists of names
 * are costly only here, so this is done once per set of rules.
 */
export const readyRules = (rules: readonly ApprovalRule[]): readonly ReadyRule[] =>
  rules
    .filter(({ enabled, shadow }) => enabled || shadow === true)
    .map((rule) => (isJudgedByLedger(rule) ? readyForLedger(rule) : readyForServer(rule)));

/** Returns the check of one rule; null if it can't flag the payment at any time. */
export function checkOf(rule: ReadyRule, payment: RuledFacts, zoneOf: ZoneOf): RuleCheck | null {
  if ("checkWith" in rule) return rule.checkWith(zoneOf);
  return rule.flags(payment) ? { type: rule.type } : null;
}

const isLedgerCheck = (check: RuleCheck): check is LedgerCheck => check.type in BY_LEDGER;

const judge = <T extends LedgerRuleType>(check: LedgerCheckOf<T>, facts: LedgerFacts): boolean =>
  BY_LEDGER[check.type].flags(check, facts);

/** Whether a check flags its payment. A server's check always does, since the server sends only those that flag. */
export const checkFlags = (check: RuleCheck, facts: LedgerFacts): boolean =>
  isLedgerCheck(check) ? judge(check, facts) : true;

const isOf = <T extends LedgerRuleType>(
  type: T,
  check: { readonly type: string },
): check is LedgerCheckOf<T> => check.type === type;

const judgedCovers = <T extends LedgerRuleType>(earlier: LedgerCheckOf<T>, later: RuleCheck): boolean =>
  isOf(earlier.type, later) && BY_LEDGER[earlier.type].covers(earlier, later);

/** Whether the earlier check, of the same type, flags whenever the later one does. */
export const covers = (earlier: RuleCheck, later: RuleCheck): boolean =>
  isLedgerCheck(earlier) ? judgedCovers(earlier, later) : earlier.type === later.type;

/** Returns the windows in which checks count payments, shortest first. */
export function windowsMsOf(checks: readonly RuleCheck[]): readonly number[] {
  const windows = checks.flatMap((check) => (check.type === "velocity" ? [check.windowSeconds * 1_000] : []));
  return windows.length < 2 ? windows : [...new Set(windows)].toSorted((one, other) => one - other);
}
