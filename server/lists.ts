import { createHmac, type KeyObject, timingSafeEqual } from "node:crypto";
import type { Collection, Document, Filter, WithId } from "mongodb";
import { refusal } from "../src/domain/errors.ts";
import type { Result } from "../src/domain/result.ts";
import { ok, refused } from "../src/domain/result.ts";
import { payloadHash } from "./ids.ts";

interface Listed extends Document {
  _id: string;
}

/** The field that says when a record was made, by which it is newer or older than others. */
type TimeField = "createdAt" | "at";

export interface PageRequest<T extends Listed> {
  readonly collection: Collection<T>;
  /** The list and its filters: a cursor is good for exactly these. */
  readonly list: string;
  readonly filter: Filter<T>;
  /** By default `createdAt`. */
  readonly newestBy?: TimeField;
  /** What the caller may see of it (server/binding.ts); "none": nothing. A filter for something else finds nothing. */
  readonly within?: Filter<T> | "none";
  /** Only what was created from then on; not part of what a cursor is bound to, since it moves with the clock. */
  readonly since?: Date | null;
  /** What of the records is read; everything, where it does not say. */
  readonly projection?: Document;
  readonly limit: number;
  readonly cursor: string | undefined;
}

export interface Page<T> {
  readonly items: readonly T[];
  readonly nextCursor: string | null;
}

/** Pages of records, newest first, by cursors that are opaque, signed, and bound to list and filters. */
export class Lists {
  readonly #key: KeyObject;

  constructor(cursorKey: KeyObject) {
    this.#key = cursorKey;
  }

  async page<T extends Listed>(request: PageRequest<T>): Promise<Result<Page<T>>> {
    const {
      collection,
      cursor,
      limit,
      newestBy = "createdAt",
      projection = {},
      since = null,
      within = {},
    } = request;
    const filter = within === "none" ? request.filter : both(request.filter, within);
    const bound = payloadHash([request.list, JSON.stringify(filter)]);
    const after = cursor === undefined ? null : this.#open(cursor, bound);
    if (after === undefined) return refused(refusal("BAD_CURSOR"));
    if (within === "none") return ok({ items: [], nextCursor: null });
    const recent = since === null ? filter : both(filter, newerThan<T>(newestBy, since));
    const found = await collection
      .find(after === null ? recent : both(recent, olderThan<T>(newestBy, after)), { projection })
      .sort({ [newestBy]: -1, _id: -1 })
      .limit(limit + 1)
      .toArray();
    const items = stored<T>(found.slice(0, limit));
    const last = items.at(-1);
    const nextCursor =
      found.length > limit && last !== undefined ? this.#seal(last._id, last[newestBy], bound) : null;
    return ok({ items, nextCursor });
  }

  #seal(id: string, madeAt: unknown, bound: string): string {
    if (!(madeAt instanceof Date)) throw new Error(`${id} does not say when it was made`);
    const position = JSON.stringify([madeAt.getTime(), id]);
    return Buffer.from(JSON.stringify([position, this.#sign(position, bound)])).toString("base64url");
  }

  /** The position that a cursor names; undefined when it is malformed or was made for something else. */
  #open(cursor: string, bound: string): Position | undefined {
    try {
      const [position, signature]: unknown[] = JSON.parse(Buffer.from(cursor, "base64url").toString("utf8"));
      if (typeof position !== "string" || typeof signature !== "string") return undefined;
      const expected = Buffer.from(this.#sign(position, bound));
      const given = Buffer.from(signature);
      if (given.length !== expected.length || !timingSafeEqual(given, expected)) return undefined;
      const [madeAt, id]: unknown[] = JSON.parse(position);
      return typeof madeAt === "number" && typeof id === "string"
        ? { madeAt: new Date(madeAt), id }
        : undefined;
    } catch {
      return undefined;
    }
  }

  #sign(position: string, bound: string): string {
    return createHmac("sha256", this.#key).update(`${bound}\n${position}`).digest("base64url").slice(0, 22);
  }
}

type Given<T> = { [K in keyof T]?: Exclude<T[K], undefined> };

/** Only the fields that were given: a filter or a change says nothing of the others. */
export function given<T extends object>(fields: T): Given<T>;
export function given(fields: object): object {
  return Object.fromEntries(Object.entries(fields).filter(([, value]) => value !== undefined));
}

interface Position {
  readonly madeAt: Date;
  readonly id: string;
}

function olderThan<T extends Listed>(field: TimeField, position: Position): Filter<T>;
function olderThan(field: TimeField, { id, madeAt }: Position): Filter<Listed> {
  return { $or: [{ [field]: { $lt: madeAt } }, { [field]: madeAt, _id: { $lt: id } }] };
}

function newerThan<T extends Listed>(field: TimeField, since: Date): Filter<T>;
function newerThan(field: TimeField, since: Date): Filter<Listed> {
  return { [field]: { $gte: since } };
}

function both<T extends Listed>(first: Filter<T>, second: Filter<T>): Filter<T>;
function both(first: Filter<Listed>, second: Filter<Listed>): Filter<Listed> {
  return { $and: [first, second] };
}

/** The driver's `WithId<T>` of a `T` that has an `_id` already is that `T`. */
function stored<T extends Listed>(documents: WithId<T>[]): T[];
function stored(documents: Listed[]): Listed[] {
  return documents;
}
