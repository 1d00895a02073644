import { LRUCache } from "lru-cache";
import type { Collection } from "mongodb";
import type { OrganizationDocument } from "../store/identity-documents.ts";

/** The TTL of the cache: how long a plan, or a name, may be out of date. */
const CACHE_TTL_MS = 10_000;
const ORGANIZATIONS_MAX = 10_000;

export type FindOrganization = (id: string) => Promise<OrganizationDocument | null>;

interface CacheEntry {
  readonly organization: Promise<OrganizationDocument | null>;
  readonly until: number;
}

/**
 * The organizations of callers: a read per organization and 10 s, not per request. Nothing in one says who may do
 * what; keys, sessions and users, which do, are read anew for every request. One that is not ready yet is not kept, so
 * that it is ready for everybody at once.
 */
export class Organizations {
  readonly #find: FindOrganization;
  readonly #clock: () => Date;
  readonly #stored = new LRUCache<string, CacheEntry>({ max: ORGANIZATIONS_MAX });

  constructor(find: FindOrganization, clock: () => Date) {
    this.#find = find;
    this.#clock = clock;
  }

  static in(collection: Collection<OrganizationDocument>, clock: () => Date): Organizations {
    return new Organizations((_id) => collection.findOne({ _id }), clock);
  }

  async of(id: string): Promise<OrganizationDocument | null> {
    const now = this.#clock().getTime();
    const known = this.#stored.get(id);
    if (known !== undefined && now < known.until) return known.organization;
    const organization = this.#find(id);
    const stored = { organization, until: now + CACHE_TTL_MS };
    this.#stored.set(id, stored);
    try {
      const found = await organization;
      if (found?.status !== "ready") this.#forget(id, stored);
      return found;
    } catch (error) {
      this.#forget(id, stored);
      throw error;
    }
  }

  /** Has this process read an organization anew that was just changed; others follow within the TTL. */
  changed(id: string): void {
    this.#stored.delete(id);
  }

  /** Unless another read has taken its place. */
  #forget(id: string, stored: CacheEntry): void {
    if (this.#stored.get(id) === stored) this.#stored.delete(id);
  }
}
