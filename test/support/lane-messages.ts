import { z } from "zod";

/** What came of one test file. */
const fileResult = z.object({
  kind: z.literal("result"),
  file: z.string(),
  passed: z.int(),
  failed: z.int(),
  pending: z.int(),
  /** What failed, by its full title, with the error's message. */
  failures: z.array(z.object({ title: z.string(), message: z.string() })),
  /** What the reporter said. */
  output: z.string(),
  /** From its loading to its last hook, in milliseconds. */
  ms: z.number(),
  /** Processor time of the process, and of the processes that it started and that have ended, in milliseconds. */
  ownCpuMs: z.number(),
  childCpuMs: z.number(),
  /** Calls that were told to come again, and did. */
  repeats: z.int(),
  /** Scenes that were played again since their time-skipping server failed. */
  replays: z.int(),
});
export type FileResult = z.infer<typeof fileResult>;

/** What a process that runs test files says to the one that started it. */
export const laneMessage = z.discriminatedUnion("kind", [z.object({ kind: z.literal("idle") }), fileResult]);

/**
 * What it is told: the next file to run, by its path in the repository, and where its engines are, as environment
 * variables; null: there is none, and it ends.
 */
export const laneOrder = z.object({
  file: z.string().nullable(),
  grep: z.string().nullable(),
  env: z.record(z.string(), z.string()),
});
export type LaneOrder = z.infer<typeof laneOrder>;
