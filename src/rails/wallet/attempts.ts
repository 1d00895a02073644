import { LRUCache } from "lru-cache";
import type { Address } from "viem";
import type { ChainConfig, Signer } from "../../chain/config.ts";
import { deployWalletData, GAS, spendData } from "../../chain/contracts.ts";
import type { Finality } from "../../chain/finality.ts";
import type { Call, ChainOutbox, Entry, Moved, Recorded, Refused } from "../../chain/outbox.ts";
import { type ChainRpc, ChainUnreachable } from "../../chain/rpc.ts";
import { centsOf, unitsOf } from "../../chain/units.ts";
import { FairQueue } from "../../lib/fair-queue.ts";
import { deployPurpose, firstLimitPurpose, type WalletLimits } from "./limits.ts";
import { checkTransfer, type TransferCheck } from "./transfer-check.ts";
import { DETACHED, INSUFFICIENT_FUNDS, type RefusalReason, type WITHHELD } from "./refusals.ts";
import type { Wallet } from "./wallets.ts";

/** A transfer to be decided, by a signed transaction or by a refusal. */
export interface Attempt {
  readonly transactionId: string;
  /** Number of the attempt, from 1. A further attempt follows only a reverted one. */
  readonly number: number;
  readonly wallet: Wallet;
  readonly to: Address;
  readonly amountCents: number;
  /** Whether the wallet's on-chain limit refuses the transfer. Otherwise the limit is raised for it. */
  readonly keepsLimit: boolean;
}

export const attemptsPrefix = (transactionId: string): string => `spend/${transactionId}/`;
export const attemptPurpose = ({
  number,
  transactionId,
}: Pick<Attempt, "number" | "transactionId">): string => `${attemptsPrefix(transactionId)}${String(number)}`;

/** The payment that a recorded transaction was an attempt at; null: it was none. */
export const paymentOfAttempt = (recordId: string): string | null =>
  /^[^/]+\/spend\/(txn_[^/]+)\/\d+$/.exec(recordId)?.[1] ?? null;

export const refusalOf = (attempt: Attempt, refusal: RefusalReason | typeof WITHHELD): Refused => ({
  kind: "refusal",
  purpose: attemptPurpose(attempt),
  wallet: attempt.wallet.address,
  refusal,
});

export interface AttemptDependencies {
  readonly outbox: ChainOutbox;
  readonly config: ChainConfig;
  readonly rpc: ChainRpc;
  readonly signer: Signer;
  readonly limits: WalletLimits;
  readonly finality: Finality;
  readonly broadcast: (recorded: Iterable<Recorded>) => Promise<void>;
}

interface PermittedAttempt extends Attempt {
  readonly permit: number;
}

interface CheckedAttempt extends PermittedAttempt {
  readonly check: TransferCheck;
}

interface Waiting {
  readonly attempt: CheckedAttempt;
  readonly resolve: (recorded: Recorded | "fenced") => void;
  readonly reject: (error: unknown) => void;
}

/** Maximum cached wallets and factories; the least recently used are evicted. */
const READY_MAX = 100_000;
const FACTORIES_MAX = 100;

const BATCH_MAX = 64;

/**
 * Decides first attempts in batches: attempts that arrive during one batch form the next. Each attempt is tried on the
 * token and checked against its wallet's balance on chain, less recorded amounts that are not in the chain yet. The
 * decision is recorded for good before anything is sent, so a process that reads the balance later can never send a
 * refused payment.
 */
export class Attempts {
  readonly #dependencies: AttemptDependencies;
  /** Wallets with recorded deployment and first limit, which stay. For other wallets the records are read. */
  readonly #ready = new LRUCache<Address, true>({ max: READY_MAX });
  /** Factories that were seen on the chain, where they stay. */
  readonly #factories = new LRUCache<Address, true>({ max: FACTORIES_MAX });
  /** Organizations take turns: they share the nonces of one key. */
  readonly #waiting = new FairQueue<Waiting>(() => "none");
  #busy = false;

  constructor(dependencies: AttemptDependencies) {
    this.#dependencies = dependencies;
  }

