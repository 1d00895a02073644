import { type Address, createWalletClient, encodeFunctionData, type Hash, type Hex, http } from "viem";
import { privateKeyToAccount } from "viem/accounts";
import { agentWalletAbi, setLimitData, type Spend, spendData } from "../../src/chain/contracts.ts";
import { unitsOf } from "../../src/chain/units.ts";
import type { Scene } from "./support.ts";
import { mined } from "../support/mined.ts";

/** anvil's well-known account 0, whose key everybody knows: the demo owner. */
const DEMO_OWNER_KEY = "0xac0974bec39a17e36ba4a6b4d238ff944bacb478cbed5efcae784d7bf4f2ff80";
/** More than the service offers, so that a block has the owner's transaction before it. */
const FEES = { maxFeePerGas: 200_000_000_000n, maxPriorityFeePerGas: 50_000_000_000n } as const;

/** The owner of the test's wallets, who does on the chain what owners may. */
export interface Owner {
  setCeiling(wallet: Address, cents: number): Promise<void>;
  setSpender(wallet: Address, spender: Address): Promise<void>;
  /** Becomes the spender, pays under an id of the service's, and makes the service the spender again. */
  payInItsPlace(wallet: Address, spend: Omit<Spend, "token">): Promise<void>;
  /** Hands a withdrawal over without waiting for it. */
  beginWithdrawal(wallet: Address, to: Address, cents: number): Promise<Hash>;
  isDone(hash: Hash): Promise<void>;
}

export function openOwner({ chain, config, signer }: Scene): Owner {
  const account = privateKeyToAccount(DEMO_OWNER_KEY);
  const client = createWalletClient({ account, transport: http(config.rpcUrl) });
  const { token, tokenDecimals } = config;
  const send = (to: Address, data: Hex): Promise<Hash> =>
    client.sendTransaction({ to, data, chain: null, gas: 300_000n, ...FEES });
  const isDone = async (hash: Hash): Promise<void> => {
    const { status } = await mined(chain, hash);
    if (status !== "success") throw new Error("the owner's transaction was undone");
  };
  const abi = agentWalletAbi;
  const setSpender = async (wallet: Address, spender: Address): Promise<void> => {
    const data = encodeFunctionData({ abi, functionName: "setSpender", args: [spender] });
    await isDone(await send(wallet, data));
  };
  return {
    isDone,
    setSpender,
    async payInItsPlace(wallet, spend) {
      await setSpender(wallet, account.address);
      await isDone(await send(wallet, setLimitData(token, spend.units * 10n, 0)));
      await isDone(await send(wallet, spendData({ ...spend, token })));
      await setSpender(wallet, signer.address);
    },
    async setCeiling(wallet, cents) {
      const args = [token, unitsOf(cents, tokenDecimals), 0n] as const;
      await isDone(await send(wallet, encodeFunctionData({ abi, functionName: "setCeiling", args })));
    },
    beginWithdrawal(wallet, to, cents) {
      const args = [token, to, unitsOf(cents, tokenDecimals)] as const;
      return send(wallet, encodeFunctionData({ abi, functionName: "withdraw", args }));
    },
  };
}
