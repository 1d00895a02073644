import { type Address, BaseError, ContractFunctionRevertedError } from "viem";
import type { ChainConfig, Signer } from "../../chain/config.ts";
import { agentWalletAbi, spendArguments } from "../../chain/contracts.ts";
import { type ChainRpc, ChainUnreachable } from "../../chain/rpc.ts";
import { centsOf, unitsOf } from "../../chain/units.ts";
import { type Attempt, DETACHED, INSUFFICIENT_FUNDS, type RefusalReason } from "./attempts.ts";

/** What is to be done about an attempt that its contract undid. */
export type Remedy =
  /** Whatever was in its way is gone. */
  | { readonly kind: "again" }
  /** The wallet's limit is below what the policy had allowed when it decided. */
  | { readonly kind: "raise" }
  | { readonly kind: "refuse"; readonly refusal: RefusalReason };

const CEILING: RefusalReason = {
  code: "RAIL_UNAVAILABLE",
  reason: "The wallet's owner allows the service no payment of this amount now.",
};
export const NOT_THERE: RefusalReason = {
  code: "RAIL_UNAVAILABLE",
  reason: "The wallet is not on the chain.",
};
const REFUSED_BY_TOKEN: RefusalReason = {
  code: "RAIL_UNAVAILABLE",
  reason: "The chain refused the transfer.",
};

/**
 * The wallet has paid under this payment's id, and by no transaction that counts now: the database has lost its record, or
 * the wallet's owner had a spender of their own, or a reorganization goes on. Neither paid nor failed would be known to
 * be true, so the payment stays pending, and an operator sees this.
 */
export class PaidUnrecorded extends Error {
  override readonly name = "PaidUnrecorded";

  constructor(transactionId: string) {
    super(`the wallet says that ${transactionId} was paid, by no transaction of ours that is in the chain`);
  }
}

export interface DiagnosisDependencies {
  readonly config: ChainConfig;
  readonly rpc: ChainRpc;
  readonly signer: Signer;
}

/** Asks the chain, without an effect, what it would say to the same transfer now. Throws where it does not answer. */
export async function diagnose(deps: DiagnosisDependencies, attempt: Attempt): Promise<Remedy> {
  const { config, rpc } = deps;
  const { amountCents, wallet } = attempt;
  const error = await revertOf(deps, attempt);
  // It would succeed where no contract is: then this wallet's deployment, which came before, has failed for good.
  if (error === null && !(await rpc.hasCode(wallet.address))) return { kind: "refuse", refusal: NOT_THERE };
  if (error === null) return { kind: "again" };
  if (error === "LimitExceeded") return { kind: "raise" };
  if (error === "CeilingExceeded") return { kind: "refuse", refusal: CEILING };
  if (error === "NotSpender") return { kind: "refuse", refusal: DETACHED };
  if (error === "AlreadySpent") throw new PaidUnrecorded(attempt.transactionId);
  const held = centsOf(await rpc.balanceAt(wallet.address, "latest"), config.tokenDecimals);
  return { kind: "refuse", refusal: held < amountCents ? INSUFFICIENT_FUNDS : REFUSED_BY_TOKEN };
}

/** The name of the contract's error; "" for one that is not ours, such as the token's; null when it would succeed. */
async function revertOf(
  { config, rpc, signer }: DiagnosisDependencies,
  attempt: Attempt,
): Promise<string | null> {
  const { amountCents, to, transactionId, wallet } = attempt;
  const { token, tokenDecimals } = config;
  const spend = { transactionId, token, to, units: unitsOf(amountCents, tokenDecimals) };
  const simulated = rpc.client
    .simulateContract({
      account: signer.address,
      address: wallet.address,
      abi: agentWalletAbi,
      functionName: "spend",
      args: spendArguments(spend),
    })
    .then(
      () => null,
      (error: unknown) => {
        const reverted =
          error instanceof BaseError
            ? error.walk((each) => each instanceof ContractFunctionRevertedError)
            : null;
        if (reverted instanceof ContractFunctionRevertedError) return reverted.data?.errorName ?? "";
        throw new ChainUnreachable("the chain did not respond to why it reverted a transfer");
      },
    );
  return rpc.answer(simulated);
}

/** What counts against the wallet's limit as of now. */
export async function spentCents({ config, rpc }: DiagnosisDependencies, wallet: Address): Promise<number> {
  const read = { address: wallet, abi: agentWalletAbi, functionName: "limitOf" } as const;
  const [, , spent] = await rpc.answer(rpc.client.readContract({ ...read, args: [config.token] }));
  return centsOf(spent, config.tokenDecimals);
}
