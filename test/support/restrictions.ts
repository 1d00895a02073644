import type { Restrictions } from "../../src/domain/rules/restrictions.ts";

/** A body that sets restrictions, with the lists that matter; `restricting` nothing, it forbids nothing. */
export const restricting = (lists: Partial<Restrictions> = {}, version = 1) => ({
  recipients: { only: null, never: [] },
  merchantCategories: { only: null, never: [], uncoded: "allow" as const },
  rails: { only: null },
  ...lists,
  version,
});
