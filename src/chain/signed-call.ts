import {
  type Address,
  type Hex,
  parseTransaction,
  recoverTransactionAddress,
  type TransactionSerializedEIP1559,
} from "viem";
import type { Call, RecordedTransaction } from "./recorded.ts";

export interface Signatory {
  readonly from: Address;
  readonly chainId: number;
}

/**
 * Returns the call of a recorded transaction. Throws if this key has not signed it for this nonce: the call is about to
 * be signed again, and an intruder with write access to the database must not get another call signed.
 */
export async function signedCallIn(
  { nonce, purpose, raw }: Pick<RecordedTransaction, "nonce" | "purpose" | "raw">,
  { chainId, from }: Signatory,
): Promise<Pick<Call, "to" | "data" | "gas">> {
  if (!isEip1559(raw))
    throw new Error(`${purpose} is recorded with bytes that are not a transaction of this service`);
  const signedBy = await recoverTransactionAddress({ serializedTransaction: raw });
  const { chainId: on, data = "0x", gas, nonce: under = 0, to } = parseTransaction(raw);
  const isOwn = signedBy === from && on === chainId && under === nonce;
  if (!isOwn || to === null || to === undefined || gas === undefined) {
    throw new Error(`${purpose} is recorded with a transaction that this key has not signed for it`);
  }
  return { to, data, gas };
}

const isEip1559 = (raw: Hex): raw is TransactionSerializedEIP1559 => raw.startsWith("0x02");
