import type { Hash, Hex } from "viem";
import { keccak256 } from "viem";
import type { OwnAnvil } from "../support/own-anvil.ts";
import type { Scene } from "./support.ts";

const GWEI = 10n ** 9n;

/** What an operator sends to be rid of a transaction: nothing, to oneself, for more than any other sender offers. */
const CANCELLING = { data: "0x", gas: 21_000n, maxFeePerGas: 900n * GWEI } as const;

/**
 * A transaction of the service's key that the service knows nothing of, under a nonce; the chain's pool takes it instead of
 * what it had there. Answers its hash.
 */
export async function cancel(scene: Scene, anvil: OwnAnvil, nonce: number): Promise<Hash> {
  const { config, signer } = scene;
  const fees = { ...CANCELLING, maxPriorityFeePerGas: 20n * GWEI };
  const raw: Hex = await signer.sign({ chainId: config.chainId, nonce, to: signer.address, ...fees });
  await anvil.call("eth_sendRawTransaction", [raw]);
  return keccak256(raw);
}
