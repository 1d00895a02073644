import type DataLoader from "dataloader";
import { batchLoader } from "../lib/batch-loader.ts";
import type { Collections } from "../store/collections.ts";
import type { TransactionDocument } from "../store/documents.ts";

export interface UsedKey {
  readonly agentId: string;
  readonly keyHash: string;
}

/** Loads the payment that was made with a key; null if none is recorded. */
export type PaymentsByKey = DataLoader<UsedKey, TransactionDocument | null>;

export const paymentsByKey = (transactions: Collections["transactions"]): PaymentsByKey =>
  batchLoader((keys) => transactionsUnder(transactions, keys));

const nameOf = ({ agentId, keyHash }: UsedKey): string => `${agentId} ${keyHash}`;

async function transactionsUnder(
  transactions: Collections["transactions"],
  keys: readonly UsedKey[],
): Promise<(TransactionDocument | null)[]> {
  const clauses = keys.map(({ agentId, keyHash }) => ({ agentId, keyHash }));
  const found = await transactions.find({ $or: clauses }).toArray();
  const byName = new Map(found.map((transaction) => [nameOf(transaction), transaction]));
  return keys.map((key) => byName.get(nameOf(key)) ?? null);
}
