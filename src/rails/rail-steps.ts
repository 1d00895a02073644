import type { Document } from "mongodb";
import type { CardLedgerDocument } from "./card/network-books.ts";

/** An entry for a payment on its rail's books. */
export interface RailStep {
  readonly id: string;
  readonly kind: CardLedgerDocument["status"] | "withheld" | "issued" | "signed" | "refused";
  readonly createdAt: string;
  readonly amountCents: number | null;
  readonly onChainTxHash: string | null;
  readonly reason: string | null;
}

/** Filter that excludes fences: a fence is no step, it only keeps a step out. */
export const NO_FENCE = { fence: { $exists: false } } as const satisfies Document;

export const inOrder = <T extends { readonly createdAt: Date }>(found: readonly T[]): T[] =>
  found.toSorted((a, b) => a.createdAt.getTime() - b.createdAt.getTime());
