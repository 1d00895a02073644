import type { Hex } from "viem";
import { privateKeyToAccount } from "viem/accounts";
import type { Signer } from "./config.ts";

/** Returns a signer whose key is in this process's memory. Only its address can be read. */
export function localSigner(privateKey: Hex): Signer {
  const account = privateKeyToAccount(privateKey);
  return {
    address: account.address,
    sign: (transaction) => account.signTransaction({ ...transaction, type: "eip1559" }),
  };
}
