import { type Address, erc20Abi, getAbiItem, type Hash } from "viem";
import { type ChainRpc, ChainUnreachable } from "./rpc.ts";

/** Maximum recipients per call; nodes limit the size of a filter. */
const RECIPIENTS_PER_CALL_MAX = 200;

const TRANSFER = getAbiItem({ abi: erc20Abi, name: "Transfer" });

export interface Transfer {
  readonly from: Address;
  readonly to: Address;
  readonly units: bigint;
  readonly transactionHash: Hash;
}

export interface TransferFilter {
  readonly token: Address;
  readonly recipients: readonly Address[];
  readonly fromBlock: bigint;
  readonly toBlock: bigint;
}

/** Returns a token's transfers to some recipients within a range of blocks; in order for each recipient. */
export async function transfersTo(rpc: ChainRpc, filter: TransferFilter): Promise<readonly Transfer[]> {
  const chunks: (readonly Address[])[] = [];
  for (let at = 0; at < filter.recipients.length; at += RECIPIENTS_PER_CALL_MAX) {
    chunks.push(filter.recipients.slice(at, at + RECIPIENTS_PER_CALL_MAX));
  }
  const found = await Promise.all(chunks.map((recipients) => ask(rpc, { ...filter, recipients })));
  return found.flat();
}

async function ask(
  rpc: ChainRpc,
  { fromBlock, recipients, toBlock, token }: TransferFilter,
): Promise<readonly Transfer[]> {
  // The library verifies checksums, which takes longer than the call, unless there are none.
  const args = { to: recipients.map((address) => `0x${address.slice("0x".length).toLowerCase()}` as const) };
  const logs = await rpc.answer(
    rpc.client.getLogs({ address: token, event: TRANSFER, args, strict: true, fromBlock, toBlock }),
  );
  const wanted = new Set(recipients);
  const isRequested = (log: (typeof logs)[number]): boolean =>
    log.address.toLowerCase() === token.toLowerCase() &&
    wanted.has(log.args.to) &&
    log.blockNumber >= fromBlock &&
    log.blockNumber <= toBlock;
  // A proxy that mixes up answers must not turn one organization's money into another's.
  if (!logs.every(isRequested)) throw new ChainUnreachable("the chain answered a different request");
  const inOrder = logs.toSorted(
    (one, other) => Number(one.blockNumber - other.blockNumber) || one.logIndex - other.logIndex,
  );
  return inOrder.map(({ args: { from, to, value }, transactionHash }) => ({
    from,
    to,
    units: value,
    transactionHash,
  }));
}
