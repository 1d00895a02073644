import { randomBytes } from "node:crypto";
import {
  type Address,
  encodeFunctionData,
  erc20Abi,
  type Hash,
  numberToHex,
  parseSignature,
  toHex,
} from "viem";
import { createWalletClient, http } from "viem";
import { generatePrivateKey, privateKeyToAccount } from "viem/accounts";
import { sandboxUSDAbi } from "../../contracts/artifacts/index.ts";
import type { Authorization, PocketTransfer } from "../../src/rails/pocket/pocket.ts";
import { unitsOf } from "../../src/chain/units.ts";
import type { OwnAnvil } from "../support/own-anvil.ts";
import { mined } from "../support/mined.ts";
import { type Instance, randomAddress, type Scene } from "../chain/support.ts";

export const CENT = 10_000n;

/** Waits of `fund` in these tests, long enough for a busy machine. */
export const FUND_MS = 20_000;

export const nowSeconds = (): number => Math.floor(Date.now() / 1_000);

export const newTransfer = (units: bigint, change: Partial<PocketTransfer> = {}): PocketTransfer => ({
  to: randomAddress(),
  units,
  validAfter: 0,
  validBefore: nowSeconds() + 120,
  nonce: toHex(randomBytes(32)),
  ...change,
});

/** Settles authorizations as a shop's facilitator does, with an account of its own. */
export interface Facilitator {
  settle(authorization: Authorization): Promise<"settled" | "reverted">;
  /** Takes from another's account what that has permitted. */
  pull(from: Address, units: bigint): Promise<"settled" | "reverted">;
  readonly address: Address;
}

export async function openFacilitator(
  scene: Scene,
  anvil: Pick<OwnAnvil, "call">,
  key = generatePrivateKey(),
) {
  const account = privateKeyToAccount(key);
  await anvil.call("anvil_setBalance", [account.address, numberToHex(10n ** 21n)]);
  const client = createWalletClient({ account, transport: http(scene.config.rpcUrl) });
  const send = async (data: `0x${string}`): Promise<"settled" | "reverted"> => {
    const hash: Hash = await client.sendTransaction({
      to: scene.config.token,
      data,
      chain: null,
      gas: 300_000n,
      maxFeePerGas: 200_000_000_000n,
    });
    return (await mined(scene.chain, hash)).status === "success" ? "settled" : "reverted";
  };
  return {
    address: account.address,
    settle({ from, nonce, signature, to, units, validAfter, validBefore }: Authorization) {
      const { r, s, yParity } = parseSignature(signature);
      const times = [BigInt(validAfter), BigInt(validBefore)] as const;
      const args = [from, to, units, ...times, nonce, 27 + yParity, r, s] as const;
      return send(
        encodeFunctionData({ abi: sandboxUSDAbi, functionName: "transferWithAuthorization", args }),
      );
    },
    pull(from: Address, units: bigint) {
      const args = [from, account.address, units] as const;
      return send(encodeFunctionData({ abi: erc20Abi, functionName: "transferFrom", args }));
    },
  };
}

/** The money of an address, in the token's units. */
export const unitsAt = (scene: Scene, address: Address): Promise<bigint> =>
  scene.chain.readContract({
    address: scene.config.token,
    abi: erc20Abi,
    functionName: "balanceOf",
    args: [address],
  });

export const centsAt = async (scene: Scene, address: Address): Promise<number> =>
  Number((await unitsAt(scene, address)) / unitsOf(1, scene.config.tokenDecimals));

export const pocketsOf = ({ wallets }: Instance) => wallets.pockets;
