import type { Rail } from "../ledger/payment.ts";
import type { Denial } from "../ledger/policy.ts";
import { comparedName } from "./compared-name.ts";
import type { RuledFacts } from "./rules.ts";

/**
 * Restrictions of a project, a team or an agent. A payment that one level forbids is denied, whatever other levels
 * allow and a person would decide. Rules, in contrast, hold a payment for a person.
 */

/** Allowed entries (null for all), and entries that are forbidden even then. */
interface AllowAndDeny {
  readonly only: readonly string[] | null;
  readonly never: readonly string[];
}

export const UNCODED = ["allow", "deny"] as const;

export interface Restrictions {
  /** Names, addresses and hosts (`host:api.example.com`), compared as by rules. */
  readonly recipients: AllowAndDeny;
  readonly merchantCategories: AllowAndDeny & {
    /** Treatment of a payment without a category. */
    readonly uncoded: (typeof UNCODED)[number];
  };
  readonly rails: { readonly only: readonly Rail[] | null };
}

export const NO_RESTRICTIONS: Restrictions = {
  recipients: { only: null, never: [] },
  merchantCategories: { only: null, never: [], uncoded: "allow" },
  rails: { only: null },
};

/** Denials by restrictions, in the order of their checks. */
export const RESTRICTION_CODES = [
  "RAIL_NOT_ALLOWED",
  "RECIPIENT_NOT_ALLOWED",
  "MERCHANT_CATEGORY_NOT_ALLOWED",
] as const;
export type RestrictionCode = (typeof RESTRICTION_CODES)[number];

/** Levels with restrictions, in the order of their checks. */
export const RESTRICTED_LEVELS = ["agent", "team", "project"] as const;
export type RestrictedLevel = (typeof RESTRICTED_LEVELS)[number];

/** The first level that forbids a payment, and the restriction by which it does. */
export interface Forbidden {
  readonly code: RestrictionCode;
  readonly level: RestrictedLevel;
}

/** Facts of a payment that restrictions judge. */
export type RestrictedFacts = Pick<RuledFacts, "rail" | "merchantCategory" | "comparedName" | "shopNames">;

/** Restrictions of one level, prepared to judge any number of payments. */
export interface ReadyRestrictions {
  readonly forbids: Readonly<Record<RestrictionCode, (payment: RestrictedFacts) => boolean>>;
  readonly merchantCategories: CategoryLists;
  /** Texts that the preparation keeps in memory. */
  readonly texts: readonly ReadonlySet<string>[];
}

/** Lists of merchant categories. */
export type CategoryLists = AllowAndDeny;

/** Prepares the lists of one level; the costly part, to be done once per set of lists. */
export function readyRestrictions({
  merchantCategories,
  rails,
  recipients,
}: Restrictions): ReadyRestrictions {
  const names = readyLists(recipients, comparedName);
  const categories = readyLists(merchantCategories, (category) => category);
  return {
    merchantCategories: { only: merchantCategories.only, never: merchantCategories.never },
    texts: [...names.texts, ...categories.texts],
    forbids: {
      RAIL_NOT_ALLOWED: ({ rail }) => rails.only !== null && !rails.only.includes(rail),
      RECIPIENT_NOT_ALLOWED: (payment) => names.forbid([payment.comparedName, ...payment.shopNames]),
      MERCHANT_CATEGORY_NOT_ALLOWED: ({ merchantCategory }) =>
        merchantCategory === null
          ? merchantCategories.uncoded === "deny"
          : categories.forbid([merchantCategory]),
    },
  };
}

/** Prepares lists. A payment with several names, as a purchase, is forbidden or allowed by any of them. */
function readyLists({ never, only }: AllowAndDeny, compared: (entry: string) => string) {
  const forbidden = new Set(never.map(compared));
  const allowed = only === null ? null : new Set(only.map(compared));
  return {
    texts: allowed === null ? [forbidden] : [forbidden, allowed],
    forbid: (names: readonly string[]): boolean =>
      names.some((name) => forbidden.has(name)) ||
      (allowed !== null && !names.some((name) => allowed.has(name))),
  };
}

type Levels = Readonly<Record<RestrictedLevel, ReadyRestrictions | undefined>>;

/** Joins the category lists of all levels: categories that every level allows, and those that any level forbids. */
export function categoriesOver(levels: Levels): CategoryLists {
  const lists = RESTRICTED_LEVELS.flatMap((level) => levels[level]?.merchantCategories ?? []);
  const [first, ...others] = lists.flatMap(({ only }) => (only === null ? [] : [only]));
  return {
    only: first?.filter((code) => others.every((only) => only.includes(code))) ?? null,
    never: [...new Set(lists.flatMap(({ never }) => never))],
  };
}

/** Returns the first restriction that forbids a payment, by code, then by level; null if it is allowed. */
export function forbiddenBy(levels: Levels, payment: RestrictedFacts): Forbidden | null {
  for (const code of RESTRICTION_CODES)
    for (const level of RESTRICTED_LEVELS)
      if (levels[level]?.forbids[code](payment) === true) return { code, level };
  return null;
}

const NOUNS: Readonly<Record<RestrictionCode, string>> = {
  RAIL_NOT_ALLOWED: "rail",
  RECIPIENT_NOT_ALLOWED: "recipient",
  MERCHANT_CATEGORY_NOT_ALLOWED: "merchant category",
};

/** Returns the denial of a forbidden payment, whose reason does not reveal the lists. */
export const restrictionDenial = ({ code, level }: Forbidden): Denial => ({
  code,
  reason: `The ${level}'s restrictions do not allow this ${NOUNS[code]}.`,
  details: null,
});
