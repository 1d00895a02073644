import { type Refusal, refusal } from "../domain/errors.ts";

/** A container's live children, and those named in a request. */
export interface Children {
  readonly live: readonly string[];
  readonly named: readonly string[];
}

/** Returns the defect of the children that a full replacement names; null if there is none. */
export function childrenProblem({ live, named }: Children): Refusal | null {
  const uniqueIds = new Set(named);
  const missing = live.filter((id) => !uniqueIds.has(id));
  if (missing.length > 0) return refusal("BUDGET_CHILDREN_INCOMPLETE", undefined, { missing });
  const unseen = new Set(live);
  const unknown = named.filter((id) => !unseen.delete(id));
  return unknown.length > 0 ? refusal("BUDGET_CHILD_UNKNOWN", undefined, { unknown }) : null;
}
