import type { Collection, Document, Filter, WithId } from "mongodb";
import { type IndexKey, newestFirst, type TimeField } from "./newest-first.ts";

export interface Listed extends Document {
  _id: string;
}

/** Equality conditions in index order: a field and its value, or several values if the field never changes. */
export type EqualityFilter = Readonly<Record<string, string | readonly string[]>>;

/** A part of an index that holds every record of a selection, among others. */
export interface Path {
  readonly filter: Document;
  /** Rest of the selection's `where`. */
  readonly where: Document;
  readonly hint: IndexKey;
  /** Whether MongoDB reads the path newest first; if not, the path is useful only if short. */
  readonly isByTime: boolean;
}

export interface Selection<T extends Listed> {
  readonly collection: Collection<T>;
  /**
   * Filter in the order of the index that holds the records (`newestFirst`), so that no other record is read. With an
   * `_id`, the named records that match the rest as well. Null selects nothing.
   */
  readonly equals: EqualityFilter | null;
  /** Further filter. Records that don't match are read and skipped, so without `paths` there must be few of them. */
  readonly where?: Filter<T>;
  /**
   * Alternative ways to the records, besides the index of `equals`. The shortest is read, in steps (`readSearched`).
   */
  readonly paths?: readonly Path[];
  /** Defaults to `createdAt`. */
  readonly newestBy?: TimeField;
  /** Lower bound of the creation time, inclusive. */
  readonly since?: Date | null;
  /** Upper bound of the creation time, exclusive. */
  readonly until?: Date | null;
  /** Fields at the end of the index key, by which `where` is evaluated without reading records. */
  readonly indexed?: readonly string[];
  /** Fields to read; all if missing. */
  readonly projection?: Readonly<Record<string, 0 | 1>>;
}

export interface Position {
  readonly madeAt: Date;
  readonly id: string;
}

export async function readNewest<T extends Listed>(
  selection: Selection<T>,
  after: Position | null,
  limit: number,
): Promise<T[]> {
  const { collection, equals, indexed = [], newestBy = "createdAt", projection = {} } = selection;
  if (equals === null) return [];
  const isNamed = "_id" in equals;
  const filter = isNamed ? filterOfNamed(selection, after) : filterOf(selection, after);
  const hint = isNamed ? { _id: 1 } : newestFirst(Object.keys(equals), newestBy, indexed);
  const found = await collection
    .find(filter, { projection, hint })
    .sort({ [newestBy]: -1, _id: -1 })
    .limit(limit)
    // More than `limit`, so that the first response is the last and no cursor stays open.
    .batchSize(limit + 1)
    .toArray();
  return stored<T>(found);
}

/** Returns the filter for records named by their ids, which are few and sorted in memory. */
function filterOfNamed<T extends Listed>(selection: Selection<T>, after: Position | null): Filter<T>;
function filterOfNamed(
  { equals, newestBy = "createdAt", since = null, until = null, where = {} }: Selection<Listed>,
  after: Position | null,
): Filter<Listed> {
  const bounds = { ...(since === null ? {} : { $gte: since }), ...(until === null ? {} : { $lt: until }) };
  const behind = after === null ? {} : notBefore(after, newestBy);
  return { $and: [conditions(equals ?? {}), spanOf(newestBy, bounds), where, behind] };
}

/** Returns the condition for records after a position, newest first. */
export const notBefore = ({ id, madeAt }: Position, newestBy: TimeField = "createdAt"): Document => ({
  $or: [{ [newestBy]: { $lt: madeAt } }, { [newestBy]: madeAt, _id: { $lt: id } }],
});

export const conditions = (equals: EqualityFilter): Document =>
  Object.fromEntries(
    Object.entries(equals).map(([field, value]) => [
      field,
      typeof value === "string" ? value : { $in: value },
    ]),
  );

/**
 * Returns one range of the index, or several that MongoDB merges in order. Spelled out as ranges, since a condition on
 * the position itself would make MongoDB read all newer records, or all of the same millisecond.
 */
function filterOf<T extends Listed>(selection: Selection<T>, after: Position | null): Filter<T>;
function filterOf(
  { equals, newestBy = "createdAt", since = null, until = null, where }: Selection<Listed>,
  after: Position | null,
): Filter<Listed> {
  const from = since === null ? {} : { $gte: since };
  const spans: readonly Document[] =
    after === null
      ? [spanOf(newestBy, { ...from, ...(until === null ? {} : { $lt: until }) })]
      : [
          spanOf(newestBy, { ...from, $lt: after.madeAt }),
          { [newestBy]: after.madeAt, _id: { $lt: after.id } },
        ];
  const ranges = prefixesOf(equals ?? {}).flatMap((prefix) =>
    spans.map((span) => ({ ...prefix, ...span, ...where })),
  );
  const [only] = ranges;
  return ranges.length === 1 && only !== undefined ? only : { $or: ranges };
}

const spanOf = (field: TimeField, bounds: Document): Document =>
  Object.keys(bounds).length === 0 ? {} : { [field]: bounds };

/** Returns every combination of the values. */
const prefixesOf = (equals: EqualityFilter): readonly Document[] =>
  Object.entries(equals).reduce<readonly Document[]>(
    (prefixes, [field, value]) =>
      prefixes.flatMap((prefix) => [value].flat().map((one) => ({ ...prefix, [field]: one }))),
    [{}],
  );

export function positionOf(record: Listed, newestBy: TimeField): Position {
  const madeAt: unknown = record[newestBy];
  if (!(madeAt instanceof Date)) throw new Error(`${record._id} does not say when it was made`);
  return { madeAt, id: record._id };
}

/** Narrows the driver's `WithId<T>` to `T`, which has an `_id` already. */
export function stored<T extends Listed>(documents: WithId<T>[]): T[];
export function stored(documents: Listed[]): Listed[] {
  return documents;
}
