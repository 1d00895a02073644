import { type Listed, type Position, positionOf, readNewest, type Selection } from "./newest-reads.ts";
import { type Found, readSearched } from "./searched-reads.ts";
import type { Sealer } from "../secrets/sealer.ts";
import { refusal } from "../domain/errors.ts";
import type { Result } from "../domain/result.ts";
import { ok, refused } from "../domain/result.ts";
import { payloadHash } from "../lib/ids.ts";

export interface PageRequest<T extends Listed> extends Selection<T> {
  /** The list and its filters: a cursor is valid only for the same ones. */
  readonly list: string;
  readonly filters: object;
  readonly limit: number;
  readonly cursor: string | undefined;
}

export interface Page<T> {
  readonly items: readonly T[];
  readonly nextCursor: string | null;
}

/** Content of a cursor: where the next page begins, and how far back the list goes as of its first page. */
interface Bookmark extends Position {
  readonly since: Date | null;
}

const PURPOSE = "cursor";

/**
 * Pages of records, newest first. Cursors are bound to their list and filters, and sealed, since a search may stop at a
 * record that its caller may not see. A record's place never changes, so a record that matches throughout is shown
 * exactly once, whatever is created meanwhile.
 */
export class Lists {
  readonly #sealer: Sealer;

  constructor(sealer: Sealer) {
    this.#sealer = sealer;
  }

  /** Returns the next page; `BAD_CURSOR` for a cursor that is malformed or belongs to another list. */
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

  /** Opens a cursor; undefined if it is malformed or made for something else. */
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

/** Reads up to `limit` records. A slow search ends with fewer and returns the position to continue from. */
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
 * Yields all of a selection, newest first, in batches of up to `atOnce`. Each batch is a query of its own, from where
 * the last one ended: MongoDB keeps nothing open between them, however long the reader takes, and a record that matches
 * throughout comes once.
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

export const newest = <T extends Listed>(selection: Selection<T>, limit: number): Promise<T[]> =>
  readNewest(selection, null, limit);

type DefinedFields<T> = { [K in keyof T]?: Exclude<T[K], undefined> };

/** Returns the defined fields: an undefined one is no part of a filter or a change. */
export function definedFields<T extends object>(fields: T): DefinedFields<T>;
export function definedFields(fields: object): object {
  return Object.fromEntries(Object.entries(fields).filter(([, value]) => value !== undefined));
}
