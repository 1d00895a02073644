/** A fault in a domain that its book must notice. */
export interface Mutant<Domain> {
  readonly fault: string;
  /** Part of the expected complaint, so that the fault is noticed for what it is. */
  readonly complaint: string;
  /** Comes to it soonest, of some that were tried. */
  readonly seed?: number;
  /** Made anew for each run: some remember. */
  readonly domain: () => Domain;
}
