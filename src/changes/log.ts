import type { Change } from "./feed.ts";
import type { Position } from "./position.ts";

/**
 * Bounds of remembered changes, in all and per organization. A client that resumes beyond them reads everything
 * again.
 */
export interface LogBounds {
  readonly inAll: number;
  readonly ofOne: number;
}
const BOUNDS: LogBounds = { inAll: 50_000, ofOne: 5_000 };

interface RecentChanges {
  /** Last change of each kind and id, in order. */
  readonly changes: Map<string, Change>;
  /** Behind it everything is there. */
  wholeFrom: Position;
}

/**
 * Recent changes of all organizations: which records, not how. So that a stream can be resumed, here or from another process, by
 * reading those that changed since as they are now.
 */
export class ChangeLog {
  readonly #bounds: LogBounds;
  /** The one that changed last comes last. */
  readonly #organizations = new Map<string, RecentChanges>();
  /** Behind it, what is not there has not changed. */
  #wholeFrom: Position = "";
  #size = 0;

  constructor(bounds = BOUNDS) {
    this.#bounds = bounds;
  }

  /** Begins at a position; earlier changes are unknown. */
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

  /** The one in which nothing has happened for longest. */
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
