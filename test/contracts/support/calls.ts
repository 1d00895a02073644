import {
  type Abi,
  type Address,
  BaseError,
  type ContractFunctionArgs,
  type ContractFunctionName,
  ContractFunctionRevertedError,
  encodeFunctionData,
  getAddress,
  type Hex,
  parseEventLogs,
} from "viem";
import {
  agentWalletAbi,
  agentWalletArtifact,
  agentWalletFactoryAbi,
  agentWalletFactoryArtifact,
  sandboxUSDAbi,
  sandboxUSDArtifact,
} from "../../../contracts/artifacts/index.ts";
import type { Chain } from "./chain.ts";
import { mined } from "../../support/mined.ts";

/** Enough for every call here. Given, so that nothing is estimated, which would be at another time than it is mined. */
const GAS = 2_000_000n;

/** Errors of a contract that another one calls are not in the caller's ABI. */
const ERRORS = [...agentWalletAbi, ...agentWalletFactoryAbi, ...sandboxUSDAbi].filter(
  ({ type }) => type === "error",
);

/** A call of a contract's function. */
export interface Call {
  readonly to: Address;
  readonly abi: Abi;
  readonly functionName: string;
  readonly args: readonly unknown[];
}

/** What a contract said: an event, or the error it reverted with. */
export interface Said {
  readonly name: string;
  readonly args: unknown;
}

/** How a transaction ended, in a block of this timestamp. */
export type Outcome = { readonly at: bigint; readonly gasUsed: bigint } & (
  { readonly ok: true; readonly events: readonly Said[] } | { readonly ok: false; readonly error: Said }
);

type Writing = "nonpayable" | "view";

export const walletCall = <const N extends ContractFunctionName<typeof agentWalletAbi, Writing>>(
  to: Address,
  functionName: N,
  args: ContractFunctionArgs<typeof agentWalletAbi, Writing, N> & readonly unknown[],
): Call => ({ to, abi: agentWalletAbi, functionName, args });

export const factoryCall = <const N extends ContractFunctionName<typeof agentWalletFactoryAbi, Writing>>(
  to: Address,
  functionName: N,
  args: ContractFunctionArgs<typeof agentWalletFactoryAbi, Writing, N> & readonly unknown[],
): Call => ({ to, abi: agentWalletFactoryAbi, functionName, args });

export const tokenCall = <const N extends ContractFunctionName<typeof sandboxUSDAbi, Writing>>(
  to: Address,
  functionName: N,
  args: ContractFunctionArgs<typeof sandboxUSDAbi, Writing, N> & readonly unknown[],
): Call => ({ to, abi: sandboxUSDAbi, functionName, args });

/** Has a transaction mined, in a block of the given timestamp if there is one, and says how it ended. */
export async function send(chain: Chain, from: Address, call: Call, at?: bigint): Promise<Outcome> {
  const { client } = chain;
  const { to, abi, functionName, args } = call;
  if (at !== undefined) await client.setNextBlockTimestamp({ timestamp: at });
  const data = encodeFunctionData({ abi, functionName, args });
  const hash = await client.sendTransaction({ account: from, to, data, gas: GAS, chain: null });
  const { status, gasUsed, blockNumber, logs } = await mined(client, hash);
  const block = { at: at ?? (await client.getBlock({ blockNumber })).timestamp, gasUsed };
  if (status === "success") {
    const events = parseEventLogs({ abi, logs }).map(({ eventName, args: said }) => ({
      name: eventName,
      args: said,
    }));
    return { ...block, ok: true, events };
  }
  return { ...block, ok: false, error: await errorOf(chain, from, call, blockNumber) };
}

/** Why a call reverts at the end of a block: as it did in that block, since it changed nothing. */
async function errorOf(chain: Chain, account: Address, call: Call, blockNumber: bigint): Promise<Said> {
  const { to: address, functionName, args } = call;
  const abi: Abi = [...call.abi, ...ERRORS];
  try {
    await chain.client.simulateContract({ address, abi, functionName, args, account, blockNumber, gas: GAS });
  } catch (error) {
    const reverted =
      error instanceof BaseError ? error.walk((e) => e instanceof ContractFunctionRevertedError) : null;
    if (!(reverted instanceof ContractFunctionRevertedError)) throw error;
    return { name: reverted.data?.errorName ?? "none", args: reverted.data?.args ?? [] };
  }
  throw new Error(`${functionName} reverted, and then did not`);
}

/** Has a transaction mined that must succeed. */
export async function done(
  chain: Chain,
  from: Address,
  call: Call,
  at?: bigint,
): Promise<Outcome & { ok: true }> {
  const outcome = await send(chain, from, call, at);
  if (!outcome.ok) throw new Error(`${call.functionName} reverted with ${outcome.error.name}`);
  return outcome;
}

/** Has a transaction mined that must revert, and answers the error. */
export async function refused(chain: Chain, from: Address, call: Call, at?: bigint): Promise<Said> {
  const outcome = await send(chain, from, call, at);
  if (outcome.ok) throw new Error(`${call.functionName} was carried out`);
  return outcome.error;
}

/** The wallet itself, or a mutant of it. */
export async function deployWallet(
  chain: Chain,
  owner: Address,
  spender: Address,
  bytecode: Hex = agentWalletArtifact.bytecode,
): Promise<Address> {
  const hash = await chain.client.deployContract({
    abi: agentWalletAbi,
    bytecode,
    args: [owner, spender],
    account: owner,
    gas: GAS,
  });
  return deployedAt(chain, hash);
}

export async function deployToken(chain: Chain, minter: Address): Promise<Address> {
  const hash = await chain.client.deployContract({ ...sandboxUSDArtifact, args: [minter], account: minter });
  return deployedAt(chain, hash);
}

export async function deployFactory(chain: Chain, from: Address): Promise<Address> {
  return deployedAt(
    chain,
    await chain.client.deployContract({ ...agentWalletFactoryArtifact, account: from }),
  );
}

/** The address of a contract, once the transaction that deploys it is mined. */
export async function deployedAt(chain: Chain, hash: Hex): Promise<Address> {
  const { contractAddress } = await mined(chain.client, hash);
  if (contractAddress === undefined || contractAddress === null) throw new Error("nothing was deployed");
  return getAddress(contractAddress);
}
