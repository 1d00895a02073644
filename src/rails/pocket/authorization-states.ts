import { type Address, type Hex, parseAbi, parseAbiItem } from "viem";
import type { ChainConfig } from "../../chain/config.ts";
import type { ChainRpc } from "../../chain/rpc.ts";
import type { Authorization, AuthorizationState } from "./pocket.ts";

const ABI = parseAbi(["function authorizationState(address authorizer, bytes32 nonce) view returns (bool)"]);
const USED = parseAbiItem("event AuthorizationUsed(address indexed authorizer, bytes32 indexed nonce)");
const CANCELED = parseAbiItem(
  "event AuthorizationCanceled(address indexed authorizer, bytes32 indexed nonce)",
);

/** Blocks searched for events per call, and maximum calls per authorization. Nodes limit the range of one answer. */
const BLOCKS_PER_CALL = 2_000n;
const CALLS_MAX = 50;

export interface StateDependencies {
  readonly rpc: ChainRpc;
  readonly config: ChainConfig;
  /** Mines a block in a sandbox, so that the chain's time advances; null elsewhere. */
  readonly mine: (() => Promise<void>) | null;
  readonly nowSeconds: () => number;
}

type Asked = Pick<Authorization, "from" | "nonce" | "validBefore" | "signedAtBlock">;

/**
 * Returns an authorization's state in the final part of the chain. The state is read at the newest final block, or at
 * the oldest block whose state nodes keep if that is newer. After that block's time the authorization cannot be used in
 * any chain that contains the final block.
 */
export async function stateOf(
  deps: StateDependencies,
  asked: Asked,
  isExpectedUsed: boolean,
): Promise<AuthorizationState> {
  const state = await read(deps, asked, isExpectedUsed);
  const { mine, nowSeconds } = deps;
  if (state.kind !== "open" || mine === null || nowSeconds() < asked.validBefore) return state;
  // A local chain may receive no other transaction while a caller waits for its time to pass.
  await mine();
  return read(deps, asked, isExpectedUsed);
}

async function read(
  { config, rpc }: StateDependencies,
  asked: Asked,
  isExpectedUsed: boolean,
): Promise<AuthorizationState> {
  const { from, nonce, signedAtBlock, validBefore } = asked;
  const search = { rpc, token: config.token, from, nonce };
  const [final, expected] = await Promise.all([
    rpc.finalBlock(),
    // Nodes may refuse a range this long; the event is then searched in shorter ranges.
    isExpectedUsed ? eventOf(search, signedAtBlock, "latest").catch(() => null) : null,
  ]);
  if (final === null) return { kind: "open" };
  if (expected !== null && expected.blockNumber <= final.number) return expected.state;
  const within = async (fromBlock: bigint): Promise<AuthorizationState | null> => {
    const last = fromBlock + BLOCKS_PER_CALL - 1n;
    const event = await eventOf(search, fromBlock, last < final.number ? last : final.number);
    return event?.state ?? null;
  };
  if (!(await isUsed({ config, rpc }, asked, final.stateAt)))
    return { kind: final.timestamp >= BigInt(validBefore) ? "dead" : "open" };
  for (let call = 0; call < CALLS_MAX; call += 1) {
    const fromBlock = signedAtBlock + BigInt(call) * BLOCKS_PER_CALL;
    if (fromBlock > final.number) break;
    const found = await within(fromBlock);
    if (found !== null) return found;
  }
  // The event lies between the final block and the block whose state was read.
  if (final.stateAt > final.number) return { kind: "open" };
  return { kind: "used", txHash: null };
}

/** Whether an authorization was used or cancelled, as of a block, or now. */
export function isUsed(
  { config, rpc }: Pick<StateDependencies, "config" | "rpc">,
  { from, nonce }: Pick<Asked, "from" | "nonce">,
  blockNumber: bigint | null = null,
): Promise<boolean> {
  const contract = { address: config.token, abi: ABI, functionName: "authorizationState" } as const;
  const at = blockNumber === null ? {} : { blockNumber };
  return rpc.answer(rpc.client.readContract({ ...contract, args: [from, nonce], ...at }));
}

interface Search {
  readonly rpc: ChainRpc;
  readonly token: Address;
  readonly from: Address;
  readonly nonce: Hex;
}

interface Event {
  readonly state: AuthorizationState;
  readonly blockNumber: bigint;
}

async function eventOf(
  { from, nonce, rpc, token }: Search,
  fromBlock: bigint,
  toBlock: bigint | "latest",
): Promise<Event | null> {
  const common = {
    address: token,
    args: { authorizer: from, nonce },
    fromBlock,
    toBlock,
    strict: true,
  } as const;
  const [used, canceled] = await Promise.all([
    rpc.answer(rpc.client.getLogs({ ...common, event: USED })),
    rpc.answer(rpc.client.getLogs({ ...common, event: CANCELED })),
  ]);
  const [settled] = used.filter(({ args }) => args.authorizer === from && args.nonce === nonce);
  if (settled !== undefined) {
    const { blockNumber, transactionHash: txHash } = settled;
    return { state: { kind: "used", txHash }, blockNumber };
  }
  const [cancellation] = canceled;
  return cancellation === undefined
    ? null
    : { state: { kind: "dead" }, blockNumber: cancellation.blockNumber };
}
