import { AgentProofs } from "../../src/agents/agent-proofs.ts";
import { HmacPaymentProofs } from "../../src/payments/payment-proofs.ts";
import type { Db, Document } from "mongodb";
import { ACCESS_RECORDS, type AccessKind, AccessProofs } from "../../src/secrets/access-proofs.ts";
import { MasterKey } from "../../src/secrets/master-key.ts";
import { TEST_MASTER_KEY } from "./payloads.ts";

export const accessProofsOf = (masterKey: MasterKey): AccessProofs =>
  new AccessProofs(masterKey.macs("access-proofs"));

/** Proofs as a service of tests makes them. */
export const TEST_ACCESS_PROOFS = accessProofsOf(MasterKey.parse(TEST_MASTER_KEY, "a test"));

/** Proofs of agents as a service of tests makes them. */
export const TEST_AGENT_PROOFS = new AgentProofs(
  MasterKey.parse(TEST_MASTER_KEY, "a test").macs("agent-proofs"),
);

/** Proofs of payments as a service of tests makes them. */
export const TEST_PAYMENT_PROOFS = new HmacPaymentProofs(
  MasterKey.parse(TEST_MASTER_KEY, "a test").macs("payment-proofs"),
  () => undefined,
);

/** Proofs as the service of this environment makes them. */
export const accessProofsIn = ({ MASTER_KEY, MASTER_KEYS }: NodeJS.ProcessEnv): AccessProofs =>
  accessProofsOf(MasterKey.parseAll(MASTER_KEYS ?? MASTER_KEY ?? "", "a test"));

/** Changes records as the service would, with their proofs. Without a change, what a test wrote counts as the service's. */
export async function prove(
  db: Db,
  kind: AccessKind,
  filter: Document = {},
  change: Document = {},
  proofs: AccessProofs = TEST_ACCESS_PROOFS,
): Promise<void> {
  const { collection: name, path } = ACCESS_RECORDS[kind];
  const collection = db.collection<{ readonly _id: string }>(name);
  const writes = (await collection.find(filter).toArray()).map((record) => ({
    updateOne: {
      filter: { _id: record._id },
      update: { $set: { ...change, [path]: proofs.make(kind, { ...record, ...change }) } },
    },
  }));
  if (writes.length > 0) await collection.bulkWrite(writes);
}
