import { randomBytes } from "node:crypto";
import { mkdir, readFile, writeFile } from "node:fs/promises";
import { join } from "node:path";

/**
 * Points in the life of an agent at which a service can be held, so that it can be killed right there. The first agent
 * that comes to an armed point is held until the point is disarmed, and no other is; arming it once more holds one more.
 */
export const LIFE_POINTS = [
  /** The create's id is reserved under its idempotency key. */
  "create-reserved",
  /** It has its place under the daily limit; nothing is made yet. */
  "create-placed",
  /** The actor runs; there is no key yet that it would have to destroy. */
  "create-actor-started",
  /** The delivery key lies in its file. */
  "create-key-file",
  /** Record, event and delivery are written in a transaction that is not committed. */
  "create-uncommitted",
  /** Committed, not answered. */
  "create-committed",
  /** The new key is a candidate in the agent's record; its actor has not been asked. */
  "mint-proposed",
  /** Its actor has decided for the new key; the agent's record does not show it. */
  "mint-decided",
  /** The record shows the new key; its caller has not been answered. */
  "mint-recorded",
  /** Its actor has revoked the key; the agent's record still shows it. */
  "revoke-decided",
  /** The ledger has paused the agent; its record says that it is active. */
  "pause-decided",
  /** The record says that it is paused; its caller has not been answered. */
  "pause-recorded",
  /** The actor has archived the agent; no record, hold or wallet knows. */
  "archive-decided",
] as const;

export type LifePoint = (typeof LIFE_POINTS)[number];

/** Names the folder of armed points to the process under test. */
export const LIFE_POINTS_FOLDER = "TEST_LIFE_POINTS";

/** Arms a point for one agent more; answers what names this arming. */
export async function armLife(folder: string, point: LifePoint): Promise<string> {
  const arming = randomBytes(4).toString("hex");
  await mkdir(folder, { recursive: true });
  await writeFile(join(folder, point), arming);
  return arming;
}

/** The newest arming of a point; null: it is not armed. */
export const armingOf = (folder: string, point: LifePoint): Promise<string | null> =>
  readFile(join(folder, point), "utf8").catch(() => null);

/** What the process prints when it holds something at a point. */
export const lifeHeldLine = (point: LifePoint, arming: string): string => `life held at ${point} (${arming})`;
