import { parseTransaction } from "viem";
import type { BudgetPolicy } from "../../domain/ledger/policy.ts";
import type { ChainConfig } from "../../chain/config.ts";
import { GAS, setLimitData } from "../../chain/contracts.ts";
import type { Call, ChainOutbox, Recorded } from "../../chain/outbox.ts";
import type { Finality } from "../../chain/finality.ts";
import { isTransaction, type RecordedTransaction } from "../../chain/outbox.ts";
import { unitsOf } from "../../chain/units.ts";
import type { Clock } from "../../payments/ports.ts";
import { KeyedMutex } from "../../lib/keyed-mutex.ts";
import type { AgentWallets, Wallet, TargetLimit } from "./wallets.ts";

/** Limits of one wallet that go by while one is being set, at the most. */
const ROUNDS_MAX = 20;

/** Time that a changed limit waits for further changes while no payment needs it. */
export const COALESCE_MS = 60_000;

/** Limits that one round sets though no payment needs them. */
const PER_ROUND = { ofOrganization: 20, inAll: 100 } as const;

/** As long as an attempt at a payment may take. */
const RAISING_WAIT_MS = 20_000;

/** The version of a limit that was raised for one payment: no policy's, so that it is set back. */
const RAISED = 0;

/** A wallet's limit as its contract has it, in the token's units. */
export interface LimitOnChain {
  readonly cap: bigint;
  readonly periodSeconds: bigint;
}

export interface LimitsDependencies {
  readonly outbox: ChainOutbox;
  readonly config: ChainConfig;
  readonly wallets: AgentWallets;
  readonly finality: Finality;
  readonly clock: Clock;
  /** Broadcasts recorded transactions. */
  readonly broadcast: (recorded: Iterable<Recorded>) => Promise<void>;
}

/**
 * Mirrors policies into their wallets' limits on the chain. The limits of a wallet are numbered, and a number is recorded
 * once, so they go on chain in one order, whichever process sets them; the last one is that of the newest policy.
 */
export class WalletLimits {
  readonly #dependencies: LimitsDependencies;
  readonly #raising = new KeyedMutex(RAISING_WAIT_MS);

  constructor(dependencies: LimitsDependencies) {
    this.#dependencies = dependencies;
  }

  /**
   * Notes an agent's policy as the one to mirror; a wallet that was never used gets it when it is deployed. Sends nothing: the limit
   * goes with the wallet's next payment, or once it is due, whichever comes first. May be repeated.
   */
  async mirror(agentId: string, policy: BudgetPolicy, policyVersion: number): Promise<void> {
    const { clock, wallets } = this.#dependencies;
    const wallet = await wallets.of(agentId);
    if (wallet === null) return;
    // First this, then the look whether it is deployed: a deployment looks the other way round, so one sees the other.
    await wallets.want(wallet, policy, policyVersion);
    if (await this.#isDeployed(wallet)) {
      await wallets.markDue(wallet, new Date(clock().getTime() + COALESCE_MS));
    }
  }

  /** Sets what payments of these wallets need first: limits that were changed and are not on the chain. */
  async beforePayments(wallets: readonly Wallet[]): Promise<void> {
    const marked = await this.#dependencies.wallets.markedOf(wallets);
    await Promise.all(marked.map((wallet) => this.converge(wallet)));
  }

  /** Sets limits that are due, so many of each organization, one after another: payments come between. */
  async setDue(stopping?: AbortSignal): Promise<void> {
    const { clock, wallets } = this.#dependencies;
    const now = clock();
    const postponedTo = new Date(now.getTime() + COALESCE_MS);
    for (const agentId of await wallets.takeDue(now, postponedTo, PER_ROUND)) {
      // The rest is postponed, and due again.
      if (stopping?.aborted === true) return;
      const wallet = await wallets.of(agentId);
      if (wallet !== null) await this.converge(wallet);
    }
  }

