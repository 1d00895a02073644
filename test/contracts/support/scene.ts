import type { Address } from "viem";
import { agentWalletAbi, agentWalletFactoryAbi, sandboxUSDAbi } from "../../../contracts/artifacts/index.ts";
import { deployFactory, deployToken, deployWallet, done, tokenCall } from "./calls.ts";
import { accountAt, type Chain, startChain } from "./chain.ts";

/** A chain with a token, a factory and a cast; each test deploys a wallet of its own. */
export interface Scene {
  readonly chain: Chain;
  readonly token: Address;
  readonly factory: Address;
  readonly owner: Address;
  readonly spender: Address;
  readonly stranger: Address;
  readonly heir: Address;
  readonly minter: Address;
  readonly shop: Address;
}

/** Brings the scene up before the tests of the suite that calls this, and ends its chain after them. */
export function useScene(): () => Scene {
  let chain: Chain | undefined;
  let scene: Scene | undefined;
  before(async () => {
    chain = await startChain();
    const minter = accountAt(chain, 4);
    scene = {
      chain,
      token: await deployToken(chain, minter),
      factory: await deployFactory(chain, minter),
      owner: accountAt(chain, 0),
      spender: accountAt(chain, 1),
      stranger: accountAt(chain, 2),
      heir: accountAt(chain, 3),
      minter,
      shop: accountAt(chain, 5),
    };
  });
  after(() => chain?.stop());
  return () => {
    if (scene === undefined) throw new Error("the scene is there in tests only");
    return scene;
  };
}

/** A wallet with so many units of the token. */
export async function fundedWallet(scene: Scene, amount = 1_000n): Promise<Address> {
  const wallet = await deployWallet(scene.chain, scene.owner, scene.spender);
  await mint(scene, wallet, amount);
  return wallet;
}

export async function mint({ chain, token, minter }: Scene, to: Address, amount: bigint): Promise<void> {
  await done(chain, minter, tokenCall(token, "mint", [to, amount]));
}

export const balanceOf = ({ chain, token }: Scene, of: Address): Promise<bigint> =>
  chain.client.readContract({ address: token, abi: sandboxUSDAbi, functionName: "balanceOf", args: [of] });

/** The views of a wallet, at the time of the latest block. */
export const viewsOf = ({ chain, token }: Scene, address: Address) => {
  const wallet = { address, abi: agentWalletAbi } as const;
  const read = chain.client.readContract;
  return {
    owner: () => read({ ...wallet, functionName: "owner" }),
    spender: () => read({ ...wallet, functionName: "spender" }),
    isSpent: (id: `0x${string}`) => read({ ...wallet, functionName: "isSpent", args: [id] }),
    totalSpent: () => read({ ...wallet, functionName: "totalSpent", args: [token] }),
    limit: () => read({ ...wallet, functionName: "limitOf", args: [token] }),
    ceiling: () => read({ ...wallet, functionName: "ceilingOf", args: [token] }),
  };
};

export const addressOf = (
  { chain, factory: address }: Scene,
  owner: Address,
  spender: Address,
  salt: `0x${string}`,
): Promise<Address> =>
  chain.client.readContract({
    address,
    abi: agentWalletFactoryAbi,
    functionName: "addressOf",
    args: [owner, spender, salt],
  });

/** The next time, some way off, at which a window of this period begins. */
export async function nextEdge({ chain }: Scene, periodSeconds: bigint): Promise<bigint> {
  const { timestamp } = await chain.client.getBlock();
  return timestamp - (timestamp % periodSeconds) + 2n * periodSeconds;
}

/** Makes an empty block of this timestamp, which views are then read at. */
export async function passTo({ chain: { client } }: Scene, timestamp: bigint): Promise<void> {
  await client.setNextBlockTimestamp({ timestamp });
  await client.mine({ blocks: 1 });
}
