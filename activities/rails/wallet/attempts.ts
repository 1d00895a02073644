import type { Address } from "viem";
import type { RailFailure } from "../../../src/domain/agent/payment.ts";
import type { ChainPlace, Signer } from "../../chain/config.ts";
import { deployWalletData, GAS, spendData } from "../../chain/contracts.ts";
import type { Finality } from "../../chain/finality.ts";
import type { ChainOutbox, Entry, Recorded } from "../../chain/outbox.ts";
import type { ChainRpc } from "../../chain/rpc.ts";
import { centsOf, unitsOf } from "../../chain/units.ts";
import { deployPurpose, firstLimitPurpose, type WalletLimits } from "./limits.ts";
import type { Wallet } from "./wallets.ts";

/** A transfer that is to be decided: by a signed transaction, or by a refusal. */
export interface Attempt {
  readonly transactionId: string;
  /** From 1; a further one comes only after the one before was mined and undone by the contract. */
  readonly number: number;
  readonly wallet: Wallet;
  readonly to: Address;
  readonly amountCents: number;
}

export const attemptsPrefix = (transactionId: string): string => `spend/${transactionId}/`;
export const attemptPurpose = ({
  number,
  transactionId,
}: Pick<Attempt, "number" | "transactionId">): string => `${attemptsPrefix(transactionId)}${String(number)}`;

export type RefusalReason = RailFailure & { readonly code: "INSUFFICIENT_FUNDS" | "RAIL_UNAVAILABLE" };

export const INSUFFICIENT_FUNDS: RefusalReason = {
  code: "INSUFFICIENT_FUNDS",
  reason: "The wallet does not hold enough for this payment.",
};
export const NO_WALLET: RefusalReason = {
  code: "RAIL_UNAVAILABLE",
  reason: "The agent has no wallet.",
};
export const DETACHED: RefusalReason = {
  code: "RAIL_UNAVAILABLE",
  reason: "The service can no longer spend from this wallet.",
};

export const refusalOf = (attempt: Attempt, refusal: RefusalReason): Entry => ({
  kind: "refusal",
  purpose: attemptPurpose(attempt),
  wallet: attempt.wallet.address,
  refusal,
});

export interface AttemptDependencies {
  readonly outbox: ChainOutbox;
  readonly place: ChainPlace;
  readonly rpc: ChainRpc;
  readonly signer: Signer;
  readonly limits: WalletLimits;
  readonly finality: Finality;
  readonly broadcast: (recorded: Iterable<Recorded>) => Promise<void>;
}

interface Waiting {
  readonly attempt: Attempt;
  readonly resolve: (recorded: Recorded) => void;
  readonly reject: (error: unknown) => void;
}

/** Attempts that are decided together at the most. */
const BATCH_MAX = 64;

/**
 * Decides first attempts: what arrives while one batch is under way goes together in the next. Each is held against what
 * its wallet has on chain, less what was recorded since and is not in the chain yet, and its decision recorded for good
 * before anything is sent. So a payment that was refused can never be sent by somebody who read the balance later.
 */
export class Attempts {
  readonly #dependencies: AttemptDependencies;
  /** Wallets whose deployment and first limit are recorded; those stay. */
  readonly #ready = new Set<Address>();
  #waiting: Waiting[] = [];
  #busy = false;

  constructor(dependencies: AttemptDependencies) {
    this.#dependencies = dependencies;
  }

