import { MongoServerError } from "mongodb";

/** MongoDB's code of a write whose value a unique index holds already. */
export const DUPLICATE_KEY = 11_000;

/** Whether an error is a duplicate key; of a bulk write, its first failure. */
export const isDuplicateKey = (error: unknown): boolean =>
  error instanceof MongoServerError && error.code === DUPLICATE_KEY;
