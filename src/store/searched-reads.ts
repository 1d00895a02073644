import type { Document, Filter } from "mongodb";
import { newestFirst } from "./newest-first.ts";
import {
  conditions,
  type Listed,
  notBefore,
  type Path,
  type Position,
  positionOf,
  readNewest,
  type Selection,
  stored,
} from "./newest-reads.ts";

/**
 * Reads records that no single index selects, such as those with two words. Each step takes the index whose next
 * records reach back furthest, reads a bounded part of it, and skips what does not match. A search therefore costs
 * about as much as its rarest condition, and one that is rare only in combination returns what it has found so far.
 */

/** Records read in the first step per requested record; most searches end there. */
const FIRST_STEP_FACTOR = 4;
const STEP_GROWTH = 5;
/** Maximum records per step: about 30 ms of MongoDB's time. */
const STEP_MAX = 5_000;
/** Maximum keys read at once from an index that is not ordered by time. */
const RANGE_MAX = 5_000;
/** Time after which a search begins no further step. */
const SEARCH_MS = 100;

export interface Found<T> {
  readonly items: readonly T[];
  /** Position behind which the next read begins; null if there is nothing more. */
  readonly end: Position | null;
}

/** A path, and how far back a step along it goes; null: to the end. */
interface Reach {
  readonly path: Path;
  readonly until: Date | null;
}

/** Returns the next `limit` records of a selection with `paths`; fewer if there are no more, or after `searchMs`. */
export async function readSearched<T extends Listed>(
  selection: Selection<T>,
  after: Position | null,
  limit: number,
  searchMs = SEARCH_MS,
): Promise<Found<T>> {
  const { equals, paths: others = [], where = {} } = selection;
  if (equals === null) return { items: [], end: null };
  if ("_id" in equals) return { items: await readNewest(selection, after, limit), end: null };
  const own = { filter: conditions(equals), where, hint: newestFirst(Object.keys(equals)), isByTime: true };
  const paths = [own, ...(await shortPaths(selection, others))];
  const items: T[] = [];
  const stopAtMs = performance.now() + searchMs;
  let begin = after;
  for (let size = FIRST_STEP_FACTOR * limit; ; size *= STEP_GROWTH) {
    const step = Math.min(size, STEP_MAX);
    const reach = furthest(await Promise.all(paths.map((path) => reachOf(selection, path, begin, step))));
    items.push(...(await readStep(selection, reach, begin, limit - items.length)));
    const last = items.at(-1);
    if (items.length === limit && last !== undefined) return { items, end: positionOf(last, "createdAt") };
    if (reach.until === null) return { items, end: null };
    begin = { madeAt: reach.until, id: "" };
    if (performance.now() > stopAtMs) return { items, end: begin };
  }
}

/** Drops the paths that are not ordered by time and too long to be read at once. */
async function shortPaths<T extends Listed>(
  { collection }: Selection<T>,
  paths: readonly Path[],
): Promise<readonly Path[]> {
  const isShort = async ({ filter, hint, isByTime }: Path): Promise<boolean> => {
    if (isByTime) return true;
    const options = { hint, projection: { _id: 0, organizationId: 1 } };
    const beyond = await collection.find(typed<T>(filter), options).skip(RANGE_MAX).limit(1).toArray();
    return beyond.length === 0;
  };
  const found = await Promise.all(paths.map(isShort));
  return paths.filter((_path, index) => found[index]);
}

/** Returns how far back a path's next `records` records go. */
async function reachOf<T extends Listed>(
  selection: Selection<T>,
  path: Path,
  begin: Position | null,
  records: number,
): Promise<Reach> {
  if (!path.isByTime) return { path, until: null };
  const { filter, hint } = path;
  const [last] = await selection.collection
    .find(typed<T>({ ...filter, ...within(selection, begin) }), {
      hint,
      projection: { _id: 0, createdAt: 1 },
    })
    .sort({ createdAt: -1 })
    .skip(records - 1)
    .limit(1)
    .toArray();
  return { path, until: last === undefined ? null : timeOf(last) };
}

/** Returns the path whose next records go back furthest, which has the fewest records per time. */
const furthest = ([first, ...others]: readonly Reach[]): Reach => {
  if (first === undefined) throw new Error("a selection has no path");
  return others.reduce(
    (best, each) => (best.until !== null && (each.until === null || each.until < best.until) ? each : best),
    first,
  );
};

/** Returns the matching records of a step. A step ends between two milliseconds. */
async function readStep<T extends Listed>(
  selection: Selection<T>,
  { path, until }: Reach,
  begin: Position | null,
  limit: number,
): Promise<T[]> {
  const { collection, equals, projection = {} } = selection;
  const { filter, hint, where } = path;
  const behind = begin === null || begin.id === "" ? {} : notBefore(begin);
  const all = [{ ...filter, ...within(selection, begin, until) }, conditions(equals ?? {}), where, behind];
  const found = await collection
    .find(typed<T>({ $and: all }), { projection, hint })
    .sort({ createdAt: -1, _id: -1 })
    .limit(limit)
    .batchSize(limit + 1)
    .toArray();
  return stored<T>(found);
}

/** Returns the condition on times from a position back to `end`. */
function within<T extends Listed>(
  { since = null, until = null }: Selection<T>,
  begin: Position | null,
  end: Date | null = null,
): Document {
  const from = [since, end].reduce((a, b) => (a === null || (b !== null && b > a) ? b : a));
  const newest =
    begin === null
      ? until === null
        ? {}
        : { $lt: until }
      : { [begin.id === "" ? "$lt" : "$lte"]: begin.madeAt };
  const times = { ...newest, ...(from === null ? {} : { $gte: from }) };
  return Object.keys(times).length === 0 ? {} : { createdAt: times };
}

function timeOf({ createdAt }: Document): Date {
  if (!(createdAt instanceof Date)) throw new Error("a record has no creation time");
  return createdAt;
}

/** Types a filter that the driver can't check, since its fields are a path's. */
function typed<T extends Listed>(filter: Document): Filter<T>;
function typed(filter: Document): Document {
  return filter;
}
