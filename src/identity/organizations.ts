import { LRUCache } from "lru-cache";
import type { Collection } from "mongodb";
import type { OrganizationDocument } from "../store/identity-documents.ts";

/** TTL of the cache: maximum age of a plan or a name. */
const CACHE_TTL_MS = 10_000;
const ORGANIZATIONS_MAX = 10_000;

export type FindOrganization = (id: string) => Promise<OrganizationDocument | null>;

interface CacheEntry {
  readonly organization: Promise<OrganizationDocument | null>;
  readonly until: number;
}

/**
 * Caches callers' organizations: one read per organization and 10 s instead of one per request. An organization's
 * record grants no rights; keys, sessions and users do, and are read for every request. An organization that is not
 * ready is not cached, so that its readiness is seen at once.
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

  /** Evicts a changed organization in this process; other processes follow within the TTL. */
  changed(id: string): void {
    this.#stored.delete(id);
  }

  /** Evicts an entry unless another read has replaced it. */
  #forget(id: string, stored: CacheEntry): void {
    if (this.#stored.get(id) === stored) this.#stored.delete(id);
  }
}
