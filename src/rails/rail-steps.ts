import type { ChainTransactionDocument } from "../chain/outbox.ts";
import { SETTLES_ON } from "../domain/ledger/payment.ts";
import type { TransactionDocument } from "../store/documents.ts";
import type { CardLedgerDocument } from "./card/network-books.ts";
import { attemptsPrefix } from "./wallet/attempts.ts";
import type { Collections } from "../store/collections.ts";

export interface RailStep {
  readonly id: string;
  readonly kind: CardLedgerDocument["status"] | "withheld" | "signed" | "refused";
  readonly createdAt: string;
  readonly amountCents: number | null;
  readonly onChainTxHash: string | null;
  readonly reason: string | null;
}

/** Returns the entries of a payment on its rail's books, by ids derived from the payment's. */
export const railStepsIn =
  ({
    agents,
    cardLedger,
    chainTransactions,
  }: Pick<Collections, "agents" | "cardLedger" | "chainTransactions">) =>
  async ({
    _id,
    agentId,
    chainCaip2,
    onChainTxHash,
    organizationId,
    rail,
  }: TransactionDocument): Promise<RailStep[]> => {
    if (SETTLES_ON[rail] === "processor") {
      const later = { transactionId: _id, changedAt: { $type: "date" } } as const;
      const found = await cardLedger.find({ $or: [{ _id: `capture/${_id}` }, later], ...NO_FENCE }).toArray();
      const own = found.filter((entry) => (entry.organizationId ?? organizationId) === organizationId);
      return inOrder(own).map(cardStep);
    }
    // A payment that was refused in a transaction's place has no chain in its record.
    const chain = chainCaip2 ?? (await agents.findOne({ _id: agentId }))?.wallet?.chainCaip2;
    if (chain === undefined) return [];
    const from = `${chain}/${attemptsPrefix(_id)}`;
    const range = { _id: { $gte: from, $lt: `${from}\u{10ffff}` } };
    const found = await chainTransactions.find({ ...range, ...NO_FENCE }).toArray();
    return inOrder(found).map(chainStep(onChainTxHash));
  };

/** A fence is no step: it only keeps one out. */
const NO_FENCE = { fence: { $exists: false } } as const;

const inOrder = <T extends { readonly createdAt: Date }>(found: readonly T[]): T[] =>
  found.toSorted((a, b) => a.createdAt.getTime() - b.createdAt.getTime());

const cardStep = ({ _id, amountCents, createdAt, status }: CardLedgerDocument): RailStep => ({
  id: _id,
  kind: status,
  createdAt: createdAt.toISOString(),
  amountCents: amountCents ?? null,
  onChainTxHash: null,
  reason: null,
});

const REPLACED = "Another transaction of the service's key was mined in its place.";

/** Names the mined one of several signings, and the newest until it is known. */
const chainStep =
  (paidBy: string | null) =>
  ({
    _id,
    amountCents,
    createdAt,
    hash,
    replacedBy,
    raised,
    refusal,
  }: ChainTransactionDocument): RailStep => {
    const hashes = [...(hash === null ? [] : [hash]), ...raised.map((signing) => signing.hash)];
    return {
      id: _id,
      kind: refusal === null ? "signed" : refusal.code === "WITHHELD" ? "withheld" : "refused",
      createdAt: createdAt.toISOString(),
      amountCents: refusal === null ? amountCents : null,
      onChainTxHash: hashes.find((each) => each === paidBy) ?? hashes.at(-1) ?? null,
      reason: refusal?.reason ?? (replacedBy === null ? null : REPLACED),
    };
  };
