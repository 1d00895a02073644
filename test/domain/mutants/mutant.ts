import type { Domain } from "../../../scripts/simulation/domain.ts";

/** A fault in the domain that the auditor must notice. */
export interface Mutant {
  readonly fault: string;
  /** What the auditor says of it, in part, so that it is noticed for what it is. */
  readonly complaint: string;
  /** Comes to it soonest, of some that were tried. */
  readonly seed?: number;
  /** Made anew for each run: some remember. */
  readonly domain: () => Domain;
}
