import type { ChainTransactionDocument } from "../../chain/outbox.ts";
import type { StepsOf } from "../folder.ts";
import { inOrder, NO_FENCE, type RailStep } from "../rail-steps.ts";
import { attemptsPrefix } from "./attempts.ts";

const beginning = (from: string) => ({ _id: { $gte: from, $lt: `${from}\u{10ffff}` } });

/** Returns a payment's transactions on the chain, or its pocket's signatures, by ids derived from the payment's. */
export const walletSteps: StepsOf = async (
  { agents, chainTransactions, pocketAuthorizations },
  { _id, agentId, amountCents, chainCaip2, onChainTxHash, protocol },
) => {
  // A payment refused in a transaction's place has no chain in its record.
  const chain = chainCaip2 ?? (await agents.findOne({ _id: agentId }))?.wallet?.chainCaip2;
  if (chain === undefined) return [];
  if (protocol !== undefined) {
    const signed = { ...beginning(`${chain}/${_id}/`), ...NO_FENCE };
    const found = inOrder(await pocketAuthorizations.find(signed).toArray());
    return found.map((each, at) => ({
      id: each._id,
      kind: "signed" as const,
      createdAt: each.createdAt.toISOString(),
      amountCents,
      // A further authorization is signed only once its predecessors are dead.
      onChainTxHash: at === found.length - 1 ? onChainTxHash : null,
      reason: null,
    }));
  }
  const range = beginning(`${chain}/${attemptsPrefix(_id)}`);
  return inOrder(await chainTransactions.find({ ...range, ...NO_FENCE }).toArray()).map(
    chainStep(onChainTxHash),
  );
};

const REPLACED = "Another transaction of the service's key was mined in its place.";

/** Names the mined one of several signings; until it is known, the newest. */
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
