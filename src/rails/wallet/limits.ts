import { parseTransaction } from "viem";
import type { BudgetPolicy } from "../../domain/ledger/policy.ts";
import type { ChainConfig } from "../../chain/config.ts";
import { GAS, setLimitData } from "../../chain/contracts.ts";
import type { Call, ChainOutbox, Recorded } from "../../chain/outbox.ts";
import type { Finality } from "../../chain/finality.ts";
import { isTransaction, type RecordedTransaction } from "../../chain/outbox.ts";
import { unitsOf } from "../../chain/units.ts";
import type { ChainWatchers } from "../../chain/repairs.ts";
import type { Clock } from "../../payments/ports.ts";
import { KeyedMutex } from "../../lib/keyed-mutex.ts";
import type { AgentWallets, Wallet, TargetLimit } from "./wallets.ts";

/** Maximum rounds of setting one wallet's limit while it keeps changing. */
const ROUNDS_MAX = 20;

/** Delay of a changed limit that no payment needs, so that further changes are merged into it. */
export const COALESCE_MS = 60_000;

/** Maximum limits that one round sets although no payment needs them. */
const PER_ROUND = { ofOrganization: 20, inAll: 100 } as const;

/** Matches the maximum duration of a payment's attempt. */
const RAISING_WAIT_MS = 20_000;

/** Version of a limit raised for one payment: no policy has this version, so the limit is set back. */
const RAISED = 0;

/** A wallet's limit as stored in its contract, in the token's units. */
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
  readonly broadcast: (recorded: Iterable<Recorded>) => Promise<void>;
  readonly onWarning: ChainWatchers["onWarning"];
}

/**
 * Mirrors policies into wallets' limits on the chain. A wallet's limits are numbered and each number is recorded once,
 * so the limits go on chain in one order, whichever process sets them. The last one is the newest policy's.
 */
export class WalletLimits {
  readonly #dependencies: LimitsDependencies;
  readonly #raising = new KeyedMutex(RAISING_WAIT_MS);

  constructor(dependencies: LimitsDependencies) {
    this.#dependencies = dependencies;
  }

  /**
   * Notes an agent's policy as the one to mirror; an unused wallet gets the limit with its deployment. Sends nothing:
   * the limit goes on chain with the wallet's next payment or once due, whichever comes first. Repeatable.
   */
  async mirror(agentId: string, policy: BudgetPolicy, policyVersion: number): Promise<void> {
    const { clock, wallets } = this.#dependencies;
    const wallet = await wallets.of(agentId);
    if (wallet === null) return;
    // Written before the check for a deployment. A deployment checks in the opposite order, so one of the two sees the
    // other.
    await wallets.want(wallet, policy, policyVersion);
    if (await this.#isDeployed(wallet)) {
      await wallets.markDue(wallet, new Date(clock().getTime() + COALESCE_MS));
    }
  }

  /** Sets the changed limits that payments of these wallets need on the chain first. */
  async beforePayments(wallets: readonly Wallet[]): Promise<void> {
    const marked = await this.#dependencies.wallets.markedOf(wallets);
    await Promise.all(marked.map((wallet) => this.converge(wallet)));
  }

  /**
   * Sets due limits one after another, a bounded number per organization, so that payments can go in between. One that
   * can't be set is due again, and holds no other up.
   */
  async setDue(stopping?: AbortSignal): Promise<void> {
    const { clock, onWarning, wallets } = this.#dependencies;
    const now = clock();
    const postponedTo = new Date(now.getTime() + COALESCE_MS);
    for (const agentId of await wallets.takeDue(now, postponedTo, PER_ROUND)) {
      // The remaining limits are postponed, and become due again.
      if (stopping?.aborted === true) return;
      try {
        const wallet = await wallets.of(agentId);
        if (wallet !== null) await this.converge(wallet);
      } catch (error) {
        const said = error instanceof Error ? error.message : "";
        onWarning("a wallet's limit could not be set", { agentId, error: said });
      }
    }
  }

  async #isDeployed(wallet: Wallet): Promise<boolean> {
    const deployed = (await this.#dependencies.outbox.find([deployPurpose(wallet)])).get(
      deployPurpose(wallet),
    );
    return deployed !== undefined && deployed.kind !== "refusal";
  }

  /** Sets limits until the last one is the newest wanted. */
  async converge(wallet: Wallet): Promise<void> {
    const { broadcast, outbox, wallets } = this.#dependencies;
    if (!(await this.#isDeployed(wallet))) return;
    for (let round = 0; round < ROUNDS_MAX; round += 1) {
      const { last, next, target } = await this.#limitsOf(wallet);
      const isSet = last !== undefined && isSame(last, next);
      // One retry per call: the limit reverts while the service is not the spender.
      if (isSet && (round > 0 || !(await this.#isReverted(last)))) {
        return await wallets.unmark(wallet, target.policyVersion);
      }
      const recorded = await outbox.record([next]);
      await broadcast(recorded.values());
    }
    throw new Error(`the limits of wallet ${wallet.address} do not converge`);
  }

  /**
   * Sets the wallet's limit again if it differs on the chain. False if the chain has the wanted limit. A mined limit
   * can be without effect: its wallet was deployed only afterwards.
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

  async #limitsOf(wallet: Wallet) {
    const { outbox, wallets } = this.#dependencies;
    const set = await outbox.under(limitPrefix(wallet));
    const target = await wallets.targetLimit(wallet);
    return { last: set.findLast(isTransaction), next: this.#call(wallet, set.length + 1, target), target };
  }

  /** Whether the limit was replaced, or reverted since the service is not the spender: the previous one holds. */
  async #isReverted(limit: RecordedTransaction): Promise<boolean> {
    if (limit.replacedBy !== null) return true;
    const [receipt] = await this.#dependencies.finality.now([limit]);
    return receipt?.succeeded === false;
  }

  /** Sets a limit again whose transaction was found replaced. Ignores any other replaced transaction. */
  async setAgainAfter({ purpose, wallet }: RecordedTransaction): Promise<void> {
    if (wallet === null || !purpose.startsWith(LIMITS)) return;
    const found = await this.#dependencies.wallets.at(wallet);
    if (found !== null) await this.converge(found);
  }

  /** Returns the limit that a wallet is deployed with. */
  async first(wallet: Wallet): Promise<Call> {
    return this.#call(wallet, 1, await this.#dependencies.wallets.targetLimit(wallet));
  }

  /**
   * Records a payment immediately behind a limit that lets the payment through, whatever the policy is by now;
   * `converge` sets the limit back. Records neither if the payment is fenced. The target is read after the current
   * limits: a process that has set one of those for a payment has recorded that payment by then.
   */
  raiseFor(
    wallet: Wallet,
    payment: Call,
    neededCents: () => Promise<number>,
  ): Promise<ReadonlyMap<string, Recorded>> {
    // Concurrent calls of one process take turns rather than race.
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
    // Top-ups of the pocket leave the wallet before the policy counts them.
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

/** Whether a sent limit equals a call's; a changed float makes them differ. */
const isSame = ({ limitVersion, raw }: RecordedTransaction, call: Call): boolean =>
  limitVersion === call.limitVersion && parseTransaction(raw).data === call.data;

const LIMITS = "limit/";
const limitPrefix = ({ address }: Wallet): string => `${LIMITS}${address}/`;
export const firstLimitPurpose = (wallet: Wallet): string => `${limitPrefix(wallet)}1`;
export const deployPurpose = ({ address }: Wallet): string => `deploy/${address}`;
