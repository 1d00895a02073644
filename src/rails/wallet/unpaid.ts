import { parseTransaction } from "viem";
import { GAS, showsPayment } from "../../chain/contracts.ts";
import type { RecordedTransaction } from "../../chain/outbox.ts";
import type { Receipt } from "../../chain/rpc.ts";
import type { Attempt } from "./attempts.ts";
import type { Remedy } from "./diagnosis.ts";
import { LIMIT_REACHED } from "./refusals.ts";

/** An attempt that has not paid. Without a receipt, it was replaced. */
export interface Unpaid {
  readonly last: RecordedTransaction;
  readonly receipt: Receipt | null;
}

/** Whether the receipt shows the payment. A mere success does not: calls to addresses without code succeed. */
export const hasPaid = (
  { wallet }: RecordedTransaction,
  receipt: Receipt | null,
  transactionId: string,
): boolean => receipt !== null && wallet !== null && showsPayment(receipt.logs, wallet, transactionId);

/** Turns raising the limit into a refusal for an attempt that keeps to the wallet's limit. */
export const boundBy = ({ keepsLimit }: Attempt, remedy: Remedy): Remedy =>
  keepsLimit && remedy.kind === "raise" ? { kind: "refuse", refusal: LIMIT_REACHED } : remedy;

export const gasOf = ({ raw }: RecordedTransaction): bigint => parseTransaction(raw).gas ?? GAS.spend;

/** Whether a reverted transaction used up its gas, apart from the 64th parts that calls keep for their callers. */
export const ranOutOfGas = ({ last, receipt }: Unpaid): boolean =>
  receipt !== null && !receipt.succeeded && receipt.gasUsed * 16n >= gasOf(last) * 15n;

export const causeOf = (remedy: Remedy): string =>
  remedy.kind === "refuse"
    ? remedy.refusal.reason
    : remedy.kind === "raise"
      ? "the wallet's limit"
      : "it would succeed by now";
