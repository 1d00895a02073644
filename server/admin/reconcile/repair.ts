import type { Db } from "mongodb";
import { overwriteAgent, overwriteCap } from "../../../src/store/level-records.ts";
import { overwritePayment } from "../../../src/store/projections.ts";
import { collectionsOf } from "../../../src/store/collections.ts";
import type { MasterKey } from "../../../src/secrets/master-key.ts";
import { recordCommand } from "../record-command.ts";
import type { Difference, Repair } from "./difference.ts";
import type { RecordProofs } from "./proofs.ts";

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
  proofs: Pick<RecordProofs, "access" | "ofBooks">,
  differences: readonly Difference[],
): Promise<{ readonly repaired: readonly Repaired[]; readonly left: readonly Difference[] }> {
  const done = new Map<string, boolean>();
  for (const [name, { repair }] of repairsFor(differences)) done.set(name, await write(db, proofs, repair));
  const isDone = ({ repair }: Difference): boolean => repair !== null && done.get(nameOf(repair)) === true;
  const repaired = [...repairsFor(differences)].filter(([name]) => done.get(name) === true);
  return {
    repaired: repaired.map(([, { named }]) => named),
    left: differences.filter((difference) => !isDone(difference)),
  };
}

const nameOf = (repair: Repair): string => {
  const { did, id } = naming(repair);
  return `${id} ${did}`;
};

/** Returns the repairs of differences by name, each once. */
const repairsFor = (differences: readonly Difference[]) =>
  new Map(
    differences.flatMap(({ repair }) =>
      repair === null ? [] : [[nameOf(repair), { repair, named: naming(repair) }] as const],
    ),
  );

/** Maximum repairs in one audit entry. An organization with more gets several. */
const REPAIRS_PER_ENTRY = 1_000;

/** Writes the audit entries of the repairs that are about to be made. One that meets a later revision is not made. */
export async function recordRepairs(
  db: Db,
  masterKey: MasterKey,
  organizationId: string,
  differences: readonly Difference[],
): Promise<void> {
  const repaired = [...repairsFor(differences).values()].map(({ named }) => named);
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

function naming(repair: Repair): Repaired {
  switch (repair.kind) {
    case "agent_record": {
      const { account, agent, agentId } = repair;
      const at = [
        ...(agent === null ? [] : [`its actor's revision ${String(agent.revision)}`]),
        ...(account === null ? [] : [`its account's revision ${String(account.revision)}`]),
      ];
      return { id: agentId, did: `wrote the agent's record at ${at.join(" and ")}` };
    }
    case "cap": {
      const { projectId, recorded } = repair;
      const did = `wrote the cap's record at version ${String(recorded.cap.version)}`;
      return { id: recorded.teamId ?? projectId, did };
    }
    case "payment_records": {
      const { payment } = repair;
      const beside = payment.approval === null ? "" : ", with its approval's";
      const did = `wrote the payment's record${beside} at its revision ${String(payment.revision)} in the ledger`;
      return { id: payment.request.transactionId, did };
    }
  }
}

function write(db: Db, proofs: Pick<RecordProofs, "access" | "ofBooks">, repair: Repair): Promise<boolean> {
  switch (repair.kind) {
    case "agent_record":
      return overwriteAgent(collectionsOf(db).agents, proofs.access, repair.agent, repair.account);
    case "cap":
      return overwriteCap(db, proofs.access, repair.projectId, repair.recorded);
    case "payment_records":
      return overwritePayment(db, proofs, repair.profile, repair.payment);
  }
}
