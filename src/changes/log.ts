import type { Change } from "./feed.ts";
import type { Position } from "./position.ts";

/** Maximum remembered changes, total and per organization. Clients further behind read everything again. */
export interface LogBounds {
  readonly inAll: number;
  readonly ofOne: number;
}
const BOUNDS: LogBounds = { inAll: 50_000, ofOne: 5_000 };

interface RecentChanges {
  /** Last change of each kind and id, in order. */
  readonly changes: Map<string, Change>;
  /** Position after which no change is missing. */
  wholeFrom: Position;
}

/**
 * Recent changes of all organizations: which records changed, not how. Lets a stream resume, in this or another
 * process, by reading the current state of the records that changed since.
 */
export class ChangeLog {
  readonly #bounds: LogBounds;
  /** Most recently changed organization last. */
  readonly #organizations = new Map<string, RecentChanges>();
  /** Position after which an organization that is missing here has no changes. */
  #wholeFrom: Position = "";
  #size = 0;

  constructor(bounds = BOUNDS) {
    this.#bounds = bounds;
  }

  /** Restarts the log at a position; earlier changes are unknown. */
  begin(at: Position): void {
    this.#organizations.clear();
    this.#size = 0;
    this.#wholeFrom = at;
  }

  add(change: Change): void {
    const { organizationId } = change;
    const own = this.#organizations.get(organizationId) ?? { changes: new Map(), wholeFrom: this.#wholeFrom };
    this.#organizations.delete(organizationId);
    this.#organizations.set(organizationId, own);
    const key = `${change.kind}/${change.id}`;
    if (!own.changes.delete(key)) this.#size += 1;
    own.changes.set(key, change);
    if (own.changes.size > this.#bounds.ofOne) this.#evictOldest(own);
    if (this.#size > this.#bounds.inAll) this.#evictOrganization();
  }

  /** Returns an organization's changes after a position; null if they are no longer known. */
  since(organizationId: string, position: Position): readonly Change[] | null {
    const own = this.#organizations.get(organizationId);
    const wholeFrom = own?.wholeFrom ?? this.#wholeFrom;
    if (position < wholeFrom) return null;
    return [...(own?.changes.values() ?? [])].filter((change) => change.position > position);
  }

  #evictOldest(own: RecentChanges): void {
    const [oldest] = own.changes;
    if (oldest === undefined) return;
    const [key, { position }] = oldest;
    own.changes.delete(key);
    own.wholeFrom = position;
    this.#size -= 1;
  }

  /** Evicts the organization with the least recent change. */
  #evictOrganization(): void {
    const [quietest] = this.#organizations;
    if (quietest === undefined) return;
    const [organizationId, { changes }] = quietest;
    this.#organizations.delete(organizationId);
    this.#size -= changes.size;
    const last = [...changes.values()].at(-1)?.position ?? "";
    if (last > this.#wholeFrom) this.#wholeFrom = last;
  }
}
