import { instantsOf } from "./days.ts";
import type { Filters, Query } from "./transaction-filters.ts";

/** Returns the filters in the API's form, without the search. */
export function queryOf(filters: Filters, timezone: string): Omit<Query, "search"> {
  const { from, maxCents, minCents, open: _open, search: _search, to, ...others } = filters;
  return {
    ...others,
    ...instantsOf({ from, to }, timezone),
    ...(minCents === undefined ? {} : { minAmountCents: minCents }),
    ...(maxCents === undefined ? {} : { maxAmountCents: maxCents }),
  };
}

/** Returns the query with the search, for list and export. */
export const searchOf = (filters: Filters, timezone: string): Query => ({
  ...queryOf(filters, timezone),
  ...(filters.search === undefined ? {} : { search: filters.search }),
});