  /**
   * Returns the decision on an attempt, broadcast if it is a transaction. Nothing is decided if the result is `fenced`,
   * or if the chain does not answer, in which case the call throws.
   */
  async decide(attempt: PermittedAttempt): Promise<Recorded | "fenced"> {
    await this.#factoryIsThere(attempt.wallet);
    // Checked per payment, so that an unanswered check does not delay the others.
    const check = await checkTransfer(this.#dependencies, attempt);
    return new Promise((resolve, reject) => {
      const checked = { ...attempt, check };
      this.#waiting.add(attempt.wallet.organizationId, { attempt: checked, resolve, reject });
      if (!this.#busy) setImmediate(() => void this.#work());
      this.#busy = true;
    });
  }

  /**
   * Throws unless the factory is on the chain. A deployment sent to an address without a factory succeeds, deploys
   * nothing and is recorded for good, so the wallet would never exist. Checked per payment rather than per batch, so
   * that payments of other wallets do not wait.
   */
  async #factoryIsThere({ factory }: Wallet): Promise<void> {
    if (this.#factories.has(factory)) return;
    const { rpc } = this.#dependencies;
    await rpc.check();
    if (!(await rpc.hasCode(factory))) {
      throw new ChainUnreachable(`the wallets' factory is not on the chain: ${factory}`);
    }
    this.#factories.set(factory, true);
  }

  /** Returns the decisions on a wallet's deployment and first limit, and the entries not recorded yet. */
  async #missing(wallet: Wallet) {
    const nothing = { known: new Map<string, Recorded>(), missing: [] };
    if (this.#ready.has(wallet.address)) return nothing;
    const { limits, outbox } = this.#dependencies;
    const purposes = [deployPurpose(wallet), firstLimitPurpose(wallet)] as const;
    const known = await outbox.find(purposes);
    if (isGivenUp(wallet, known)) return { known, missing: [] };
    const missing: Entry[] = [];
    if (!known.has(purposes[0])) missing.push(deployment(wallet));
    if (!known.has(purposes[1])) missing.push(await limits.first(wallet));
    return { known, missing };
  }

  /** Forces a check of the wallet's on-chain limit before its next payment. */
  recheckLimit({ address }: Wallet): void {
    this.#ready.delete(address);
  }

  /** Sets the wallet's limit, once per wallet and process: the policy may have changed during the deployment. */
  async #prepared(wallet: Wallet): Promise<void> {
    if (this.#ready.has(wallet.address)) return;
    await this.#dependencies.limits.converge(wallet);
    this.#ready.set(wallet.address, true);
  }

  /** Returns a full batch if enough attempts wait: organizations take turns until there is no more room. */
  #nextBatch(): Waiting[] {
    const batch: Waiting[] = [];
    let taken: Waiting[];
    do {
      let room = BATCH_MAX - batch.length;
      taken = this.#waiting.take(() => room-- > 0);
      batch.push(...taken);
    } while (taken.length > 0);
    return batch;
  }

  async #work(): Promise<void> {
    while (this.#waiting.size > 0) {
      const batch = this.#nextBatch();
      try {
        const decided = await this.#decide(batch.map(({ attempt }) => attempt));
        for (const { attempt, resolve } of batch) resolve(decided.get(attemptPurpose(attempt)) ?? "fenced");
      } catch (error) {
        for (const { reject } of batch) reject(error);
      }
    }
    this.#busy = false;
  }

