import { usedCents } from "../../domain/money.ts";
import { getAddress, type Hash } from "viem";
import type { OnChain, Payment, RailOutcome, StoredPayment } from "../../domain/ledger/payment.ts";
import type { AgentProfile } from "../../domain/agent/state.ts";
import { caip2Of } from "../../chain/config.ts";
import { agentWalletAbi, detachData, GAS, paymentIdOf } from "../../chain/contracts.ts";
import { isTransaction, type Recorded, type RecordedTransaction } from "../../chain/outbox.ts";
import { ChainUnreachable } from "../../chain/rpc.ts";
import type { ForeignNonces } from "../../chain/foreign-nonces.ts";
import type { ChainWatchers } from "../../chain/repairs.ts";
import { centsOf } from "../../chain/units.ts";
import type {
  Detachment,
  FencedPlace,
  RailBalance,
  RailPort,
  RequestPermission,
  SendOutcome,
} from "../../payments/ports.ts";
import { withTimeout } from "../../lib/with-timeout.ts";
import { type AttemptDependencies, type Attempt, Attempts, attemptsPrefix, refusalOf } from "./attempts.ts";
import { diagnose, limitOnChain, type Remedy } from "./diagnosis.ts";
import { fenceAttempts } from "./fencing.ts";
import { refusalOutcome } from "./refusal-outcome.ts";
import { deployPurpose } from "./limits.ts";
import {
  DETACHED,
  LIMIT_REACHED,
  NO_WALLET,
  NOT_THERE,
  OTHER_CHAIN,
  OUT_OF_GAS,
  REVERTED_TOO_OFTEN,
  WITHHELD,
} from "./refusals.ts";
import { boundBy, causeOf, gasOf, hasPaid, ranOutOfGas, type Unpaid } from "./unpaid.ts";
import type { AgentWallets, Wallet } from "./wallets.ts";

/**
 * Wait of `send` for the first confirmation. Enough for the whole payment on a local chain; elsewhere a workflow
 * follows the payment. A payment's answer waits at most 2.8 s for `send`, and slow RPC endpoints take the rest.
 */
const CONFIRMATION_WAIT_MS = 1_000;
const DETACH_WAIT_MS = 5_000;
/** Maximum delay of a stop's answer by broadcasting signed transactions. */
const BROADCAST_WAIT_MS = 1_000;

/** Permit of spends that are never fenced. */
const UNFENCED = 0;

/** Maximum attempts of one payment, each after the contract reverted its predecessor. */
const ATTEMPTS_MAX = 5;

/** A spend from a wallet: a payment, a top-up of the agent's pocket, or a treasury's funding of an agent. */
export interface WalletSpend {
  readonly request: Pick<Payment["request"], "transactionId" | "recipient" | "amountMc">;
  /** Transaction that the ledger knows of; none for a spend that is not a payment. */
  readonly onChainTxHash?: string | null;
  /** Whether the wallet's on-chain limit refuses the spend. For a payment, decided by the ledger, it is raised. */
  readonly keepsLimit?: boolean;
}

/** The agent's pocket, as needed for closing its wallet. */
export interface PocketEnd {
  close(agentId: string): Promise<Detachment>;
  unitsIn(agentId: string): Promise<bigint>;
}

export interface WalletRailDependencies extends AttemptDependencies {
  readonly onWarning: ChainWatchers["onWarning"];
  readonly wallets: AgentWallets;
  readonly foreignNonces: Pick<ForeignNonces, "isReplaced" | "minedAs">;
  readonly pocket: PocketEnd;
}

/**
 * Pays from agents' wallets on a chain. A payment's outcome follows from its records and the chain alone, and from
 * nothing that a process remembers: any process may query or continue it at any time.
 */
export class WalletRail implements RailPort {
  readonly capabilities = { finality: "eventual" } as const;
  readonly network = null;
  readonly #dependencies: WalletRailDependencies;
  readonly #attempts: Attempts;
  readonly #chainCaip2: string;

  constructor(dependencies: WalletRailDependencies) {
    this.#dependencies = dependencies;
    this.#attempts = new Attempts(dependencies);
    this.#chainCaip2 = caip2Of(dependencies.config.chainId);
  }

  async send({ agentId }: AgentProfile, payment: Payment, permit: number): Promise<SendOutcome> {
    const wallet = await this.#dependencies.wallets.of(agentId);
    return wallet === null ? { status: "failed", ...NO_WALLET } : this.#send(wallet, payment, permit);
  }