  /** The decision on an attempt, sent if it is a transaction. Throws, having decided nothing, where the chain is silent. */
  decide(attempt: Attempt): Promise<Recorded> {
    return new Promise((resolve, reject) => {
      this.#waiting.push({ attempt, resolve, reject });
      if (!this.#busy) setImmediate(() => void this.#work());
      this.#busy = true;
    });
  }

  /** A wallet's deployment and first limit, as far as they are not recorded; a refusal where it was detached unused. */
  async preparation(wallet: Wallet): Promise<readonly Entry[] | RefusalReason> {
    if (this.#ready.has(wallet.address)) return [];
    const { limits, outbox } = this.#dependencies;
    const purposes = [deployPurpose(wallet), firstLimitPurpose(wallet)] as const;
    const recorded = await outbox.find(purposes);
    if (recorded.get(purposes[0])?.kind === "refusal") return DETACHED;
    const missing: Entry[] = [];
    if (!recorded.has(purposes[0])) missing.push(deployment(wallet));
    // Also when only the deployment is missing: what is there already keeps its place.
    if (!recorded.has(purposes[1])) missing.push(await limits.first(wallet));
    return missing;
  }

  /** Once for each wallet and process: its policy may have changed while it was being deployed. */
  async #prepared(wallet: Wallet): Promise<void> {
    if (this.#ready.has(wallet.address)) return;
    await this.#dependencies.limits.converge(wallet);
    this.#ready.add(wallet.address);
  }

  async #work(): Promise<void> {
    while (this.#waiting.length > 0) {
      const batch = this.#waiting.splice(0, BATCH_MAX);
      try {
        const decided = await this.#decide(batch.map(({ attempt }) => attempt));
        for (const { attempt, resolve } of batch) resolve(given(decided, attempt));
      } catch (error) {
        for (const { reject } of batch) reject(error);
      }
    }
    this.#busy = false;
  }

  async #decide(attempts: readonly Attempt[]): Promise<ReadonlyMap<string, Recorded>> {
    const { broadcast, outbox } = this.#dependencies;
    const before = await outbox.find(attempts.map(attemptPurpose));
    const open = attempts.filter((attempt) => !before.has(attemptPurpose(attempt)));
    if (open.length === 0) return before;
    const wallets = new Map(open.map(({ wallet }) => [wallet.address, wallet]));
    const [available, preparations] = await Promise.all([
      this.#enoughFor(open),
      Promise.all(
        [...wallets.values()].map(async (wallet) => [wallet, await this.preparation(wallet)] as const),
      ),
    ]);
    const recorded = await outbox.record(this.#entries(open, available, preparations));
    await broadcast(recorded.values());
    await Promise.all([...wallets.values()].map((wallet) => this.#prepared(wallet)));
    return new Map([...before, ...recorded]);
  }

  #entries(
    attempts: readonly Attempt[],
    available: Map<Address, number>,
    preparations: readonly (readonly [Wallet, readonly Entry[] | RefusalReason])[],
  ): Entry[] {
    const entries: Entry[] = [];
    const detached = new Set<Address>();
    for (const [{ address }, preparation] of preparations) {
      if ("code" in preparation) detached.add(address);
      else entries.push(...preparation);
    }
    for (const attempt of attempts) {
      const { amountCents, wallet } = attempt;
      const left = available.get(wallet.address) ?? 0;
      if (detached.has(wallet.address)) entries.push(refusalOf(attempt, DETACHED));
      else if (amountCents > left) entries.push(refusalOf(attempt, INSUFFICIENT_FUNDS));
      else {
        available.set(wallet.address, left - amountCents);
        entries.push(this.spend(attempt));
      }
    }
    return entries;
  }

  spend(attempt: Attempt): Entry {
    const { token, tokenDecimals } = this.#dependencies.place;
    const { amountCents, to, transactionId, wallet } = attempt;
    return {
      kind: "call",
      purpose: attemptPurpose(attempt),
      wallet: wallet.address,
      to: wallet.address,
      data: spendData({ transactionId, token, to, units: unitsOf(amountCents, tokenDecimals) }),
      gas: GAS.spend,
      amountCents,
    };
  }

  /**
   * What each wallet can pay. A first look counts everything that was recorded since this process last saw the chain's
   * nonce: never too little. Only where that is too much for some payment, what is in the chain by now is told apart.
   */
  async #enoughFor(attempts: readonly Attempt[]): Promise<Map<Address, number>> {
    const { finality, rpc, signer } = this.#dependencies;
    await rpc.check();
    const wanted = new Map<Address, number>();
    for (const { amountCents, wallet } of attempts) {
      wanted.set(wallet.address, (wanted.get(wallet.address) ?? 0) + amountCents);
    }
    const wallets = [...wanted.keys()];
    const least = await this.#available(wallets, finality.confirmedNonce, "latest");
    if (wallets.every((wallet) => (wanted.get(wallet) ?? 0) <= (least.get(wallet) ?? 0))) return least;
    const { blockNumber } = await rpc.head();
    return this.#available(wallets, await rpc.nonceAt(signer.address, blockNumber), blockNumber);
  }

  /** What each wallet holds at a block, less what is recorded from a nonce on. */
  async #available(
    wallets: readonly Address[],
    nonce: number,
    block: bigint | "latest",
  ): Promise<Map<Address, number>> {
    const { outbox, place, rpc } = this.#dependencies;
    const balanceOf = async (wallet: Address) => [wallet, await rpc.balanceAt(wallet, block)] as const;
    const [balances, taken] = await Promise.all([
      Promise.all(wallets.map(balanceOf)),
      outbox.takenFrom(wallets, nonce),
    ]);
    const left = ([wallet, units]: readonly [Address, bigint]) =>
      [wallet, centsOf(units, place.tokenDecimals) - (taken.get(wallet) ?? 0)] as const;
    return new Map(balances.map(left));
  }
}

function deployment(wallet: Wallet): Entry {
  return {
    kind: "call",
    purpose: deployPurpose(wallet),
    wallet: wallet.address,
    to: wallet.factory,
    data: deployWalletData(wallet),
    gas: GAS.deployWallet,
  };
}

function given(decided: ReadonlyMap<string, Recorded>, attempt: Attempt): Recorded {
  const recorded = decided.get(attemptPurpose(attempt));
  if (recorded === undefined) throw new Error(`attempt ${attemptPurpose(attempt)} was not decided`);
  return recorded;
}
