import type { Approval } from "./words.ts";

const SORTS = ["deadline", "amount"] as const;

export interface InboxSearch {
  readonly agentId?: string;
  readonly teamId?: string;
  /** Type of a rule that flagged the payment. */
  readonly reason?: string;
  readonly minCents?: number;
  readonly maxCents?: number;
  /** Default: newest first. */
  readonly sort?: (typeof SORTS)[number];
  readonly view?: "compact";
}

/** New value of each field; null clears it. */
export type InboxChange = { readonly [K in keyof InboxSearch]?: InboxSearch[K] | null };

export function inboxSearchIn(search: Readonly<Record<string, unknown>>): InboxSearch {
  const text = (name: string): string | undefined => {
    const value = search[name];
    return typeof value === "string" && value !== "" ? value : undefined;
  };
  const cents = (name: string): number | undefined => {
    const value = search[name];
    return typeof value === "number" && Number.isSafeInteger(value) && value >= 0 ? value : undefined;
  };
  const found = {
    agentId: text("agentId"),
    teamId: text("teamId"),
    reason: text("reason"),
    minCents: cents("minCents"),
    maxCents: cents("maxCents"),
    sort: SORTS.find((each) => each === search["sort"]),
    view: search["view"] === "compact" ? "compact" : undefined,
  };
  return Object.fromEntries(Object.entries(found).filter(([, value]) => value !== undefined));
}

export const isNarrowed = ({ agentId, maxCents, minCents, reason, teamId }: InboxSearch): boolean =>
  [agentId, maxCents, minCents, reason, teamId].some((each) => each !== undefined);

/** Returns the approvals that match the filters, in the chosen order. */
export function inboxOf(approvals: readonly Approval[], search: InboxSearch): readonly Approval[] {
  const { agentId, maxCents = Infinity, minCents = 0, reason, sort, teamId } = search;
  const found = approvals.filter(
    (each) =>
      (agentId === undefined || each.agentId === agentId) &&
      (teamId === undefined || each.teamId === teamId) &&
      (reason === undefined || each.flaggedByRuleTypes.includes(reason)) &&
      each.amountCents >= minCents &&
      each.amountCents <= maxCents,
  );
  if (sort === "amount") return found.toSorted((a, b) => b.amountCents - a.amountCents);
  if (sort === "deadline") return found.toSorted((a, b) => Date.parse(a.expiresAt) - Date.parse(b.expiresAt));
  return found;
}
