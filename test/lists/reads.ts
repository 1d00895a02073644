import type { Db, Document } from "mongodb";
import { z } from "zod";

/** More than all that one test asks for. */
const PROFILE_BYTES = 64 * 1_024 * 1_024;

/** What MongoDB counted of one query. */
export interface Read {
  readonly keysExamined: number;
  readonly docsExamined: number;
  readonly nreturned: number;
}

const read = z.object({ keysExamined: z.int(), docsExamined: z.int(), nreturned: z.int() });

/** What MongoDB itself counts of queries, while no other test uses the database. */
export class Profiler {
  readonly #db: Db;

  private constructor(db: Db) {
    this.#db = db;
  }

  static async on(db: Db): Promise<Profiler> {
    await db.createCollection("system.profile", { capped: true, size: PROFILE_BYTES });
    return new Profiler(db);
  }

  /** The queries on a collection that fit the filter, which the work comes to. */
  async during(collection: string, fits: Document, work: () => Promise<unknown>): Promise<readonly Read[]> {
    const filter = { ns: `${this.#db.databaseName}.${collection}`, op: "query", ...fits };
    await this.#db.command({ profile: 2, filter });
    try {
      await work();
    } finally {
      await this.#db.command({ profile: 0, filter: "unset" });
    }
    const found = await this.#db.collection("system.profile").find(filter).toArray();
    await this.#db.dropCollection("system.profile");
    await this.#db.createCollection("system.profile", { capped: true, size: PROFILE_BYTES });
    return found.map((each) => read.parse(each));
  }
}

export type Query = Readonly<Record<string, string>>;

/** Every choice of some of the values, one for each name, or none. */
export const choices = (of: Readonly<Record<string, readonly string[]>>): readonly Query[] =>
  Object.entries(of).reduce<readonly Query[]>(
    (made, [name, values]) =>
      made.flatMap((each) => [each, ...values.map((value) => ({ ...each, [name]: value }))]),
    [{}],
  );