  /**
   * Makes a spend that is not a payment, so no stop fences it. Made once, no matter how often and by which processes it
   * is called. Waits for its end for `withinMs`, and a little longer.
   */
  async spend(wallet: Wallet, spend: WalletSpend, withinMs: number): Promise<RailOutcome> {
    const permitted: RequestPermission = () => Promise.resolve({ kind: "send", permit: UNFENCED });
    const sent = await this.#send(wallet, spend, UNFENCED);
    if (sent.status === "fenced") throw new Error(`${spend.request.transactionId} is fenced`);
    return sent.status === "pending"
      ? ((await this.#settle(wallet, spend, withinMs, permitted)) ?? sent)
      : sent;
  }

  async #send(wallet: Wallet, payment: WalletSpend, permit: number): Promise<SendOutcome> {
    const attempt = attemptOf(wallet, payment, 1);
    if (wallet.chainCaip2 !== this.#chainCaip2) return this.#refusedOn(wallet.chainCaip2, attempt);
    const first = await this.#attempts.decide({ ...attempt, permit });
    if (first === "fenced") return { status: "fenced" };
    const { transactionId } = payment.request;
    if (!isTransaction(first))
      return (await this.#outcomeOf(transactionId, [first], payment.onChainTxHash)) ?? { status: "pending" };
    const receipt = await this.#dependencies.finality.wait(first, CONFIRMATION_WAIT_MS);
    if (receipt === null) return { status: "pending", onChain: this.#onChain(first) };
    if (hasPaid(first, receipt, transactionId)) return this.#settled(receipt);
    const permitted: RequestPermission = () => Promise.resolve({ kind: "send", permit });
    return (await this.#settle(wallet, payment, CONFIRMATION_WAIT_MS, permitted)) ?? { status: "pending" };
  }

  async query({ onChainTxHash, request: { transactionId } }: StoredPayment): Promise<RailOutcome | null> {
    const attempts = await this.#dependencies.outbox.under(attemptsPrefix(transactionId));
    return this.#outcomeOf(transactionId, attempts, onChainTxHash);
  }

  async settle(
    { agentId }: AgentProfile,
    payment: Payment,
    withinMs: number,
    requestPermission: RequestPermission,
  ): Promise<RailOutcome | null> {
    const wallet = await this.#dependencies.wallets.of(agentId);
    return wallet === null ? null : this.#settle(wallet, payment, withinMs, requestPermission);
  }

  async #settle(
    wallet: Wallet,
    payment: WalletSpend,
    withinMs: number,
    requestPermission: RequestPermission,
  ): Promise<RailOutcome | null> {
    const { finality, limits, outbox, foreignNonces } = this.#dependencies;
    const { transactionId } = payment.request;
    const until = performance.now() + withinMs;
    for (let round = 0; round <= ATTEMPTS_MAX; round += 1) {
      const attempts = await outbox.under(attemptsPrefix(transactionId));
      // A raised limit is set back as soon as its payment is recorded, by this process or the next that settles the
      // payment.
      if (attempts.length > 1) await limits.converge(wallet);
      const outcome = await this.#outcomeOf(transactionId, attempts, payment.onChainTxHash);
      if (outcome === null || outcome.status !== "pending") return outcome;
      const last = attempts.at(-1);
      // Nothing follows a refusal, or a record that something else than the service has changed.
      if (last === undefined || !isTransaction(last) || !attempts.every(isTransaction)) return outcome;
      const leftMs = last.replacedBy === null ? Math.max(0, until - performance.now()) : 0;
      const receipt = await finality.wait(last, leftMs);
      if (receipt !== null && hasPaid(last, receipt, transactionId)) return this.#settled(receipt);
      // A nonce used for good by another transaction counts as a revert.
      if (receipt === null && !(await foreignNonces.isReplaced(last)))
        return (await this.#paidLongAgo(wallet, last, payment)) ?? outcome;
      const next = attemptOf(wallet, payment, attempts.length + 1);
      const permission = await requestPermission();
      if (permission.kind === "wait") return outcome;
      if (permission.kind === "withdraw") await outbox.record([refusalOf(next, WITHHELD)]);
      else if (!(await this.#again(next, permission.permit, { last, receipt }))) return outcome;
    }
    return { status: "pending" };
  }

  /**
   * Records a refusal in the first attempt's place. If a transaction is already there, it was signed and recorded and
   * may be mined at any time, by any node: only its chain decides the outcome.
   */
  async withhold(profile: AgentProfile, payment: Payment): Promise<RailOutcome> {
    const wallet = await this.#dependencies.wallets.of(profile.agentId);
    if (wallet === null) return { status: "failed", ...NO_WALLET };
    const attempt = attemptOf(wallet, payment, 1);
    if (wallet.chainCaip2 !== this.#chainCaip2) return this.#refusedOn(wallet.chainCaip2, attempt);
    await this.#dependencies.outbox.record([refusalOf(attempt, WITHHELD)]);
    return (await this.query(payment)) ?? { status: "pending" };
  }

  /**
   * Lays fences. A recorded attempt counts as made: it is signed and may be mined whatever is decided later. It is
   * broadcast again, since its process may have stopped before broadcasting; if the chain does not answer, a keeper
   * broadcasts it.
   */
  async fence(places: readonly FencedPlace[]): Promise<void> {
    const made = await fenceAttempts(this.#dependencies.outbox, places, ATTEMPTS_MAX);
    await withTimeout(BROADCAST_WAIT_MS, this.#broadcastMissing(made)).catch(() => undefined);
  }

  async #broadcastMissing(made: readonly RecordedTransaction[]): Promise<void> {
    if (made.length === 0) return;
    const { broadcast, rpc, signer } = this.#dependencies;
    const mined = await rpc.nonceAt(signer.address, "latest");
    await broadcast(made.filter(({ nonce, replacedBy }) => nonce >= mined && replacedBy === null));
  }

  async balance({ agentId }: AgentProfile): Promise<RailBalance> {
    const { config, pocket, rpc, wallets } = this.#dependencies;
    const wallet = await wallets.of(agentId);
    if (wallet === null) return { kind: "none" };
    // On this chain the address is another contract, or unused.
    if (wallet.chainCaip2 !== this.#chainCaip2) return { kind: "unreadable" };
    try {
      await rpc.check();
      const [inWallet, inPocket] = await Promise.all([
        rpc.balanceAt(wallet.address, "latest"),
        pocket.unitsIn(agentId),
      ]);
      const inCents = (units: bigint): number => centsOf(units, config.tokenDecimals);
      return { kind: "cents", cents: inCents(inWallet + inPocket), pocketCents: inCents(inPocket) };
    } catch {
      return { kind: "unreadable" };
    }
  }

  async detach({ agentId }: AgentProfile): Promise<Detachment> {
    const wallet = await this.#dependencies.wallets.of(agentId);
    if (wallet === null) return "detached";
    if (wallet.chainCaip2 !== this.#chainCaip2) return "pending";
    // The wallet is closed first: nothing reaches the pocket afterwards.
    const end = (await this.#isDeployed(wallet)) ? await this.#detach(wallet) : "detached";
    return end === "detached" ? this.#dependencies.pocket.close(agentId) : end;
  }

  async #detach(wallet: Wallet): Promise<Detachment> {
    const { finality, outbox, foreignNonces } = this.#dependencies;
    const prefix = `detach/${wallet.address}/`;
    const before = await outbox.under(prefix);
    const last = before.findLast(isTransaction);
    const lastIsMined = last !== undefined && (await finality.now([last]))[0] !== null;
    // If the detach is mined and the service is a spender, the owner has made it one again since.
    if (lastIsMined && !(await this.#isSpender(wallet))) return "detached";
    const isOver = last === undefined || lastIsMined || (await foreignNonces.isReplaced(last));
    const purpose = isOver ? `${prefix}${String(before.length + 1)}` : last.purpose;
    const sent = await this.#sendDetach(wallet, purpose);
    if ((await finality.wait(sent, DETACH_WAIT_MS)) === null) return "pending";
    return (await this.#isSpender(wallet)) ? "pending" : "detached";
  }

  async #sendDetach({ address }: Wallet, purpose: string): Promise<RecordedTransaction> {
    const { broadcast, outbox } = this.#dependencies;
    const call = {
      kind: "call",
      purpose,
      wallet: address,
      to: address,
      data: detachData(),
      gas: GAS.detach,
    } as const;
    const recorded = (await outbox.record([call])).get(purpose);
    if (recorded === undefined || !isTransaction(recorded)) throw new Error(`${purpose} was not recorded`);
    await broadcast([recorded]);
    return recorded;
  }

  /**
   * Whether the wallet is deployed. An undeployed wallet is given up by recording that the service never deploys it.
   */
  async #isDeployed(wallet: Wallet): Promise<boolean> {
    const purpose = deployPurpose(wallet);
    const never = { kind: "refusal", purpose, wallet: wallet.address, refusal: DETACHED } as const;
    const decided = (await this.#dependencies.outbox.record([never])).get(purpose);
    return decided !== undefined && decided.kind !== "refusal";
  }

  async #isSpender({ address }: Wallet): Promise<boolean> {
    const { rpc, signer } = this.#dependencies;
    const read = { address, abi: agentWalletAbi, functionName: "spender" } as const;
    return (await rpc.answer(rpc.client.readContract(read))) === signer.address;
  }

  /**
   * Nodes forget receipts; the wallet never forgets a payment. Reads the wallet at the block at which the transaction
   * counts as confirmed, so that a node behind that block gives no answer instead of a wrong one. Only a yes is
   * trusted.
   */
  async #paidLongAgo(
    wallet: Wallet,
    transaction: RecordedTransaction,
    { request }: WalletSpend,
  ): Promise<RailOutcome | null> {
    const { outbox, rpc, signer, foreignNonces } = this.#dependencies;
    const { nonce, purpose } = transaction;
    const confirmed = await rpc.confirmed(signer.address);
    if (confirmed.nonce <= nonce) return null;
    const blockNumber = confirmed.through ?? (await rpc.head()).blockNumber;
    // Read only if no receipt can tell: the state of that block may be older than nodes keep.
    if (blockNumber < 0n || (await this.#hasReceipt(transaction))) return null;
    const read = { address: wallet.address, abi: agentWalletAbi, functionName: "isSpent" } as const;
    const args = [paymentIdOf(request.transactionId)] as const;
    const isSpent = rpc.answer(rpc.client.readContract({ ...read, args, blockNumber }));
    if (!(await isSpent.catch(() => false))) return null;
    // Another keeper may have raised the fee since the transaction was read; signings made after this check can't have
    // been mined.
    const now = (await outbox.find([purpose])).get(purpose);
    if (now === undefined || !isTransaction(now)) return null;
    if (now.signings.length === 1) return this.#settled(now);
    return this.#settled((await foreignNonces.minedAs(now).catch(() => null)) ?? now);
  }

  async #hasReceipt({ signings }: RecordedTransaction): Promise<boolean> {
    const { rpc } = this.#dependencies;
    const receipts = await Promise.all(signings.map(({ hash }) => rpc.receipt(hash)));
    return receipts.some((receipt) => receipt !== null);
  }

  /** A process on that chain may have signed the payment already, before its configuration changed. */
  async #refusedOn(chain: string, attempt: Attempt): Promise<RailOutcome> {
    const isRefused = await this.#dependencies.outbox.refuseOn(chain, refusalOf(attempt, OTHER_CHAIN));
    if (isRefused) return { status: "failed", ...OTHER_CHAIN };
    throw new ChainUnreachable(`the payment was signed for ${chain}, and only that chain has its outcome`);
  }

  /**
   * Decides the attempt that follows a reverted or replaced one: unchanged, under a raised limit, or refused. Returns
   * false and decides nothing if the attempt is fenced, or while the wallet's preceding deployment or limit is being
   * sent again.
   */
  async #again(attempt: Attempt, permit: number, before: Unpaid): Promise<boolean> {
    const { broadcast, limits, outbox } = this.#dependencies;
    const { amountCents, wallet } = attempt;
    const remedy = await this.#remedyFor(attempt, before);
    if (remedy.kind === "refuse" && remedy.refusal === NOT_THERE && !(await this.#isDeploymentOver(wallet)))
      return false;
    // The limit has not reached the wallet, or the float has changed since.
    if (remedy.kind === "refuse" && remedy.refusal === LIMIT_REACHED) {
      const { limit } = await limitOnChain(this.#dependencies, wallet.address);
      if (await limits.enforce(wallet, limit)) return false;
    }
    const gas = ranOutOfGas(before) ? GAS.spendMax : gasOf(before.last);
    const spend = this.#attempts.spend(attempt, permit, gas);
    if (remedy.kind === "refuse") {
      await outbox.record([refusalOf(attempt, remedy.refusal)]);
      // Limits sent while the service was not a spender had no effect.
      this.#attempts.recheckLimit(wallet);
      return true;
    }
    const needed = async () => (await this.#chargedCents(wallet)) + amountCents;
    const recorded = await (remedy.kind === "again"
      ? outbox.record([spend])
      : limits.raiseFor(wallet, spend, needed));
    await broadcast(recorded.values());
    if (recorded.has(spend.purpose)) return true;
    // The attempt was fenced after its limit was raised.
    if (remedy.kind === "raise") await limits.converge(wallet);
    return false;
  }

  /** Returns the remedy for a reverted or replaced attempt, and logs the reason. */
  async #remedyFor(attempt: Attempt, before: Unpaid): Promise<Remedy> {
    const diagnosed: Remedy =
      attempt.number > ATTEMPTS_MAX
        ? { kind: "refuse", refusal: REVERTED_TOO_OFTEN }
        : boundBy(attempt, await diagnose(this.#dependencies, attempt));
    if (before.receipt === null) return diagnosed;
    const isOutOfGas = diagnosed.kind === "again" && ranOutOfGas(before);
    const gas = gasOf(before.last);
    const remedy: Remedy =
      isOutOfGas && gas >= GAS.spendMax ? { kind: "refuse", refusal: OUT_OF_GAS } : diagnosed;
    this.#dependencies.onWarning("the chain reverted a payment", {
      transactionId: attempt.transactionId,
      hash: before.receipt.hash,
      gas: Number(gas),
      gasUsed: Number(before.receipt.gasUsed),
      cause: isOutOfGas ? "out of gas" : causeOf(diagnosed),
    });
    return remedy;
  }

  /** Whether the wallet's deployment is final: in the chain, or decided against. A replaced deployment is repeated. */
  async #isDeploymentOver(wallet: Wallet): Promise<boolean> {
    const { broadcast, finality, outbox, foreignNonces } = this.#dependencies;
    const newest = await outbox.newest(deployPurpose(wallet));
    if (newest === null || !isTransaction(newest)) return newest?.kind === "refusal";
    if ((await finality.now([newest]))[0] !== null) return true;
    if (await foreignNonces.isReplaced(newest)) await broadcast([await outbox.repeat(newest)]);
    return false;
  }

  /**
   * Returns the amount spent in the running period, plus what recorded transactions may spend. The order of the reads
   * can make the result too high, never too low.
   */
  async #chargedCents({ address }: Wallet): Promise<number> {
    const { outbox, rpc, signer } = this.#dependencies;
    const mined = await rpc.nonceAt(signer.address, "latest");
    const waiting = (await outbox.movedBy([address], mined)).get(address)?.debitCents ?? 0;
    return waiting + (await limitOnChain(this.#dependencies, address)).spentCents;
  }

  /**
   * Pure except for the chain: the same records and blocks give the same outcome to every caller. Pending while a record
   * is changed, or a refusal not believed.
   */
  async #outcomeOf(
    transactionId: string,
    attempts: readonly Recorded[],
    knownHash: string | null = null,
  ): Promise<RailOutcome | null> {
    const last = attempts.at(-1);
    if (last === undefined) return null;
    const sent = attempts.filter(isTransaction);
    const receipts = await this.#dependencies.finality.now(sent);
    const paid = sent.findIndex((transaction, at) =>
      hasPaid(transaction, receipts[at] ?? null, transactionId),
    );
    const receipt = receipts[paid] ?? null;
    if (receipt !== null) return this.#settled(receipt);
    const newest = sent.findLast(({ replacedBy }) => replacedBy === null);
    const onChain = newest === undefined ? {} : { onChain: this.#onChain(newest) };
    // Each attempt was mined without paying, or can never be mined.
    const allReverted = sent.every(({ replacedBy }, at) => replacedBy !== null || receipts[at] !== null);
    const isKnown = attempts.every(({ kind }) => kind !== "unproven");
    if (last.kind !== "refusal" || !allReverted || !isKnown) return { status: "pending", ...onChain };
    const refused = await refusalOutcome(this.#dependencies, { transactionId, knownHash, sent }, last);
    return { ...(refused ?? { status: "pending" }), ...onChain };
  }

  /** Returns the outcome with the mined signing, which is not always the newest. */
  #settled(mined: { readonly hash: Hash }): RailOutcome {
    return { status: "settled", onChain: this.#onChain(mined) };
  }

  #onChain({ hash }: { readonly hash: Hash }): OnChain {
    return { txHash: hash, chainCaip2: this.#chainCaip2 };
  }
}

const attemptOf = (
  wallet: Wallet,
  { keepsLimit = false, request }: WalletSpend,
  number: number,
): Attempt => ({
  transactionId: request.transactionId,
  number,
  wallet,
  to: getAddress(request.recipient),
  amountCents: usedCents(request.amountMc),
  keepsLimit,
});
