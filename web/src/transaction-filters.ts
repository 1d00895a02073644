import type { Input } from "../../src/client/types.ts";
import { RAIL_LIST } from "./rails.ts";

type Query = NonNullable<Input<"listTransactions">["query"]>;

/** What a list of transactions is narrowed by: it stands in the address bar, so that it can be kept and handed on. */
export type Filters = Pick<Query, "agentId" | "projectId" | "teamId" | "type" | "range" | "status"> & {
  /** The transaction whose story is open. */
  readonly open?: string;
};

const RANGE = ["7d", "30d", "90d", "all"] as const;
const STATUS = ["approved", "pending", "denied", "failed", "reversed", "expired"] as const;

const oneOf = <T extends string>(values: readonly T[], input: unknown): T | undefined =>
  values.find((value) => value === input);
const text = (input: unknown): string | undefined =>
  typeof input === "string" && input !== "" ? input : undefined;

/** What of an address is a filter; anything else in it is none. */
export function filtersIn(search: Readonly<Record<string, unknown>>): Filters {
  const found = {
    agentId: text(search["agentId"]),
    projectId: text(search["projectId"]),
    teamId: text(search["teamId"]),
    open: text(search["open"]),
    type: RAIL_LIST.find(({ value }) => value === search["type"])?.value,
    range: oneOf(RANGE, search["range"]),
    status: oneOf(STATUS, search["status"]),
  };
  return Object.fromEntries(Object.entries(found).filter(([, value]) => value !== undefined));
}
