import { type Listed, type Position, positionOf, readNewest, type Selection } from "./newest-reads.ts";
import { type Found, readSearched } from "./searched-reads.ts";
import type { Sealer } from "../secrets/sealer.ts";
import { refusal } from "../domain/errors.ts";
import type { Result } from "../domain/result.ts";
import { ok, refused } from "../domain/result.ts";
import { payloadHash } from "../lib/ids.ts";

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

/** Contents of a cursor: where the next page begins, and how far back the list goes, as of its first page. */
interface Bookmark extends Position {
  readonly since: Date | null;
}

const PURPOSE = "cursor";

/**
 * Pages of records, newest first. Cursors are bound to list and filters, and sealed, since a search may stop at a record
 * that its caller may not see. A record's place never changes, so what fits all the while is shown once, whatever is made
 * meanwhile.
 */
export class Lists {
  readonly #sealer: Sealer;

  constructor(sealer: Sealer) {
    this.#sealer = sealer;
  }

  /** The next page; `BAD_CURSOR` for a cursor that is malformed, or good for another list. */
  async page<T extends Listed>(request: PageRequest<T>): Promise<Result<Page<T>>> {
    const { filters, cursor, limit, list, newestBy = "createdAt", ...selected } = request;
    const bound = payloadHash([list, JSON.stringify(filters)]);
    const after = cursor === undefined ? null : this.#open(cursor, bound);
    if (after === undefined) return refused(refusal("BAD_CURSOR"));
    // The list goes back as far as it did when its first page was read, though the clock has moved on.
    const since = after === null ? (selected.since ?? null) : after.since;
    const { end, items: found } = await read({ ...selected, newestBy, since }, after, limit + 1);
    const items = found.slice(0, limit);
    const last = items.at(-1);
    const next = found.length > limit && last !== undefined ? positionOf(last, newestBy) : end;
    return ok({ items, nextCursor: next && this.#seal({ ...next, since }, bound) });
  }

  #seal({ id, madeAt, since }: Bookmark, bound: string): string {
    const bookmark = JSON.stringify([madeAt.getTime(), id, since?.getTime() ?? null]);
    return Buffer.from(this.#sealer.seal(PURPOSE, bound, bookmark)).toString("base64url");
  }

  /** Opens a cursor; undefined when it is malformed or was made for something else. */
  #open(cursor: string, bound: string): Bookmark | undefined {
    try {
      const sealed = Buffer.from(cursor, "base64url").toString("utf8");
      const [madeAt, id, since]: unknown[] = JSON.parse(this.#sealer.open(PURPOSE, bound, sealed));
      if (typeof madeAt !== "number" || typeof id !== "string") return undefined;
      return { madeAt: new Date(madeAt), id, since: typeof since === "number" ? new Date(since) : null };
    } catch {
      return undefined;
    }
  }
}

/**
 * Reads as many records as are asked for, or all there are; a search that takes long ends with fewer, and says where.
 */
async function read<T extends Listed>(
  selection: Selection<T>,
  after: Position | null,
  limit: number,
): Promise<Found<T>> {
  if (selection.paths !== undefined) return readSearched(selection, after, limit);
  const items = await readNewest(selection, after, limit);
  const last = items.length < limit ? undefined : items.at(-1);
  return { items, end: last === undefined ? null : positionOf(last, selection.newestBy ?? "createdAt") };
}

/**
 * Yields all of a selection, newest first, so many at a time. Each part is read by itself, from where the one before
 * has ended: MongoDB keeps nothing open meanwhile, however long its reader takes, and whatever fits all the while
 * comes once.
 */
export async function* inBatches<T extends Listed>(
  selection: Selection<T>,
  atOnce: number,
): AsyncGenerator<readonly T[], void> {
  let after: Position | null = null;
  do {
    const { end, items }: Found<T> = await read(selection, after, atOnce);
    if (items.length > 0) yield items;
    after = end;
  } while (after !== null);
}

/** The newest of a selection. */
export const newest = <T extends Listed>(selection: Selection<T>, limit: number): Promise<T[]> =>
  readNewest(selection, null, limit);

type DefinedFields<T> = { [K in keyof T]?: Exclude<T[K], undefined> };

/** Keeps the fields that were given: a filter or a change says nothing of the others. */
export function definedFields<T extends object>(fields: T): DefinedFields<T>;
export function definedFields(fields: object): object {
  return Object.fromEntries(Object.entries(fields).filter(([, value]) => value !== undefined));
}
