import { MongoServerError } from "mongodb";

/** MongoDB's error code for a value already in a unique index. */
export const DUPLICATE_KEY = 11_000;

/** Whether an error is a duplicate key; for a bulk write, its first failure. */
export const isDuplicateKey = (error: unknown): boolean =>
  error instanceof MongoServerError && error.code === DUPLICATE_KEY;
