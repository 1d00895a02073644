import type { Rail } from "../ledger/payment.ts";

/**
 * Approval rules of a project or team: what an enabled rule flags
 * waits for a person.
 */

/** Every type of rule. */
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

/** What each type is set by. */
export interface RuleParams {
  /** Flags what is above, not what is at. */
  readonly amount_above: { readonly amountCents: number };
  /** Flags until an earlier payment of the agent to the recipient on the rail has settled. */
  readonly new_recipient: Readonly<Record<string, never>>;
  /** Addresses and names, compared without case. */
  readonly recipient: { readonly anyOf: readonly string[] };
  /** Four digits each. A payment without a category is not flagged. */
  readonly merchant_category: { readonly anyOf: readonly string[] };
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

export type ApprovalRule = {
  readonly [T in RuleType]: {
    readonly id: string;
    readonly type: T;
    readonly enabled: boolean;
    readonly params: RuleParams[T];
  };
}[RuleType];

/** The longest window of `velocity` and `duplicate`: 31 days. */
export const RULE_WINDOW_SECONDS_MAX = 2_678_400;

/** Soft hyphens, zero-width and variation characters: nobody sees them. */
const INVISIBLE = /\p{Default_Ignorable_Code_Point}/gu;
const SPACES = /\p{White_Space}+/gu;

/**
 * What recipients are compared by, so that a rule about one is not evaded by how its name is written: compatibility forms
 * (NFKC), letters without their case in every script, no invisible characters, one space wherever there are some, none at
 * the ends. Through upper case first, since some letters have more than one lower case, or more than one letter for it, and
 * through lower case before, since one capital becomes such a letter (ẞ).
 */
export const comparedName = (recipient: string): string =>
  recipient
    .normalize("NFKC")
    .replaceAll(INVISIBLE, "")
    .toLowerCase()
    .toUpperCase()
    .toLowerCase()
    .normalize("NFKC")
    .replaceAll(SPACES, " ")
    .trim();

/** The most UTF-16 units that a name may have once its compatibility forms are folded; four for each of its characters. */
export const FOLDED_NAME_MAX = 800;

/**
 * Whether a name stays short when its compatibility forms are folded: a single character can become 18, and whatever
 * compares names would work by what they become. No name that people write comes near the bound.
 */
export const foldsShort = (name: string): boolean =>
  name.length <= FOLDED_NAME_MAX && name.normalize("NFKC").length <= FOLDED_NAME_MAX;
