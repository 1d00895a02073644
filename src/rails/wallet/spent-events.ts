import {
  type Address,
  createPublicClient,
  getAbiItem,
  getAddress,
  type Hash,
  type Hex,
  http,
  isAddress,
  type PublicClient,
} from "viem";
import { agentWalletAbi, sandboxTokenDeployment } from "../../chain/contracts.ts";
import type { RailSources } from "../folder.ts";

const CHAIN_TIMEOUT_MS = 10_000;
/** Decimals of the sandbox's token, and of most stablecoins. */
const TOKEN_DECIMALS = 6;
const CENT_DECIMALS = 2;
/** Wallets per call for events. */
const WALLETS_AT_ONCE = 200;

export interface WalletsOnChain {
  readonly chain: PublicClient;
  readonly token: Address;
  readonly walletOf: ReadonlyMap<string, string>;
  readonly unitsPerCent: bigint;
}

/** Null if there is no chain, or no wallet. */
export async function walletsOnChain({
  chainRpcUrl,
  collections,
  env,
  organizationId,
}: Pick<
  RailSources,
  "chainRpcUrl" | "collections" | "env" | "organizationId"
>): Promise<WalletsOnChain | null> {
  if (chainRpcUrl === null) return null;
  const agents = await collections.agents.find({ organizationId, wallet: { $ne: null } }).toArray();
  const spender = agents[0]?.wallet?.spender;
  if (spender === undefined) return null;
  const named = env["EVM_TOKEN_ADDRESS"];
  const decimals = Number(env["EVM_TOKEN_DECIMALS"] ?? TOKEN_DECIMALS);
  return {
    chain: createPublicClient({
      transport: http(chainRpcUrl, { retryCount: 1, timeout: CHAIN_TIMEOUT_MS }),
      cacheTime: 0,
    }),
    token: named === undefined ? sandboxTokenDeployment(addressOf(spender)).address : addressOf(named),
    walletOf: new Map(agents.map(({ _id, wallet }) => [_id, wallet?.address ?? ""])),
    unitsPerCent: 10n ** BigInt(decimals - CENT_DECIMALS),
  };
}

export const unreadChain = (what: string, error: unknown): string => {
  const reason = error instanceof Error ? (error.message.split("\n")[0] ?? "") : String(error);
  return `The chain could not be read, ${what} were not compared: ${reason}`;
};

export interface SpentEvent {
  readonly wallet: Address;
  readonly id: Hex;
  readonly to: Address;
  readonly units: bigint;
  readonly hash: Hash;
}

/** Returns every spend of this token by these wallets, according to the chain. */
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
