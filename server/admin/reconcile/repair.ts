import type { Db } from "mongodb";
import { overwriteAgentSummary, overwritePayment } from "../../../activities/projections.ts";
import { collectionsOf } from "../../collections.ts";
import type { MasterKey } from "../../secrets/master-key.ts";
import { keepCommand } from "../keep-command.ts";
import type { Difference, Repair } from "./difference.ts";

/** What was done about a difference. */
export interface Repaired {
  readonly id: string;
  readonly did: string;
}

/**
 * Writes records as the actors had them, once for each record however much of it differs. Never over a later revision, so
 * that nothing is undone which an agent has done meanwhile. Answers what was done, and what nobody could do anything about.
 */
export async function repairAll(
  db: Db,
  differences: readonly Difference[],
): Promise<{ readonly repaired: readonly Repaired[]; readonly left: readonly Difference[] }> {
  const outcomes = new Map<string, boolean>();
  const repaired: Repaired[] = [];
  const left: Difference[] = [];
  for (const difference of differences) {
    const { repair } = difference;
    if (repair === null) {
      left.push(difference);
      continue;
    }
    const [id, did] = naming(repair);
    let isDone = outcomes.get(id);
    if (isDone === undefined) {
      isDone = await write(db, repair);
      outcomes.set(id, isDone);
      if (isDone) repaired.push({ id, did });
    }
    if (!isDone) left.push(difference);
  }
  return { repaired, left };
}

/** Repairs that one entry names; an organization with more of them gets several. */
const REPAIRS_PER_ENTRY = 1_000;

/** What was repaired in an organization, in its chain of the audit log. */
export async function keepRepairs(
  db: Db,
  masterKey: MasterKey,
  organizationId: string,
  repaired: readonly Repaired[],
): Promise<void> {
  for (let from = 0; from < repaired.length; from += REPAIRS_PER_ENTRY) {
    await keepCommand(db, masterKey, {
      organizationId,
      via: "reconcile --repair",
      action: "reconcileRepair",
      resource: { type: "organization", id: organizationId },
      after: { repaired: repaired.slice(from, from + REPAIRS_PER_ENTRY) },
    });
  }
}

function naming(repair: Repair): readonly [id: string, did: string] {
  if (repair.kind === "agent_record") {
    const { agentId, summary } = repair;
    return [agentId, `wrote the agent's record at its actor's revision ${String(summary.revision)}`];
  }
  const { payment } = repair;
  const beside = payment.approval === null ? "" : ", with its approval's";
  const did = `wrote the payment's record${beside} at its actor's revision ${String(payment.revision)}`;
  return [payment.request.transactionId, did];
}

const write = (db: Db, repair: Repair): Promise<boolean> =>
  repair.kind === "agent_record"
    ? overwriteAgentSummary(collectionsOf(db).agents, repair.agentId, repair.summary)
    : overwritePayment(db, repair.profile, repair.payment);
