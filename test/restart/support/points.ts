import { mkdir, readFile, rm, writeFile } from "node:fs/promises";
import { join } from "node:path";

/**
 * Points in the life of a payment at which a service can be held, so that it can be killed right there. A payment to
 * the merchant of that name stops at the point for as long as the point is armed; then it is let go.
 */
export const POINTS = [
  /** Decided, the rail has not been called. */
  "before-rail",
  /** The rail has taken effect, its answer is lost. */
  "after-rail",
  /** The same, for a payment that a person approved. */
  "after-approved-rail",
  /** Projected, not confirmed to the actor. */
  "after-projection",
  /** Decided as held, its approval's workflow does not run. */
  "before-approval-starts",
  /** Approved by a person and executed, its approval's workflow does not know, nor the ledger. */
  "before-approval-is-told",
] as const;

export type Point = (typeof POINTS)[number];

/** Names the folder of armed points to the process under test. */
export const POINTS_FOLDER = "TEST_CRASH_POINTS";

export const armedFile = (folder: string, point: Point): string => join(folder, point);

export async function arm(folder: string, ...points: readonly Point[]): Promise<void> {
  await mkdir(folder, { recursive: true });
  await Promise.all(points.map((point) => writeFile(armedFile(folder, point), "")));
}

/** Points in the replacement of a project's budget, or of one of its teams'. */
export type BudgetPoint =
  /** Decided; no record of it has been written. */
  | "after-replacement"
  /** The records of project and team show it; those of the agents may not, and the ledger knows of none. */
  | "after-caps-recorded"
  /** Cap and agents are recorded; no caller has been answered. */
  | "after-agents-recorded";

/** Holds the replacements of one project's budgets at a point. */
export async function armBudget(folder: string, point: BudgetPoint, projectId: string): Promise<void> {
  await mkdir(folder, { recursive: true });
  await writeFile(join(folder, point), projectId);
}

/** The project that such a point is armed for; null: none. */
export const armedBudgetOf = (folder: string, point: BudgetPoint): Promise<string | null> =>
  readFile(join(folder, point), "utf8").catch(() => null);

export const isBudgetArmed = async (
  folder: string,
  point: BudgetPoint,
  projectId: string,
): Promise<boolean> => (await armedBudgetOf(folder, point)) === projectId;

export const budgetHeldLine = (point: BudgetPoint, projectId: string): string =>
  `held at ${point}: project ${projectId}`;

export const disarm = (folder: string): Promise<void> => rm(folder, { recursive: true, force: true });

/** What the process prints when a payment has come to an armed point. */
export const heldLine = (point: Point, transactionId: string): string => `held at ${point}: ${transactionId}`;
export const heldPattern = (point: Point): RegExp => new RegExp(`^held at ${point}: (txn_\\S+)$`, "gm");
