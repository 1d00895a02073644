import type { Collection, Document, Filter, WithId } from "mongodb";
import { type IndexKey, newestFirst, type TimeField } from "./newest-first.ts";

export interface Listed extends Document {
  _id: string;
}

/** Equality conditions, in the order of an index: a field and its value, or one of several values where it never changes. */
export type EqualityFilter = Readonly<Record<string, string | readonly string[]>>;

/** A part of an index that holds every record of a selection, and others. */
export interface Path {
  readonly filter: Document;
  /** The rest of the selection's `where`. */
  readonly where: Document;
  readonly hint: IndexKey;
  /** Whether MongoDB reads it newest first; otherwise it is of use only where it is short. */
  readonly isByTime: boolean;
}

/** Some records of a collection, newest first. */
export interface Selection<T extends Listed> {
  readonly collection: Collection<T>;
  /**
   * The filter that they have in common, in the order of the index that holds them (`newestFirst`), so that no other record is read.
   * With an `_id` it is that record, or those few, if they have the rest as well. Null: there are none.
   */
  readonly equals: EqualityFilter | null;
  /** A further filter. What does not fit is read and passed over: without `paths` there must be little of it. */
  readonly where?: Filter<T>;
  /** Other ways to the records, besides the index of `equals`. The shortest is read, and in steps (`readSearched`). */
  readonly paths?: readonly Path[];
  /** By default `createdAt`. */
  readonly newestBy?: TimeField;
  /** Only what was made from then on. */
  readonly since?: Date | null;
  /** Only what was made before. */
  readonly until?: Date | null;
  /** Fields that the index holds behind all others, so that `where` is judged by them without a record being read. */
  readonly indexed?: readonly string[];
  /** Fields of the records to read; left out: all. */
  readonly projection?: Readonly<Record<string, 0 | 1>>;
}

/** A record's place in a list. */
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
    // More than there can be: the first answer is the last one, and no cursor stays open.
    .batchSize(limit + 1)
    .toArray();
  return stored<T>(found);
}

/** Named records are few: they are read by their ids, and put in order. */
function filterOfNamed<T extends Listed>(selection: Selection<T>, after: Position | null): Filter<T>;
function filterOfNamed(
  { equals, newestBy = "createdAt", since = null, until = null, where = {} }: Selection<Listed>,
  after: Position | null,
): Filter<Listed> {
  const bounds = { ...(since === null ? {} : { $gte: since }), ...(until === null ? {} : { $lt: until }) };
  const behind = after === null ? {} : notBefore(after, newestBy);
  return { $and: [conditions(equals ?? {}), spanOf(newestBy, bounds), where, behind] };
}

/** What comes after a position, newest first. */
export const notBefore = ({ id, madeAt }: Position, newestBy: TimeField = "createdAt"): Document => ({
  $or: [{ [newestBy]: { $lt: madeAt } }, { [newestBy]: madeAt, _id: { $lt: id } }],
});

/** The conditions as a filter of MongoDB. */
export const conditions = (equals: EqualityFilter): Document =>
  Object.fromEntries(
    Object.entries(equals).map(([field, value]) => [
      field,
      typeof value === "string" ? value : { $in: value },
    ]),
  );

/**
 * One stretch of the index, or several that MongoDB merges in their order. Spelled out as index ranges, since a condition on
 * the position itself would have it read all that is newer, or all that was made in the same millisecond.
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

/** Every combination of the values. */
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

/** The driver's `WithId<T>` of a `T` that has an `_id` already is that `T`. */
export function stored<T extends Listed>(documents: WithId<T>[]): T[];
export function stored(documents: Listed[]): Listed[] {
  return documents;
}
