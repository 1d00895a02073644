import { v7 } from "uuid";
import type { RandomBytes } from "../domain/api-key.ts";

const UUID_RANDOM_SIZE_BYTES = 16;

/** Returns a UUID v7 from injected time and randomness. */
export const newUuid = (now: Date, randomBytes: RandomBytes): string =>
  v7({ msecs: now.getTime(), random: randomBytes(UUID_RANDOM_SIZE_BYTES) });
