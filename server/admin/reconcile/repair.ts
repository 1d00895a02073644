import type { Db } from "mongodb";
import {
  type BookProofs,
  overwriteAgent,
  overwriteCap,
  overwritePayment,
} from "../../../src/store/projections.ts";
import { collectionsOf } from "../../../src/store/collections.ts";
import type { MasterKey } from "../../../src/secrets/master-key.ts";
import { recordCommand } from "../record-command.ts";
import type { Difference, Repair } from "./difference.ts";

export interface Repaired {
  readonly id: string;
  readonly did: string;
}

/**
 * Writes records from the actors' state, once for each record whatever the number of its differences. Never overwrites
 * a later revision, so that no newer change is undone. Returns what was repaired and what could not be.
 */
export async function repairAll(
  db: Db,
  proofs: Pick<BookProofs, "ofBooks">,
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
    const name = `${id} ${did}`;
    let isDone = outcomes.get(name);
    if (isDone === undefined) {
      isDone = await write(db, proofs, repair);
      outcomes.set(name, isDone);
      if (isDone) repaired.push({ id, did });
    }
    if (!isDone) left.push(difference);
  }
  return { repaired, left };
}

/** Maximum repairs in one audit entry. An organization with more gets several. */
const REPAIRS_PER_ENTRY = 1_000;

export async function recordRepairs(
  db: Db,
  masterKey: MasterKey,
  organizationId: string,
  repaired: readonly Repaired[],
): Promise<void> {
  for (let from = 0; from < repaired.length; from += REPAIRS_PER_ENTRY) {
    await recordCommand(db, masterKey, {
      organizationId,
      via: "reconcile --repair",
      action: "reconcileRepair",
      resource: { type: "organization", id: organizationId },
      after: { repaired: repaired.slice(from, from + REPAIRS_PER_ENTRY) },
    });
  }
}

function naming(repair: Repair): readonly [id: string, did: string] {
  switch (repair.kind) {
    case "agent_record": {
      const { account, agent, agentId } = repair;
      const at = [
        ...(agent === null ? [] : [`its actor's revision ${String(agent.revision)}`]),
        ...(account === null ? [] : [`its account's revision ${String(account.revision)}`]),
      ];
      return [agentId, `wrote the agent's record at ${at.join(" and ")}`];
    }
    case "cap": {
      const { projectId, recorded } = repair;
      const did = `wrote the cap's record at version ${String(recorded.cap.version)}`;
      return [recorded.teamId ?? projectId, did];
    }
    case "payment_records": {
      const { payment } = repair;
      const beside = payment.approval === null ? "" : ", with its approval's";
      const did = `wrote the payment's record${beside} at its revision ${String(payment.revision)} in the ledger`;
      return [payment.request.transactionId, did];
    }
  }
}

function write(db: Db, proofs: Pick<BookProofs, "ofBooks">, repair: Repair): Promise<boolean> {
  switch (repair.kind) {
    case "agent_record":
      return overwriteAgent(collectionsOf(db).agents, repair.agent, repair.account);
    case "cap":
      return overwriteCap(db, repair.projectId, repair.recorded);
    case "payment_records":
      return overwritePayment(db, proofs, repair.profile, repair.payment);
  }
}