  /**
   * Decides a batch. A payment decided earlier keeps that decision, at the latest in `record`; earlier decisions are
   * read first only if the wallets may not cover all payments.
   */
  async #decide(attempts: readonly CheckedAttempt[]): Promise<ReadonlyMap<string, Recorded>> {
    // An attempt requested twice concurrently counts once.
    const requested = new Map(attempts.map((attempt) => [attemptPurpose(attempt), attempt]));
    const least = await this.#leastFor([...requested.values()]);
    if (least !== null) return this.#decideWith([...requested.values()], least);
    const before = await this.#dependencies.outbox.find([...requested.keys()]);
    const open = [...requested].filter(([purpose]) => !before.has(purpose)).map(([, attempt]) => attempt);
    if (open.length === 0) return before;
    return new Map([...before, ...(await this.#decideWith(open, await this.#exactlyFor(open)))]);
  }

  async #decideWith(attempts: readonly CheckedAttempt[], available: Map<Address, number>) {
    const { broadcast, limits, outbox } = this.#dependencies;
    const wallets = new Map(attempts.map(({ wallet }) => [wallet.address, wallet]));
    // Nothing is sent for a wallet that makes none of these payments.
    const isPaying = ({ address }: Wallet): boolean =>
      attempts.some(
        ({ amountCents, check, wallet }) =>
          wallet.address === address &&
          check.kind === "passes" &&
          amountCents <= (available.get(address) ?? 0),
      );
    const paying = [...wallets.values()].filter(isPaying);
    const [prepared] = await Promise.all([
      this.#prepare([...wallets.values()], new Set(paying)),
      limits.beforePayments(paying),
    ]);
    const recorded = await outbox.record(this.#entries(attempts, available, prepared));
    await broadcast([...prepared.values(), ...recorded.values()]);
    const usable = paying.filter((wallet) => !isGivenUp(wallet, prepared));
    await Promise.all(usable.map((wallet) => this.#prepared(wallet)));
    return recorded;
  }

  /**
   * Records the deployment and first limit of the paying wallets, and returns the decisions. Runs before the payments:
   * a wallet may be given up concurrently, and a call to an address without a contract would succeed and pay nothing.
   */
  async #prepare(
    wallets: readonly Wallet[],
    paying: ReadonlySet<Wallet>,
  ): Promise<ReadonlyMap<string, Recorded>> {
    const found = await Promise.all(
      wallets.map(async (wallet) => {
        const { known, missing } = await this.#missing(wallet);
        return { known, missing: paying.has(wallet) ? missing : [] };
      }),
    );
    const { outbox } = this.#dependencies;
    const recorded = await outbox.record(found.flatMap(({ missing }) => missing));
    return new Map([...found.flatMap(({ known }) => [...known]), ...recorded]);
  }

  #entries(
    attempts: readonly CheckedAttempt[],
    available: Map<Address, number>,
    prepared: ReadonlyMap<string, Recorded>,
  ): Entry[] {
    const entries: Entry[] = [];
    for (const attempt of attempts) {
      const { amountCents, check, wallet } = attempt;
      const left = available.get(wallet.address) ?? 0;
      if (isGivenUp(wallet, prepared)) entries.push(refusalOf(attempt, DETACHED));
      else if (check.kind === "refused") entries.push(refusalOf(attempt, check.refusal));
      else if (amountCents > left) entries.push(refusalOf(attempt, INSUFFICIENT_FUNDS));
      else {
        available.set(wallet.address, left - amountCents);
        entries.push(this.spend(attempt, attempt.permit, check.gas));
      }
    }
    return entries;
  }

  /**
   * Returns the transfer, which is recorded only if no fence keeps it out. Once recorded, it may be mined at any time.
   */
  spend(attempt: Attempt, permit: number, gas: bigint): Call {
    const { token, tokenDecimals } = this.#dependencies.config;
    const { amountCents, to, transactionId, wallet } = attempt;
    return {
      kind: "call",
      purpose: attemptPurpose(attempt),
      wallet: wallet.address,
      to: wallet.address,
      data: spendData({ transactionId, token, to, units: unitsOf(amountCents, tokenDecimals) }),
      gas,
      amountCents,
      permit,
    };
  }

  /**
   * Returns a lower bound of each wallet's balance: subtracts everything recorded since this process last read the
   * chain's nonce, and adds nothing. Null if that is too little for a payment.
   */
  async #leastFor(attempts: readonly Attempt[]): Promise<Map<Address, number> | null> {
    const { finality, outbox, rpc } = this.#dependencies;
    await rpc.check();
    const wanted = new Map<Address, number>();
    for (const { amountCents, wallet } of attempts) {
      wanted.set(wallet.address, (wanted.get(wallet.address) ?? 0) + amountCents);
    }
    const wallets = [...wanted.keys()];
    const [held, moved] = await Promise.all([
      this.#held(wallets, "latest"),
      outbox.movedBy(wallets, finality.confirmedNonce),
    ]);
    const least = sum(held, moved, ({ debitCents }) => -debitCents);
    const isEnough = wallets.every((wallet) => (wanted.get(wallet) ?? 0) <= (least.get(wallet) ?? 0));
    return isEnough ? least : null;
  }

  /**
   * Returns each wallet's balance as of one block. Transactions are ordered, so earlier income precedes this payment,
   * even while lost blocks are mined again.
   */
  async #exactlyFor(attempts: readonly Attempt[]): Promise<Map<Address, number>> {
    const { outbox, rpc, signer } = this.#dependencies;
    const wallets = [...new Set(attempts.map(({ wallet }) => wallet.address))];
    const { blockNumber } = await rpc.head();
    const mined = await rpc.nonceAt(signer.address, blockNumber);
    const [held, moved] = await Promise.all([
      this.#held(wallets, blockNumber),
      outbox.movedBy(wallets, mined),
    ]);
    return sum(held, moved, ({ creditCents, debitCents }) => creditCents - debitCents);
  }

  async #held(wallets: readonly Address[], block: bigint | "latest"): Promise<Map<Address, number>> {
    const { config, rpc } = this.#dependencies;
    const centsOfWallet = async (wallet: Address) =>
      [wallet, centsOf(await rpc.balanceAt(wallet, block), config.tokenDecimals)] as const;
    return new Map(await Promise.all(wallets.map(centsOfWallet)));
  }
}

function sum(
  held: ReadonlyMap<Address, number>,
  moved: ReadonlyMap<string, Moved>,
  changeOf: (moved: Moved) => number,
): Map<Address, number> {
  const after = ([wallet, cents]: readonly [Address, number]) => {
    const change = moved.get(wallet);
    return [wallet, cents + (change === undefined ? 0 : changeOf(change))] as const;
  };
  return new Map([...held].map(after));
}

/** Whether the service has decided never to deploy this wallet. */
const isGivenUp = (wallet: Wallet, decided: ReadonlyMap<string, Recorded>): boolean =>
  decided.get(deployPurpose(wallet))?.kind === "refusal";

function deployment(wallet: Wallet): Entry {
  return {
    kind: "call",
    purpose: deployPurpose(wallet),
    wallet: wallet.address,
    to: wallet.factory,
    data: deployWalletData(wallet),
    gas: GAS.deployWallet,
    isRepeated: true,
  };
}
