import type { ClientSession, MongoClient } from "mongodb";
import { TimeoutError } from "../lib/with-timeout.ts";

/** A transaction that others keep in conflict with is given up after this; by then its caller has been answered. */
const RETRY_MS = 5_000;

export const TRANSACTION_OPTIONS = {
  readConcern: { level: "snapshot" },
  writeConcern: { w: "majority", journal: true },
  readPreference: "primary",
} as const;

export type Transaction = <T>(work: (session: ClientSession) => Promise<T>) => Promise<T>;

/**
 * Runs work in a transaction: all of its writes or none, on one state of the database. After a conflict with another
 * one it runs again, so it must not do anything but through its session. Work that ends the transaction itself
 * (`abortTransaction`) has its value answered and nothing written.
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
