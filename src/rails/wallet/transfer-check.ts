import type { ChainConfig } from "../../chain/config.ts";
import { GAS, spendGas, TRANSFER_GAS, transferData } from "../../chain/contracts.ts";
import type { ChainRpc, Simulated } from "../../chain/rpc.ts";
import { unitsOf } from "../../chain/units.ts";
import type { Attempt } from "./attempts.ts";
import { GAS_EXCEEDED, type RefusalReason, refusedByToken } from "./refusals.ts";

export type TransferCheck =
  /** Accepted, with the gas limit for `spend`. */
  | { readonly kind: "passes"; readonly gas: bigint }
  | { readonly kind: "refused"; readonly refusal: RefusalReason };

const USUAL: TransferCheck = { kind: "passes", gas: GAS.spend };

/** Answer of a token that has transferred nothing: false. */
const FALSE = /^0x0{64}$/;

/**
 * Tries an attempt's transfer on the token alone, from the wallet's address: that needs no deployed wallet, and no
 * limit applies. Usually one call. Throws if the chain does not answer.
 */
export async function checkTransfer(
  { config, rpc }: { readonly config: ChainConfig; readonly rpc: ChainRpc },
  { amountCents, to, wallet }: Attempt,
): Promise<TransferCheck> {
  const { token, tokenDecimals } = config;
  const units = unitsOf(amountCents, tokenDecimals);
  const transfer = { from: wallet.address, to: token, data: transferData(to, units) };
  if (passes(await rpc.simulate({ ...transfer, gas: TRANSFER_GAS }))) return USUAL;
  const another = transferData(to === wallet.owner ? wallet.spender : wallet.owner, units);
  // Sent in one tick, and so in one request: the node that refuses also states the balance.
  const [held, outcome, gas, toAnother] = await Promise.all([
    rpc.balanceAt(wallet.address, "latest"),
    rpc.simulate(transfer),
    rpc.estimateGas(transfer),
    rpc.simulate({ ...transfer, data: another }),
  ]);
  // The balance is checked when the payment is decided: money may be in flight.
  if (held < units) return USUAL;
  for (const each of [outcome, toAnother]) if (each.kind === "unclear") throw each.error;
  if (!passes(outcome)) {
    const text = outcome.kind === "reverts" ? outcome.text : "";
    return {
      kind: "refused",
      refusal: refusedByToken(passes(toAnother) ? "recipient" : "every transfer", text),
    };
  }
  const needed = gas === null ? GAS.spend : spendGas(gas);
  if (needed > GAS.spendMax) return { kind: "refused", refusal: GAS_EXCEEDED };
  return { kind: "passes", gas: needed > GAS.spend ? needed : GAS.spend };
}

const passes = (outcome: Simulated): boolean => outcome.kind === "passes" && !FALSE.test(outcome.data);
