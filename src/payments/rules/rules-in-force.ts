import type DataLoader from "dataloader";
import { LRUCache } from "lru-cache";
import type { Collection } from "mongodb";
import { type RuledDocument, rulesRevisionOf } from "../../store/documents.ts";
import { type ReadyRestrictions, readyRestrictions } from "../../domain/rules/restrictions.ts";
import { type ReadyRule, readyRules } from "../../domain/rules/rules.ts";
import { documentLoader } from "../../lib/batch-loader.ts";
import { contentHash } from "../../lib/ids.ts";
import { ReadyCache } from "./ready-cache.ts";

/** Identity of a level's rules and restrictions, without their contents. */
export interface RulesHead {
  readonly _id: string;
  readonly approvalRules?: Omit<NonNullable<RuledDocument["approvalRules"]>, "rules">;
  readonly restrictions?: Omit<NonNullable<RuledDocument["restrictions"]>, "lists">;
}

/** Enabled rules and restrictions of a level, prepared for judging, and their common version. */
export interface RulesInForce {
  readonly rules: readonly ReadyRule[];
  readonly restrictions: ReadyRestrictions | undefined;
  readonly version: number;
}

const HEAD = {
  "approvalRules.version": 1,
  "approvalRules.contentHash": 1,
  "approvalRules.proof": 1,
  "restrictions.version": 1,
  "restrictions.contentHash": 1,
  "restrictions.proof": 1,
} as const;

/** Whether rules and restrictions are as the service wrote them; otherwise the forgery has been reported. */
export type AreRulesGenuine = (head: RulesHead) => boolean;

/** The rules were changed by something other than the service, so no payment is judged by them. */
export class RulesForged extends Error {
  override readonly name = "RulesForged";
  readonly isUnavailable = true;
}

/** Size and TTL of the cache of versions. The TTL bounds the delay of a replacement whose response was lost. */
const CACHED_HEADS_MAX = 10_000;
const HEAD_CACHE_MS = 5_000;

/** Prepared contents of all levels, by content hash. */
export interface ReadyContents {
  readonly rules: ReadyCache<readonly ReadyRule[]>;
  readonly restrictions: ReadyCache<ReadyRestrictions>;
}

export const textsOfRules = (rules: readonly ReadyRule[]) =>
  rules.map((rule) => ("texts" in rule ? [rule.texts ?? []] : []));

export const readyContents = (): ReadyContents => ({
  rules: new ReadyCache(textsOfRules),
  restrictions: new ReadyCache(({ texts }) => [texts]),
});

/**
 * Rules and restrictions of projects, teams or agents, at most some seconds old, or as of the last `forget`. Contents
 * are read only if this process does not have them: a level may have hundreds of kilobytes, and reading and preparing
 * one organization's must not slow every payment of the others.
 */
export class RulesOf {
  readonly #levels: Collection<RuledDocument>;
  readonly #ready: ReadyContents;
  readonly #areGenuine: AreRulesGenuine;
  readonly #heads: DataLoader<string, RulesHead | null>;
  /** Cached heads; an entry without a head is a level without rules or restrictions. */
  readonly #cached = new LRUCache<string, { readonly head: RulesHead | undefined }>({
    max: CACHED_HEADS_MAX,
    ttl: HEAD_CACHE_MS,
  });
  /** Reads in progress; concurrent payments share one. */
  readonly #reading = new Map<string, Promise<RulesInForce | undefined>>();

  constructor(levels: Collection<RuledDocument>, ready: ReadyContents, areGenuine: AreRulesGenuine) {
    this.#levels = levels;
    this.#ready = ready;
    this.#areGenuine = areGenuine;
    this.#heads = headLoader(levels);
  }

  /** Returns undefined if none were ever set. */
  async of(id: string): Promise<RulesInForce | undefined> {
    const cached = this.#cached.get(id);
    const head = cached === undefined ? await this.#readHead(id) : cached.head;
    if (head === undefined) return undefined;
    const known = this.#known(head);
    if (known !== null) return known;
    // Versions only grow: any read started for this version returns it or a later one.
    const key = `${id} ${rulesRevisionOf(head)}`;
    const reading = this.#reading.get(key) ?? this.#read(id).finally(() => this.#reading.delete(key));
    this.#reading.set(key, reading);
    return reading;
  }

  /** Makes the next call read the current head. */
  forget(id: string): void {
    this.#cached.delete(id);
  }

  async #readHead(id: string): Promise<RulesHead | undefined> {
    const found = await this.#heads.load(id);
    const head = hasRules(found) ? found : undefined;
    this.#verify(head);
    this.#cached.set(id, { head });
    return head;
  }

  /** Returns null if contents have to be read. */
  #known(head: RulesHead): RulesInForce | null {
    const { approvalRules, restrictions } = head;
    const rules = approvalRules === undefined ? [] : this.#ready.rules.get(approvalRules.contentHash);
    if (rules === undefined) return null;
    const version = rulesRevisionOf(head);
    if (restrictions === undefined) return { rules, restrictions, version };
    const ready = this.#ready.restrictions.get(restrictions.contentHash);
    return ready === undefined ? null : { rules, restrictions: ready, version };
  }

  /** Reads the current contents, which may be newer than those requested. */
  async #read(id: string): Promise<RulesInForce | undefined> {
    const projection = { approvalRules: 1, restrictions: 1 };
    const found = await this.#levels.findOne({ _id: id }, { projection });
    if (!hasRules(found)) return undefined;
    this.#verify(found);
    const { approvalRules, restrictions } = found;
    const areWhole =
      (approvalRules === undefined || contentHash(approvalRules.rules) === approvalRules.contentHash) &&
      (restrictions === undefined || contentHash(restrictions.lists) === restrictions.contentHash);
    if (!areWhole) throw new RulesForged(`the approval rules or restrictions of ${id} were changed`);
    const rules = readyRules(approvalRules?.rules ?? []);
    if (approvalRules !== undefined) this.#ready.rules.set(approvalRules.contentHash, rules);
    const ready = restrictions === undefined ? undefined : readyRestrictions(restrictions.lists);
    if (restrictions !== undefined && ready !== undefined)
      this.#ready.restrictions.set(restrictions.contentHash, ready);
    return { rules, restrictions: ready, version: rulesRevisionOf(found) };
  }

  /** Throws `RulesForged` if the head is not genuine. */
  #verify(found: RulesHead | undefined): void {
    if (found === undefined || this.#areGenuine(found)) return;
    throw new RulesForged(`what restricts payments of ${found._id} is not as the service wrote it`);
  }
}

const hasRules = <T extends RulesHead>(found: T | null): found is T =>
  found?.approvalRules !== undefined || found?.restrictions !== undefined;

function headLoader(levels: Collection<RuledDocument>) {
  const options = { projection: HEAD };
  return documentLoader<RulesHead>(
    (_id) => levels.findOne<RulesHead>({ _id }, options),
    (ids) => levels.find<RulesHead>({ _id: { $in: [...ids] } }, options).toArray(),
  );
}
