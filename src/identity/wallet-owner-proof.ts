import { type Address, getAddress, type Hex, verifyMessage } from "viem";
import type { ChainRpc } from "../chain/rpc.ts";

/**
 * Returns the message that the owner of wallets signs (EIP-191) to prove that the key is the organization's own. The
 * wording never changes.
 */
export const ownerChallenge = (organizationId: string, owner: string, chainCaip2: string): string =>
  `The key of ${getAddress(owner)} is ours. It shall own the wallets of organization ${organizationId} on ${chainCaip2}.`;

/**
 * Whether the owner has signed the challenge, by a key or as a contract that is queried on the chain (EIP-1271). Throws
 * if the chain has to be queried and does not answer.
 */
export async function isSignedByOwner(
  rpc: Pick<ChainRpc, "answer" | "client" | "hasCode">,
  owner: Address,
  challenge: string,
  signature: Hex,
): Promise<boolean> {
  const signed = { address: owner, message: challenge, signature };
  if (await verifyMessage(signed).catch(() => false)) return true;
  return (await rpc.hasCode(owner)) && rpc.answer(rpc.client.verifyMessage(signed));
}
