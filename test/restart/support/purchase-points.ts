import { mkdir, rm, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { z } from "zod";

/** Place in a purchase at which its process can be held: before or after one of its agent's writes to MongoDB. */
export const purchasePoint = z.object({
  /** The collection whose writes are counted; null: all of them. */
  collection: z.string().nullable(),
  /** Number of the write, from the arming on. */
  write: z.int(),
  side: z.enum(["before", "after"]),
});

export type PurchasePoint = z.output<typeof purchasePoint>;

/** Names the folder of armed points to the process under test: a file for each agent. */
export const PURCHASE_POINTS_FOLDER = "TEST_PURCHASE_POINTS";

export async function armPurchase(folder: string, agentId: string, point: PurchasePoint): Promise<void> {
  await mkdir(folder, { recursive: true });
  await writeFile(join(folder, agentId), JSON.stringify(point));
}

export const disarmPurchases = (folder: string): Promise<void> =>
  rm(folder, { recursive: true, force: true });

export const purchaseHeldLine = (agentId: string, { side, write }: PurchasePoint, what = ""): string =>
  `held ${side} write ${String(write)} of ${agentId}: ${what}`;