  async #isDeployed(wallet: Wallet): Promise<boolean> {
    const deployed = (await this.#dependencies.outbox.find([deployPurpose(wallet)])).get(
      deployPurpose(wallet),
    );
    return deployed !== undefined && isTransaction(deployed);
  }

  /** Sets limits until the last one is the newest that is wanted. */
  async converge(wallet: Wallet): Promise<void> {
    const { broadcast, outbox, wallets } = this.#dependencies;
    if (!(await this.#isDeployed(wallet))) return;
    for (let round = 0; round < ROUNDS_MAX; round += 1) {
      const { last, next, target } = await this.#limitsOf(wallet);
      const isSet = last !== undefined && isSame(last, next);
      // One more attempt at each occasion: it reverts while the service is not the spender.
      if (isSet && (round > 0 || !(await this.#isReverted(last)))) {
        return await wallets.unmark(wallet, target.policyVersion);
      }
      const recorded = await outbox.record([next]);
      await broadcast(recorded.values());
    }
    throw new Error(`the limits of wallet ${wallet.address} do not come to rest`);
  }

  /**
   * Sees to the limit of a wallet that has another one on the chain. False: it has the one that it is to have. A limit that is mined
   * may be without effect: its wallet was deployed only after it.
   */
  async enforce(wallet: Wallet, onChain: LimitOnChain): Promise<boolean> {
    const { broadcast, config, finality, outbox } = this.#dependencies;
    const { last, next } = await this.#limitsOf(wallet);
    if (setLimitData(config.token, onChain.cap, Number(onChain.periodSeconds)) === next.data) return false;
    const isNewest = last !== undefined && last.replacedBy === null && isSame(last, next);
    const isOnItsWay = isNewest && (await finality.now([last]))[0] === null;
    if (!isOnItsWay) await broadcast((await outbox.record([next])).values());
    return true;
  }

  /** The newest limit that was sent, and the one that is wanted. */
  async #limitsOf(wallet: Wallet) {
    const { outbox, wallets } = this.#dependencies;
    const set = await outbox.under(limitPrefix(wallet));
    const target = await wallets.targetLimit(wallet);
    return { last: set.findLast(isTransaction), next: this.#call(wallet, set.length + 1, target), target };
  }

  /** Whether it was replaced or reverted, as while the service is not the spender; then the previous limit holds. */
  async #isReverted(limit: RecordedTransaction): Promise<boolean> {
    if (limit.replacedBy !== null) return true;
    const [receipt] = await this.#dependencies.finality.now([limit]);
    return receipt?.succeeded === false;
  }

  /** Sees to a limit that was never set, since its transaction was found replaced. Any other replaced transaction is left alone. */
  async setAgainAfter({ purpose, wallet }: RecordedTransaction): Promise<void> {
    if (wallet === null || !purpose.startsWith(LIMITS)) return;
    const found = await this.#dependencies.wallets.at(wallet);
    if (found !== null) await this.converge(found);
  }

  /** The limit that a wallet is deployed with. */
  async first(wallet: Wallet): Promise<Call> {
    return this.#call(wallet, 1, await this.#dependencies.wallets.targetLimit(wallet));
  }

  /**
   * Records a payment right behind a limit under which it goes through, whatever the policy says by now; `converge` sets it back.
   * Neither, where the payment is fenced. The target is read after the current limits: a process that has set one of those
   * for a payment has recorded that payment by then.
   */
  raiseFor(
    wallet: Wallet,
    payment: Call,
    neededCents: () => Promise<number>,
  ): Promise<ReadonlyMap<string, Recorded>> {
    // Crowds of one process go one after another instead of against each other.
    return this.#raising.run(wallet.address, () => this.#raiseFor(wallet, payment, neededCents));
  }

  async #raiseFor(
    wallet: Wallet,
    payment: Call,
    neededCents: () => Promise<number>,
  ): Promise<ReadonlyMap<string, Recorded>> {
    const { outbox, wallets } = this.#dependencies;
    for (let round = 0; round < ROUNDS_MAX; round += 1) {
      const set = await outbox.under(limitPrefix(wallet));
      const target = await wallets.targetLimit(wallet);
      const capCents = Math.max(await neededCents(), target.capCents);
      if (await outbox.isFenced(payment)) return new Map();
      const raised = this.#call(wallet, set.length + 1, { ...target, capCents, policyVersion: RAISED });
      const recorded = await outbox.record([raised, payment], "behind the first");
      if (recorded.has(payment.purpose)) return recorded;
    }
    throw new Error(`the limit of wallet ${wallet.address} could not be raised`);
  }

  #call(wallet: Wallet, number: number, { capCents, periodSeconds, policyVersion }: TargetLimit): Call {
    const { pocketFloatCents, token, tokenDecimals } = this.#dependencies.config;
    // The pocket's change leaves the wallet before the policy counts it.
    const cap = unitsOf(capCents + pocketFloatCents, tokenDecimals);
    return {
      kind: "call",
      purpose: `${limitPrefix(wallet)}${String(number)}`,
      wallet: wallet.address,
      to: wallet.address,
      data: setLimitData(token, cap, periodSeconds),
      gas: GAS.setLimit,
      limitVersion: policyVersion,
    };
  }
}

/** Whether a limit that was sent is that of a call; a changed float makes it another one. */
const isSame = ({ limitVersion, raw }: RecordedTransaction, call: Call): boolean =>
  limitVersion === call.limitVersion && parseTransaction(raw).data === call.data;

const LIMITS = "limit/";
const limitPrefix = ({ address }: Wallet): string => `${LIMITS}${address}/`;
export const firstLimitPurpose = (wallet: Wallet): string => `${limitPrefix(wallet)}1`;
export const deployPurpose = ({ address }: Wallet): string => `deploy/${address}`;
