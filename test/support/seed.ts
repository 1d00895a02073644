import { randomInt } from "node:crypto";

/** The seed of this run's random tests: `TEST_SEED`, or a new one. Titles show it; with it a failure replays. */
export const seed = Number(process.env["TEST_SEED"] ?? randomInt(2 ** 31));
