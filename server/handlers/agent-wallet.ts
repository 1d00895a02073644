import { WALLET_RAIL } from "../../src/domain/ledger/payment.ts";
import { TimeoutError, withTimeout } from "../../src/lib/with-timeout.ts";
import { ok } from "../../src/domain/result.ts";
import { walletView } from "../../src/views/views.ts";
import { profileOf } from "../../src/store/documents.ts";
import type { HandlerDependencies } from "./dependencies.ts";
import type { Handlers } from "./types.ts";

/** Timeout for the chain's balance. After that the balance is shown as unavailable. */
const BALANCE_TIMEOUT_MS = 2_000;

export function agentWalletHandlers({ rails }: HandlerDependencies): Pick<Handlers, "getAgentWallet"> {
  return {
    async getAgentWallet(_input, { target }) {
      const wallet = walletView(target);
      if (wallet === null) return ok({ body: { wallet } });
      const balance = await readable(
        withTimeout(BALANCE_TIMEOUT_MS, rails[WALLET_RAIL].balance(profileOf(target))),
      );
      const [balanceCents, pocketCents] =
        balance?.kind === "cents" ? [balance.cents, balance.pocketCents] : [null, null];
      return ok({ body: { wallet: { ...wallet, balanceCents, pocketCents, currency: "USD" } } });
    },
  };
}

async function readable<T>(work: Promise<T>): Promise<T | null> {
  try {
    return await work;
  } catch (error) {
    if (error instanceof TimeoutError) return null;
    throw error;
  }
}
