import type { StepsOf } from "../folder.ts";
import { inOrder, NO_FENCE, type RailStep } from "../rail-steps.ts";
import type { CardLedgerDocument } from "./network-books.ts";

/** Returns a payment's entries in the processor's ledger, by ids derived from the payment's. */
export const cardSteps: StepsOf = async ({ cardLedger }, { _id, organizationId }) => {
  const later = { transactionId: _id, changedAt: { $type: "date" } } as const;
  const found = await cardLedger.find({ $or: [{ _id: `capture/${_id}` }, later], ...NO_FENCE }).toArray();
  const own = found.filter((entry) => (entry.organizationId ?? organizationId) === organizationId);
  return inOrder(own).map(cardStep);
};

const cardStep = ({ _id, amountCents, createdAt, status }: CardLedgerDocument): RailStep => ({
  id: _id,
  kind: status,
  createdAt: createdAt.toISOString(),
  amountCents: amountCents ?? null,
  onChainTxHash: null,
  reason: null,
});
