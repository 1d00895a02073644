import { concatBytes, type Hex, keccak256, maxUint256, parseSignature, stringToBytes } from "viem";
import type { Address } from "viem";
import type { PocketKeys } from "./pocket-keys.ts";
import type { PocketTransfer } from "./pocket.ts";
import type { TokenDomain } from "./token-domain.ts";

const TRANSFER = [
  { name: "from", type: "address" },
  { name: "to", type: "address" },
  { name: "value", type: "uint256" },
  { name: "validAfter", type: "uint256" },
  { name: "validBefore", type: "uint256" },
  { name: "nonce", type: "bytes32" },
] as const;

const PERMIT = [
  { name: "owner", type: "address" },
  { name: "spender", type: "address" },
  { name: "value", type: "uint256" },
  { name: "nonce", type: "uint256" },
  { name: "deadline", type: "uint256" },
] as const;

/** First byte of what a nonce of the service is the hash of. UTF-8 has no such byte. */
const NOT_TEXT = Uint8Array.of(0xff);

/** Returns the nonce for a purpose. It differs from the nonces of shops, which are hashes of texts. */
export const nonceFor = (purpose: string): Hex => keccak256(concatBytes([NOT_TEXT, stringToBytes(purpose)]));

/** Signs a pocket's transfer (EIP-3009). Deterministic. */
export function signTransfer(
  keys: PocketKeys,
  agentId: string,
  domain: TokenDomain,
  { nonce, to, units, validAfter, validBefore }: PocketTransfer,
): Promise<Hex> {
  const account = keys.accountOf(agentId);
  return account.signTypedData({
    domain,
    types: { TransferWithAuthorization: TRANSFER },
    primaryType: "TransferWithAuthorization",
    message: {
      from: account.address,
      to,
      value: units,
      validAfter: BigInt(validAfter),
      validBefore: BigInt(validBefore),
      nonce,
    },
  });
}

/** Without expiry: the permit and the transfer back to the wallet are valid for the pocket's lifetime. */
const FOREVER = maxUint256;

/** Signs permission for `spender` to take all of the pocket's money at any time (EIP-2612), as `permit` takes it. */
export async function signPermit(keys: PocketKeys, agentId: string, domain: TokenDomain, spender: Address) {
  const account = keys.accountOf(agentId);
  const signature = await account.signTypedData({
    domain,
    types: { Permit: PERMIT },
    primaryType: "Permit",
    message: { owner: account.address, spender, value: maxUint256, nonce: 0n, deadline: FOREVER },
  });
  return [account.address, spender, maxUint256, FOREVER, ...vrs(signature)] as const;
}

/**
 * Signs a transfer of the pocket's money to its wallet. Returns the arguments of the token's
 * `transferWithAuthorization`. The nonce is derived from `purpose`.
 */
export async function signSweep(
  keys: PocketKeys,
  agentId: string,
  domain: TokenDomain,
  { purpose, to, units }: { readonly purpose: string; readonly to: Address; readonly units: bigint },
) {
  const account = keys.accountOf(agentId);
  const nonce = nonceFor(purpose);
  const message = { from: account.address, to, value: units, validAfter: 0n, validBefore: FOREVER, nonce };
  const signature = await account.signTypedData({
    domain,
    types: { TransferWithAuthorization: TRANSFER },
    primaryType: "TransferWithAuthorization",
    message,
  });
  return [account.address, to, units, 0n, FOREVER, nonce, ...vrs(signature)] as const;
}

function vrs(signature: Hex): readonly [v: number, r: Hex, s: Hex] {
  const { r, s, yParity } = parseSignature(signature);
  return [27 + yParity, r, s];
}
