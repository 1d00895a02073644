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
 * Approval rules of a project or team: a payment that an enabled rule flags waits for a person. All that the domain knows of
 * a type is here: what sets it (`RuleParams`) and how it is judged, by the server (`BY_SERVER`) or by the ledger (`BY_LEDGER`).
 */

/** All types of rules. */
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

/** Monday first; a weekday is its place here. */
export const WEEKDAYS = ["mon", "tue", "wed", "thu", "fri", "sat", "sun"] as const;
export type Weekday = (typeof WEEKDAYS)[number];

/** Flags the entries of `anyOf`, or all but those of `noneOf`; the contract admits exactly one of the two. */
export interface Listed {
  readonly anyOf?: readonly string[] | undefined;
  readonly noneOf?: readonly string[] | undefined;
}

/** Parameters of each type. */
export interface RuleParams {
  /** Flags what is above, not what is at. */
  readonly amount_above: { readonly amountCents: number };
  /** Flags until an earlier payment of the agent to the recipient on the rail has settled. */
  readonly new_recipient: Readonly<Record<string, never>>;
  /** Addresses and names, compared without case. */
  readonly recipient: Listed;
  /** Four digits each. A payment without a category is in no list. */
  readonly merchant_category: Listed;
  readonly rail: { readonly anyOf: readonly Rail[] };
  /** Flags the payment that would be number `count` + 1 of the agent in the window. */
  readonly velocity: { readonly count: number; readonly windowSeconds: number };
  /** `from` inclusive, `to` exclusive, `HH:MM` on the wall; over midnight when `from` is later than `to`. */
  readonly time_window: {
    /** IANA. */
    readonly timezone: string;
    readonly days: readonly Weekday[];
    readonly from: string;
    readonly to: string;
    /** True flags what lies outside of the window, false what lies inside. */
    readonly outside: boolean;
  };
  /** Flags a payment like one that the agent has made, on hold included, denied ones not. */
  readonly duplicate: { readonly windowSeconds: number };
}

/** A rule of one of these types. */
export type RuleOf<T extends RuleType> = {
  readonly [K in T]: {
    readonly id: string;
    readonly type: K;
    readonly enabled: boolean;
    /** Whether a disabled rule says what it would have flagged. */
    readonly shadow?: boolean | undefined;
    readonly params: RuleParams[K];
  };
}[T];
export type ApprovalRule = RuleOf<RuleType>;

/** The longest window of `velocity` and `duplicate`: 31 days. */
export const RULE_WINDOW_SECONDS_MAX = 2_678_400;

/** The facts of a payment that the server judges rules by. */
export interface RuledFacts {
  readonly rail: Rail;
  readonly amountMc: number;
  readonly merchantCategory: string | null;
  /** The recipient as it is compared. */
  readonly comparedName: string;
  /** The names of the shop that a purchase is made at, as they are compared; none of another payment. */
  readonly shopNames: readonly string[];
  /** Whether no earlier payment of the agent to the recipient on the rail, or to the shop's host, has settled. */
  readonly isNewRecipient: boolean;
}

/** Facts by which the ledger judges a payment's checks. */
export interface LedgerFacts {
  /** The time of the decision, epoch milliseconds. */
  readonly now: number;
  /** The wall clocks of the zones that checks name by their place. */
  readonly zones: readonly ZoneOffsets[] | undefined;
  /** Payments that passed policy in the window that ends now, of this many milliseconds; one as old as it has left it. */
  readonly countWithin: (windowMs: number) => number;
  /** Returns when the newest like payment that is not denied was made; null if there is none. */
  readonly newestSimilarAt: () => number | null;
}

/** Parameters of the types that depend on other payments or on time. */
export interface LedgerChecks {
  readonly velocity: RuleParams["velocity"];
  readonly duplicate: RuleParams["duplicate"];
  readonly time_window: TimeWindow & {
    /** Place in `PaymentRules.zones`. */
    readonly zone: number;
  };
}
export type LedgerRuleType = keyof LedgerChecks;

/** Types that follow from the payment and the records of settled ones alone. */
export type ServerRuleType = Exclude<RuleType, LedgerRuleType>;

type LedgerCheckOf<T extends LedgerRuleType> = {
  readonly [K in T]: { readonly type: K } & LedgerChecks[K];
}[T];
export type LedgerCheck = LedgerCheckOf<LedgerRuleType>;

/** The part of a rule that is sent with a payment; for a server's rule only that it flagged. */
export type RuleCheck = { readonly type: ServerRuleType } | LedgerCheck;

/** A rule that the server judges, without what does not depend on the payment: that is worked out. */
interface ServerJudgement {
  readonly flags: (payment: RuledFacts) => boolean;
  /** The texts that are kept to judge by. */
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

/** The place of a time zone among those that go with a payment. */
export type ZoneOf = (timezone: string) => number;

interface LedgerJudgement<T extends LedgerRuleType> {
  /** Prepares the check for the ledger; the part that does not depend on the payment is computed in advance. */
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

/** An enabled rule, or one in the shadow, as payments are judged by it. */
export type ReadyRule = { readonly isShadow: boolean } & (
  | ({ readonly type: ServerRuleType } & ServerJudgement)
  | { readonly type: LedgerRuleType; readonly checkWith: (zoneOf: ZoneOf) => LedgerCheck }
);

const isJudgedByLedger = (rule: ApprovalRule): rule is RuleOf<LedgerRuleType> => rule.type in BY_LEDGER;

/** The types of rules whose checks say no more than that they flag. */
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
 * The rules of a container that say something, in their order, made ready to judge any number of payments. This is where a long list
 * of names costs something: it is to be done once for each set of rules.
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

/** Whether a check flags the payment that it goes with. One that is not the ledger's does: the server has seen that. */
export const checkFlags = (check: RuleCheck, facts: LedgerFacts): boolean =>
  isLedgerCheck(check) ? judge(check, facts) : true;

const isOf = <T extends LedgerRuleType>(
  type: T,
  check: { readonly type: string },
): check is LedgerCheckOf<T> => check.type === type;

const judgedCovers = <T extends LedgerRuleType>(earlier: LedgerCheckOf<T>, later: RuleCheck): boolean =>
  isOf(earlier.type, later) && BY_LEDGER[earlier.type].covers(earlier, later);

/** Whether the earlier check flags whenever the later one does, under the same type. */
export const covers = (earlier: RuleCheck, later: RuleCheck): boolean =>
  isLedgerCheck(earlier) ? judgedCovers(earlier, later) : earlier.type === later.type;

/** The windows that checks count payments in, shortest first. */
export function windowsMsOf(checks: readonly RuleCheck[]): readonly number[] {
  const windows = checks.flatMap((check) => (check.type === "velocity" ? [check.windowSeconds * 1_000] : []));
  return [...new Set(windows)].toSorted((one, other) => one - other);
}
