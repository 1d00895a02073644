import { appendFileSync, existsSync, readFileSync } from "node:fs";
import { z } from "zod";
import type { Stored } from "./shapes.ts";

const lineSchema = z.looseObject({ id: z.string(), object: z.string(), created: z.number() });

/** Number at the end of an id. */
const NUMBER = /\d{8}$/;
const DELETED = "deleted";

/** Objects by id, in order of creation, stored in a file with one JSON line per change. */
export class ObjectStore {
  readonly #file: string | null;
  #number = 0;
  readonly #kinds = new Map<string, Map<string, Stored>>();

  /** A null file keeps the objects in memory. */
  constructor(file: string | null) {
    this.#file = file;
    if (file === null || !existsSync(file)) return;
    for (const line of readFileSync(file, "utf8").split("\n")) {
      const stored = parsed(line);
      if (stored === null) continue;
      if (stored.object === DELETED) for (const kind of this.#kinds.values()) kind.delete(stored.id);
      else this.#keep(stored);
    }
  }

  put<T extends Stored>(stored: T): T {
    this.#keep(stored);
    this.#write(stored);
    return stored;
  }

  delete(object: string, id: string): void {
    if (this.#kind(object).delete(id)) this.#write({ id, object: DELETED, created: 0 });
  }

  /** `object` determines the type: each kind is stored with one type only. */
  get<T extends Stored>(object: T["object"], id: string): T | null {
    return (this.#kind(object).get(id) as T | undefined) ?? null;
  }

  /** Returns the objects of a kind, oldest first. */
  all<T extends Stored>(object: T["object"]): readonly T[] {
    return [...this.#kind(object).values()] as T[];
  }

  /** Returns a number that no id in the store contains yet. */
  nextNumber(): number {
    this.#number += 1;
    return this.#number;
  }

  #keep(stored: Stored): void {
    this.#kind(stored.object).set(stored.id, stored);
    this.#number = Math.max(this.#number, Number(NUMBER.exec(stored.id)?.[0] ?? 0));
  }

  #kind(object: string): Map<string, Stored> {
    const found = this.#kinds.get(object) ?? new Map<string, Stored>();
    this.#kinds.set(object, found);
    return found;
  }

  #write(stored: Stored): void {
    if (this.#file !== null) appendFileSync(this.#file, `${JSON.stringify(stored)}\n`);
  }
}

/** Returns the object of a line; null for a line cut by a crash. */
function parsed(line: string): Stored | null {
  try {
    return lineSchema.parse(JSON.parse(line));
  } catch {
    return null;
  }
}
