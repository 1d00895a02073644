import type { ClientSession, MongoClient } from "mongodb";
import { TimeoutError } from "../lib/with-timeout.ts";

/** Time after which a transaction with repeated conflicts is given up; its caller has been answered by then. */
const RETRY_MS = 5_000;

export const TRANSACTION_OPTIONS = {
  readConcern: { level: "snapshot" },
  writeConcern: { w: "majority", journal: true },
  readPreference: "primary",
} as const;

export type Transaction = <T>(work: (session: ClientSession) => Promise<T>) => Promise<T>;

/**
 * Runs work in a transaction: all of its writes or none, on one snapshot of the database. After a conflict the work
 * runs again, so its only effects must go through its session. If the work ends the transaction itself
 * (`abortTransaction`), its value is returned and nothing is written.
 */
export const transactionsOf =
  (client: MongoClient): Transaction =>
  async (work) => {
    const until = performance.now() + RETRY_MS;
    return client.withSession((session) =>
      session.withTransaction((own) => {
        if (performance.now() > until) throw new TimeoutError(`no transaction within ${RETRY_MS} ms`);
        return work(own);
      }, TRANSACTION_OPTIONS),
    );
  };
