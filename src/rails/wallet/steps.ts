import type { ChainTransactionDocument } from "../../chain/outbox.ts";
import type { StepsOf } from "../folder.ts";
import { inOrder, NO_FENCE, type RailStep } from "../rail-steps.ts";
import { attemptsPrefix } from "./attempts.ts";

/** Returns a payment's transactions on the chain, by ids derived from the payment's. */
export const walletSteps: StepsOf = async (
  { agents, chainTransactions },
  { _id, agentId, chainCaip2, onChainTxHash },
) => {
  // A payment that was refused in a transaction's place has no chain in its record.
  const chain = chainCaip2 ?? (await agents.findOne({ _id: agentId }))?.wallet?.chainCaip2;
  if (chain === undefined) return [];
  const from = `${chain}/${attemptsPrefix(_id)}`;
  const range = { _id: { $gte: from, $lt: `${from}\u{10ffff}` } };
  return inOrder(await chainTransactions.find({ ...range, ...NO_FENCE }).toArray()).map(
    chainStep(onChainTxHash),
  );
};

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
