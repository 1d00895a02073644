import { z } from "zod";

/** What a process of tests tells the one that started it. */
export const shardResult = z.object({ passed: z.int(), failed: z.int() });
export type ShardResult = z.infer<typeof shardResult>;
