import { type Address, getAbiItem, getAddress, isAddress, type PublicClient } from "viem";
import { agentWalletAbi } from "../../../src/chain/contracts.ts";
import type { SpentEvent } from "./sources.ts";

/** Wallets in one call for events. */
const WALLETS_AT_ONCE = 200;

/** Everything that these wallets have ever spent of this token, as the chain says. */
export async function spentEvents(
  chain: PublicClient,
  wallets: readonly Address[],
  token: Address,
): Promise<readonly SpentEvent[]> {
  const events: SpentEvent[] = [];
  for (let at = 0; at < wallets.length; at += WALLETS_AT_ONCE) {
    const logs = await chain.getLogs({
      address: wallets.slice(at, at + WALLETS_AT_ONCE),
      event: getAbiItem({ abi: agentWalletAbi, name: "Spent" }),
      fromBlock: 0n,
      strict: true,
    });
    for (const { address, args, transactionHash: hash } of logs) {
      if (args.token !== token) continue;
      events.push({ wallet: addressOf(address), id: args.id, to: args.to, units: args.amount, hash });
    }
  }
  return events;
}

export function addressOf(text: string): Address {
  if (isAddress(text, { strict: false })) return getAddress(text);
  throw new Error(`"${text}" is no address`);
}
