import { type Address, encodeFunctionData, getAddress } from "viem";
import { agentWalletAbi, paymentIdOf } from "../../chain/contracts.ts";
import {
  type ChainOutbox,
  isTransaction,
  type RecordedRefusal,
  type RecordedTransaction,
} from "../../chain/outbox.ts";
import type { ChainWatchers } from "../../chain/repairs.ts";
import { type ChainRpc, ChainUnreachable } from "../../chain/rpc.ts";
import type { RailOutcome } from "../../domain/ledger/payment.ts";

export interface RefusalDependencies {
  readonly outbox: Pick<ChainOutbox, "from">;
  readonly rpc: ChainRpc;
  readonly signer: { readonly address: Address };
  readonly onWarning: ChainWatchers["onWarning"];
}

export interface RefusedSpend {
  readonly transactionId: string;
  /** Transaction that the ledger knows of; null if none. */
  readonly knownHash: string | null;
  /** Recorded attempts, none of which paid. */
  readonly sent: readonly RecordedTransaction[];
}

/**
 * Returns the outcome of a recorded refusal; null if it is not to be believed, since a transaction may have been removed
 * from the records and the refusal have taken its place: the ledger knows a transaction that is not recorded, one is on
 * its way without a record, or the wallet has paid. While the chain does not answer, a withdrawal is believed, so that a
 * stop needs no chain; any other refusal throws.
 */
export async function refusalOutcome(
  deps: RefusalDependencies,
  { knownHash, sent, transactionId }: RefusedSpend,
  { refusal: { code, reason }, wallet }: RecordedRefusal,
): Promise<RailOutcome | null> {
  const hashes = sent.flatMap(({ signings }) => signings.map(({ hash }) => hash));
  const isLost = knownHash !== null && !hashes.some((hash) => hash === knownHash);
  const isBelieved =
    !isLost &&
    !(await isContradicted(deps, transactionId, wallet).catch((error: unknown) => {
      if (error instanceof ChainUnreachable && code === "WITHHELD") return false;
      throw error;
    }));
  if (isBelieved) return code === "WITHHELD" ? { status: "withheld" } : { status: "failed", code, reason };
  deps.onWarning("a payment is recorded as refused and may have been made", { transactionId });
  return null;
}

async function isContradicted(
  deps: RefusalDependencies,
  transactionId: string,
  wallet: string | null,
): Promise<boolean> {
  // In this order: what the first call no longer finds on its way, since it was mined, the second one finds.
  if (await hasUnrecorded(deps)) return true;
  return wallet !== null && isSpent(deps, getAddress(wallet), transactionId);
}

/** Whether a transaction of the service's key without a genuine record waits to be mined. */
async function hasUnrecorded({ outbox, rpc, signer }: RefusalDependencies): Promise<boolean> {
  const [mined, pending] = await Promise.all([
    rpc.nonceAt(signer.address, "latest"),
    rpc.nonceAt(signer.address, "pending"),
  ]);
  if (pending <= mined) return false;
  const recorded = await outbox.from(mined, pending - mined);
  return recorded.filter((each) => isTransaction(each) && each.nonce < pending).length < pending - mined;
}

async function isSpent({ rpc }: RefusalDependencies, wallet: Address, transactionId: string) {
  const args = [paymentIdOf(transactionId)] as const;
  const data = encodeFunctionData({ abi: agentWalletAbi, functionName: "isSpent", args });
  // A wallet that is not deployed answers with nothing.
  const { data: answer = "0x" } = await rpc.answer(rpc.client.call({ to: wallet, data }));
  return answer !== "0x" && BigInt(answer) === 1n;
}
