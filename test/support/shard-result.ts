import { z } from "zod";

/** What a process of tests tells the one that started it. */
export const shardResult = z.object({
  passed: z.int(),
  failed: z.int(),
  /** What failed, by its full title, with the error's message. */
  failures: z.array(z.object({ title: z.string(), message: z.string() })),
  /** How long each file's tests took in all, its hooks included. */
  filesMs: z.array(z.tuple([z.string(), z.number()])),
});
export type ShardResult = z.infer<typeof shardResult>;
