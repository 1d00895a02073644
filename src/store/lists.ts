import { createHmac, type KeyObject, timingSafeEqual } from "node:crypto";
import type { Collection, Document, Filter, WithId } from "mongodb";
import { newestFirst, type TimeField } from "./newest-first.ts";
import { refusal } from "../domain/errors.ts";
import type { Result } from "../domain/result.ts";
import { ok, refused } from "../domain/result.ts";
import { payloadHash } from "../lib/ids.ts";

interface Listed extends Document {
  _id: string;
}

/** Equality conditions, in the order of an index: a field and its value, or one of several values where it never changes. */
export type EqualityFilter = Readonly<Record<string, string | readonly string[]>>;

/** Some records of a collection, newest first. */
export interface Selection<T extends Listed> {
  readonly collection: Collection<T>;
  /**
   * What they have in common, in the order of the index that holds them (`newestFirst`), so that no other record is read.
   * With an `_id` it is that record, if it has the rest as well. Null: there are none.
   */
  readonly equals: EqualityFilter | null;
  /** A further filter. What does not fit is read and passed over, so only where there is little of it. */
  readonly where?: Filter<T>;
  /** By default `createdAt`. */
  readonly newestBy?: TimeField;
  /** Only what was made from then on. */
  readonly since?: Date | null;
  /** Only what was made before. */
  readonly until?: Date | null;
  /** Fields that the index holds behind all others, so that `where` is judged by them without a record being read. */
  readonly indexed?: readonly string[];
  /** What of the records is read; everything, where it does not say. */
  readonly projection?: Readonly<Record<string, 0 | 1>>;
}

export interface PageRequest<T extends Listed> extends Selection<T> {
  /** The list and its filters: a cursor is valid for exactly these. */
  readonly list: string;
  readonly filters: object;
  readonly limit: number;
  readonly cursor: string | undefined;
}

export interface Page<T> {
  readonly items: readonly T[];
  readonly nextCursor: string | null;
}

/** A record's place in a list. */
interface Position {
  readonly madeAt: Date;
  readonly id: string;
}

/** What a cursor says: where the next page begins, and how far back the list goes, as of its first page. */
interface Bookmark extends Position {
  readonly since: Date | null;
}

/**
 * Pages of records, newest first, by cursors that are opaque, signed, and bound to list and filters. A record's place never
 * changes, so whatever fits all the while is shown once, whatever is made meanwhile.
 */
export class Lists {
  readonly #key: KeyObject;

  constructor(cursorKey: KeyObject) {
    this.#key = cursorKey;
  }

  /** The next page; `BAD_CURSOR` for a cursor that is malformed, or good for another list. */
  async page<T extends Listed>(request: PageRequest<T>): Promise<Result<Page<T>>> {
    const { filters, cursor, limit, list, newestBy = "createdAt", ...selected } = request;
    const bound = payloadHash([list, JSON.stringify(filters)]);
    const after = cursor === undefined ? null : this.#open(cursor, bound);
    if (after === undefined) return refused(refusal("BAD_CURSOR"));
    // It goes back as far as it did when its first page was read, though the clock has moved on.
    const since = after === null ? (selected.since ?? null) : after.since;
    const found = await readNewest({ ...selected, newestBy, since }, after, limit + 1);
    const items = found.slice(0, limit);
    const last = items.at(-1);
    const isLast = found.length <= limit || last === undefined;
    return ok({ items, nextCursor: isLast ? null : this.#seal(positionOf(last, newestBy), since, bound) });
  }

  #seal({ id, madeAt }: Position, since: Date | null, bound: string): string {
    const bookmark = JSON.stringify([madeAt.getTime(), id, since?.getTime() ?? null]);
    return Buffer.from(JSON.stringify([bookmark, this.#sign(bookmark, bound)])).toString("base64url");
  }

  /** What a cursor says; undefined when it is malformed or was made for something else. */
  #open(cursor: string, bound: string): Bookmark | undefined {
    try {
      const [bookmark, signature]: unknown[] = JSON.parse(Buffer.from(cursor, "base64url").toString("utf8"));
      if (typeof bookmark !== "string" || typeof signature !== "string") return undefined;
      const expected = Buffer.from(this.#sign(bookmark, bound));
      const definedFields = Buffer.from(signature);
      if (definedFields.length !== expected.length || !timingSafeEqual(definedFields, expected))
        return undefined;
      const [madeAt, id, since]: unknown[] = JSON.parse(bookmark);
      if (typeof madeAt !== "number" || typeof id !== "string") return undefined;
      return { madeAt: new Date(madeAt), id, since: typeof since === "number" ? new Date(since) : null };
    } catch {
      return undefined;
    }
  }

  #sign(bookmark: string, bound: string): string {
    return createHmac("sha256", this.#key).update(`${bound}\n${bookmark}`).digest("base64url").slice(0, 22);
  }
}

/**
 * All of a selection, newest first, so many at a time. Each part is read by itself, from where the one before has ended:
 * MongoDB keeps nothing open meanwhile, however long its reader takes, and whatever fits all the while comes once.
 */
export async function* inBatches<T extends Listed>(
  selection: Selection<T>,
  atOnce: number,
): AsyncGenerator<readonly T[], void> {
  let after: Position | null = null;
  for (;;) {
    const batch: readonly T[] = await readNewest(selection, after, atOnce);
    const last = batch.at(-1);
    if (last === undefined) return;
    yield batch;
    if (batch.length < atOnce) return;
    after = positionOf(last, selection.newestBy ?? "createdAt");
  }
}

/** The newest of a selection. */
export const newest = <T extends Listed>(selection: Selection<T>, limit: number): Promise<T[]> =>
  readNewest(selection, null, limit);

async function readNewest<T extends Listed>(
  selection: Selection<T>,
  after: Position | null,
  limit: number,
): Promise<T[]> {
  const { collection, equals, indexed = [], newestBy = "createdAt", projection = {} } = selection;
  if (equals === null) return [];
  const isOne = "_id" in equals;
  // Behind one record there is none.
  if (isOne && after !== null) return [];
  const hint = isOne ? { _id: 1 } : newestFirst(Object.keys(equals), newestBy, indexed);
  const found = await collection
    .find(filterOf(selection, after), { projection, hint })
    .sort({ [newestBy]: -1, _id: -1 })
    .limit(limit)
    // More than there can be: the first answer is the last one, and no cursor stays open.
    .batchSize(limit + 1)
    .toArray();
  return stored<T>(found);
}

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

function positionOf(record: Listed, newestBy: TimeField): Position {
  const madeAt: unknown = record[newestBy];
  if (!(madeAt instanceof Date)) throw new Error(`${record._id} does not say when it was made`);
  return { madeAt, id: record._id };
}

type DefinedFields<T> = { [K in keyof T]?: Exclude<T[K], undefined> };

/** Only the fields that were given: a filter or a change says nothing of the others. */
export function definedFields<T extends object>(fields: T): DefinedFields<T>;
export function definedFields(fields: object): object {
  return Object.fromEntries(Object.entries(fields).filter(([, value]) => value !== undefined));
}

/** The driver's `WithId<T>` of a `T` that has an `_id` already is that `T`. */
function stored<T extends Listed>(documents: WithId<T>[]): T[];
function stored(documents: Listed[]): Listed[] {
  return documents;
}
