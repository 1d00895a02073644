import { type Address, BaseError, ContractFunctionRevertedError } from "viem";
import type { ChainConfig, Signer } from "../../chain/config.ts";
import { agentWalletAbi, spendArguments } from "../../chain/contracts.ts";
import { revertTextOf } from "../../chain/reverts.ts";
import type { ChainRpc } from "../../chain/rpc.ts";
import { centsOf, unitsOf } from "../../chain/units.ts";
import type { Attempt } from "./attempts.ts";
import type { LimitOnChain } from "./limits.ts";
import {
  CEILING,
  DETACHED,
  INSUFFICIENT_FUNDS,
  NOT_THERE,
  refusedByToken,
  type RefusalReason,
} from "./refusals.ts";
import { checkTransfer } from "./transfer-check.ts";

export type Remedy =
  /** The obstacle is gone; try again. */
  | { readonly kind: "again" }
  /** The wallet's limit is below the policy's at the time of the decision. */
  | { readonly kind: "raise" }
  | { readonly kind: "refuse"; readonly refusal: RefusalReason };

/**
 * The wallet has paid under this payment's id, but by no transaction that counts now. Either the database has lost its
 * record, or the wallet's owner had a spender of their own, or a reorganization is in progress. Neither "paid" nor
 * "failed" is known to be true, so the payment stays pending and an operator sees the error.
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

/** Simulates the same transfer on the chain now, without an effect. Throws if the chain does not answer. */
export async function diagnose(deps: DiagnosisDependencies, attempt: Attempt): Promise<Remedy> {
  const { config, rpc } = deps;
  const { amountCents, wallet } = attempt;
  const revert = await revertOf(deps, attempt);
  // A call to an address without code succeeds; the wallet's preceding deployment has then failed for good.
  if (revert === null && !(await rpc.hasCode(wallet.address))) return { kind: "refuse", refusal: NOT_THERE };
  if (revert === null) return { kind: "again" };
  if (revert.name === "LimitExceeded") return { kind: "raise" };
  if (revert.name === "CeilingExceeded") return { kind: "refuse", refusal: CEILING };
  if (revert.name === "NotSpender") return { kind: "refuse", refusal: DETACHED };
  if (revert.name === "AlreadySpent") throw new PaidUnrecorded(attempt.transactionId);
  const held = centsOf(await rpc.balanceAt(wallet.address, "latest"), config.tokenDecimals);
  if (held < amountCents) return { kind: "refuse", refusal: INSUFFICIENT_FUNDS };
  const check = await checkTransfer(deps, attempt);
  const refusal = check.kind === "refused" ? check.refusal : refusedByToken("every transfer", revert.text);
  return { kind: "refuse", refusal };
}

interface Revert {
  /** Name of the wallet's own error; empty for any other error, such as the token's. */
  readonly name: string;
  readonly text: string;
}

/** Null if the call would succeed. */
async function revertOf(
  { config, rpc, signer }: DiagnosisDependencies,
  attempt: Attempt,
): Promise<Revert | null> {
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
        if (!(reverted instanceof ContractFunctionRevertedError)) throw error;
        return { name: reverted.data?.errorName ?? "", text: reverted.reason ?? revertTextOf(error) ?? "" };
      },
    );
  return rpc.answer(simulated);
}

/** Returns the wallet's limit, and the amount that currently counts against it. */
export async function limitOnChain(
  { config, rpc }: DiagnosisDependencies,
  wallet: Address,
): Promise<{ readonly limit: LimitOnChain; readonly spentCents: number }> {
  const read = { address: wallet, abi: agentWalletAbi, functionName: "limitOf" } as const;
  const [cap, periodSeconds, spent] = await rpc.answer(
    rpc.client.readContract({ ...read, args: [config.token] }),
  );
  return { limit: { cap, periodSeconds }, spentCents: centsOf(spent, config.tokenDecimals) };
}
