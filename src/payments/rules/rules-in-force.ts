import type DataLoader from "dataloader";
import { LRUCache } from "lru-cache";
import type { Collection } from "mongodb";
import type { ContainerDocument, StoredRules } from "../../store/documents.ts";
import { type ReadyRule, readyRules } from "../../domain/rules/rules.ts";
import { documentLoader } from "../../lib/batch-loader.ts";
import { contentHash as contentHashOf } from "../../lib/ids.ts";
import type { ReadyRulesCache } from "./ready-cache.ts";

/** Identity of a container's rules, without their contents. */
export interface RulesHead {
  readonly _id: string;
  readonly approvalRules?: Omit<StoredRules, "rules">;
}

/** The enabled rules of a container, ready to judge payments, and which version of them that is. */
export interface RulesInForce {
  readonly rules: readonly ReadyRule[];
  readonly version: number;
}

/** Reads from the primary: a rule that was set binds the next payment. */
const FROM_PRIMARY = { readPreference: "primary" } as const;
const HEAD = {
  "approvalRules.version": 1,
  "approvalRules.contentHash": 1,
  "approvalRules.proof": 1,
} as const;

/** Whether rules are as the service wrote them; if not, the forgery has been reported. */
export type AreRulesGenuine = (head: RulesHead) => boolean;

/** No payment is judged by rules that something else than the service has changed. */
export class RulesForged extends Error {
  override readonly name = "RulesForged";
  readonly isUnavailable = true;
}

/** The cache of rule versions: its size and TTL, which is how late a replacement takes effect that got no response. */
const CACHED_HEADS_MAX = 10_000;
const HEAD_CACHE_MS = 5_000;

/**
 * The rules of projects, or of teams, as they were some seconds ago at the most, or since they were forgotten. What they say is read only
 * where this process has not got it. A container may have hundreds of kilobytes of rules, and one organization's must not cost every
 * payment of all the others what it takes to read and prepare them.
 */
export class RulesOf {
  readonly #containers: Collection<ContainerDocument>;
  readonly #cache: ReadyRulesCache;
  readonly #areGenuine: AreRulesGenuine;
  readonly #heads: DataLoader<string, RulesHead | null>;
  /** An entry without rules is a container that has none. */
  readonly #cached = new LRUCache<string, { readonly head: RulesHead["approvalRules"] }>({
    max: CACHED_HEADS_MAX,
    ttl: HEAD_CACHE_MS,
  });
  /** Rules that are being read: payments that come at once wait for one reading of them. */
  readonly #reading = new Map<string, Promise<RulesInForce | undefined>>();

  constructor(
    containers: Collection<ContainerDocument>,
    cache: ReadyRulesCache,
    areGenuine: AreRulesGenuine,
  ) {
    this.#containers = containers;
    this.#cache = cache;
    this.#areGenuine = areGenuine;
    this.#heads = headLoader(containers);
  }

  /** Undefined where none were ever set. */
  async of(id: string): Promise<RulesInForce | undefined> {
    const cached = this.#cached.get(id);
    const head = cached === undefined ? await this.#readHead(id) : cached.head;
    if (head === undefined) return undefined;
    const { contentHash, version } = head;
    const rules = this.#cache.get(contentHash);
    if (rules !== undefined) return { rules, version };
    // Versions only grow: a reading for this one, by whomever, answers it or a later one.
    const key = `${id} ${version}`;
    const reading = this.#reading.get(key) ?? this.#read(id).finally(() => this.#reading.delete(key));
    this.#reading.set(key, reading);
    return reading;
  }

  /** The next call reads the current head. */
  forget(id: string): void {
    this.#cached.delete(id);
  }

  async #readHead(id: string): Promise<RulesHead["approvalRules"]> {
    const found = await this.#heads.load(id);
    this.#verify(found);
    const head = found?.approvalRules;
    this.#cached.set(id, { head });
    return head;
  }

  /** Reads the current rules, which may be newer than those asked for. */
  async #read(id: string): Promise<RulesInForce | undefined> {
    const found = await this.#containers.findOne(
      { _id: id },
      { ...FROM_PRIMARY, projection: { approvalRules: 1 } },
    );
    if (!found?.approvalRules) return undefined;
    this.#verify(found);
    const { contentHash, rules, version } = found.approvalRules;
    if (contentHashOf(rules) !== contentHash)
      throw new RulesForged(`the approval rules of ${id} were changed`);
    const ready = readyRules(rules);
    this.#cache.set(contentHash, ready);
    return { rules: ready, version };
  }

  /** Throws `RulesForged`. */
  #verify(found: RulesHead | null): void {
    if (found?.approvalRules === undefined || this.#areGenuine(found)) return;
    throw new RulesForged(`the approval rules of ${found._id} are not as the service wrote them`);
  }
}

function headLoader(containers: Collection<ContainerDocument>) {
  const options = { ...FROM_PRIMARY, projection: HEAD };
  return documentLoader<RulesHead>(
    (_id) => containers.findOne<RulesHead>({ _id }, options),
    (ids) => containers.find<RulesHead>({ _id: { $in: [...ids] } }, options).toArray(),
  );
}
