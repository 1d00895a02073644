import type { Input } from "../../src/client/types.ts";
import { RAIL_LIST } from "./rails.ts";

export type Query = NonNullable<Input<"listTransactions">["query"]>;

export interface Filters extends Pick<
  Query,
  "agentId" | "projectId" | "teamId" | "type" | "range" | "status"
> {
  readonly search?: string;
  /** First and last day, such as 2026-03-29, in the organization's time zone. */
  readonly from?: string;
  readonly to?: string;
  readonly minCents?: number;
  readonly maxCents?: number;
  /** Transaction whose history is open. */
  readonly open?: string;
}

/** New value of each filter; null clears it. */
export type FilterChange = { readonly [K in keyof Filters]?: Filters[K] | null };

export const RANGE = ["7d", "30d", "90d", "all"] as const;
export const STATUS = ["approved", "pending", "denied", "failed", "reversed", "expired"] as const;
const DAY = /^\d{4}-\d\d-\d\d$/;

const oneOf = <T extends string>(values: readonly T[], input: unknown): T | undefined =>
  values.find((value) => value === input);
const text = (input: unknown): string | undefined =>
  typeof input === "string" && input !== "" ? input : undefined;
const cents = (input: unknown): number | undefined =>
  typeof input === "number" && Number.isSafeInteger(input) && input >= 0 ? input : undefined;
const day = (input: unknown): string | undefined =>
  typeof input === "string" && DAY.test(input) && !Number.isNaN(Date.parse(input)) ? input : undefined;

/** Returns the filters of an address. Other parameters are ignored. */
export function filtersIn(search: Readonly<Record<string, unknown>>): Filters {
  const found = {
    // The router parses parameters as JSON where possible, so a search for a number arrives as one.
    search: text(typeof search["search"] === "number" ? String(search["search"]) : search["search"]),
    agentId: text(search["agentId"]),
    projectId: text(search["projectId"]),
    teamId: text(search["teamId"]),
    open: text(search["open"]),
    type: RAIL_LIST.find(({ value }) => value === search["type"])?.value,
    range: oneOf(RANGE, search["range"]),
    status: oneOf(STATUS, search["status"]),
    from: day(search["from"]),
    to: day(search["to"]),
    minCents: cents(search["minCents"]),
    maxCents: cents(search["maxCents"]),
  };
  return Object.fromEntries(Object.entries(found).filter(([, value]) => value !== undefined));
}
