import { setTimeout as sleep } from "node:timers/promises";
import { type Hash, type PublicClient, type TransactionReceipt, TransactionReceiptNotFoundError } from "viem";

const MINED_MS = 120_000;
const LOOK_MS = 5;

/**
 * The receipt of a transaction once it is mined. viem's own wait looks again only when there is a newer block, and on a
 * chain that mines a block for each transaction there is none if it looked a moment too early.
 */
export async function mined(
  client: Pick<PublicClient, "getTransactionReceipt">,
  hash: Hash,
): Promise<TransactionReceipt> {
  const until = performance.now() + MINED_MS;
  for (;;) {
    try {
      return await client.getTransactionReceipt({ hash });
    } catch (error) {
      if (!(error instanceof TransactionReceiptNotFoundError) || performance.now() > until) throw error;
    }
    await sleep(LOOK_MS);
  }
}
