import { MongoServerError } from "mongodb";

/** MongoDB's code of a write whose value a unique index holds already. */
export const DUPLICATE_KEY = 11_000;

/** Also of a bulk of writes, whose first failure it was. */
export const isDuplicateKey = (error: unknown): boolean =>
  error instanceof MongoServerError && error.code === DUPLICATE_KEY;
