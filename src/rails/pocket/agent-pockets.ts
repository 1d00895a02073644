import { setImmediate as nextTurn, setTimeout as sleep } from "node:timers/promises";
import { LRUCache } from "lru-cache";
import { type Address, encodeFunctionData, type Hex } from "viem";
import type { ChainConfig } from "../../chain/config.ts";
import { GAS, tokenAbi } from "../../chain/contracts.ts";
import type { Finality } from "../../chain/finality.ts";
import { type ChainOutbox, isTransaction, type Recorded } from "../../chain/outbox.ts";
import type { ChainRpc } from "../../chain/rpc.ts";
import { centsOf, unitsOf } from "../../chain/units.ts";
import { mcOf } from "../../domain/money.ts";
import type { AgentProfile } from "../../domain/agent/state.ts";
import type { RailOutcome } from "../../domain/ledger/payment.ts";
import { SingleFlight } from "../../lib/single-flight.ts";
import type { Clock, Detachment, FencedPlace } from "../../payments/ports.ts";
import { DETACHED, NO_WALLET } from "../wallet/refusals.ts";
import type { WalletRail, WalletSpend } from "../wallet/wallet-rail.ts";
import type { AgentWallets, Wallet } from "../wallet/wallets.ts";
import { isUsed, stateOf } from "./authorization-states.ts";
import type { AuthorizationRecords } from "./authorizations.ts";
import {
  type Authorization,
  type AuthorizationState,
  type Authorized,
  AUTHORIZATION_SECONDS_MAX,
  type Funding,
  type Pockets,
  type PocketTransfer,
  type Prepared,
} from "./pocket.ts";
import type { PocketKeys } from "./pocket-keys.ts";
import { type PocketRecord, type PocketRecords, reservedUnits, type TopUp } from "./reservations.ts";
import { signPermit, signSweep, signTransfer } from "./signing.ts";
import type { TokenDomain, TokenDomains } from "./token-domain.ts";

/** Age at which a reservation is released if nothing was signed for its payment; the caller then asks again. */
const UNSIGNED_MS = 60_000;
/** Maximum attempts of one `authorize` that races with other processes. */
const ROUNDS_MAX = 10;
const SWEEP_WAIT_MS = 5_000;
/** Maximum cached signatures, of some hundred bytes each. */
const SIGNATURES_MAX = 2_000;
/** Maximum agents whose pocket's number of releases is cached. */
const RELEASES_MAX = 10_000;

const FUNDED: Funding = { status: "funded" };
const PENDING: Funding = { status: "pending" };

export interface PocketDependencies {
  readonly keys: PocketKeys;
  readonly domains: TokenDomains;
  readonly records: PocketRecords;
  readonly authorizations: AuthorizationRecords;
  readonly rail: Pick<WalletRail, "spend">;
  readonly wallets: AgentWallets;
  readonly outbox: ChainOutbox;
  readonly finality: Finality;
  readonly rpc: ChainRpc;
  readonly config: ChainConfig;
  readonly clock: Clock;
  readonly broadcast: (recorded: Iterable<Recorded>) => Promise<void>;
  /** Null if the chain mines by itself. */
  readonly mine: (() => Promise<void>) | null;
}

export class AgentPockets implements Pockets {
  readonly #dependencies: PocketDependencies;
  /** Top-ups in flight in this process, by agent: concurrent payments share one. */
  readonly #toppingUp = new SingleFlight<RailOutcome>();
  readonly #signatures = new LRUCache<string, Hex>({ max: SIGNATURES_MAX });
  /** Number of releases of a pocket's reservations, by agent, as last read. */
  readonly #releases = new LRUCache<string, number>({ max: RELEASES_MAX });

  constructor(dependencies: PocketDependencies) {
    this.#dependencies = dependencies;
  }

  addressOf(agentId: string): Address {
    return this.#dependencies.keys.addressOf(agentId);
  }

  domain(): Promise<TokenDomain> {
    return this.#dependencies.domains.read();
  }

  unitsIn(agentId: string): Promise<bigint> {
    return this.#dependencies.rpc.balanceAt(this.addressOf(agentId), "latest");
  }

  async fund(
    profile: AgentProfile,
    transactionId: string,
    units: bigint,
    withinMs: number,
  ): Promise<Funding> {
    const { agentId } = profile;
    const { config, records, rpc } = this.#dependencies;
    const until = performance.now() + withinMs;
    await rpc.check();
    let isPruned = false;
    let least = false;
    const releases = this.#releases.get(agentId);
    let early = releases === undefined ? null : this.unitsIn(agentId).catch(() => null);
    for (;;) {
      // Reads the reservations before the balance: a payment settled in between then counts twice, and none is missed.
      // A balance read earlier serves as well if no reservation has been released since.
      const record = await records.reserve(profile, transactionId, units);
      if (record.isClosed) return failed(DETACHED);
      this.#releases.set(agentId, record.releases);
      const known = record.releases === releases ? await early : null;
      early = null;
      const held = known ?? (await this.unitsIn(agentId));
      const missing = reservedUnits(record, transactionId) - held;
      if (missing <= 0n) return FUNDED;
      if (!isPruned) {
        isPruned = true;
        if (await this.#prune(agentId, transactionId, record)) continue;
      }
      const wallet = await this.#dependencies.wallets.of(agentId);
      if (wallet === null) return failed(NO_WALLET);
      if (record.topUp === null) {
        const cents = await this.#centsOf(wallet, record, held, missing, least);
        await records.beginTopUp(agentId, { number: record.topUps + 1, cents });
        continue;
      }
      const { topUp } = record;
      const outcome = await this.#toppingUp.run(agentId, () => this.#topUp(wallet, topUp));
      if (outcome.status === "failed") {
        const isLeast = topUp.cents <= centsUp(missing, config.tokenDecimals);
        if (outcome.code !== "INSUFFICIENT_FUNDS" || isLeast || least) return failed(outcome);
        least = true;
      }
      if (outcome.status !== "pending") continue;
      // The newest block suffices for signing, even while another top-up waits for a final block.
      if (reservedUnits(record, transactionId) <= (await this.unitsIn(agentId))) return FUNDED;
      if (performance.now() >= until) return PENDING;
      await sleep(config.pollMs);
    }
  }

  async prepare(agentId: string, transfer: PocketTransfer): Promise<Prepared> {
    const [{ blockNumber: signedAtBlock }, signature] = await Promise.all([
      this.#dependencies.rpc.head(),
      // The other calls start first: signing occupies the process for milliseconds.
      nextTurn().then(() => this.#sign(agentId, transfer)),
    ]);
    return { transfer, signedAtBlock, signature };
  }

  async authorizeFirst(
    agentId: string,
    transactionId: string,
    { transfer, ...signed }: Prepared,
    permit: number,
  ): Promise<Authorized | null> {
    if (!this.#areGoodTimes(transfer)) return null;
    const own = { ...transfer, ...signed, transactionId, agentId };
    const authorization = { ...own, number: 1, from: this.addressOf(agentId) };
    const recorded = await this.#dependencies.authorizations.record(authorization, permit);
    if (recorded === "taken") return null;
    return recorded === "fenced" ? { kind: "fenced" } : { kind: "signed", authorization };
  }

  async authorize(
    agentId: string,
    transactionId: string,
    transfer: PocketTransfer,
    permit: number,
  ): Promise<Authorized> {
    const { authorizations, records, rpc } = this.#dependencies;
    for (let round = 0; round < ROUNDS_MAX; round += 1) {
      const [before, pocket, { blockNumber: signedAtBlock }] = await Promise.all([
        this.authorizationsOf(transactionId),
        records.read(agentId),
        rpc.head(),
      ]);
      const last = before.at(-1);
      if (last !== undefined) {
        if (this.#nowSeconds() < last.validBefore) return { kind: "signed", authorization: last };
        const state = await this.stateOf(last);
        if (state.kind === "used") return { ...state, authorization: last };
        if (state.kind === "open") return { kind: "signed", authorization: last };
      }
      const aside = pocket?.reservations.find((each) => each.transactionId === transactionId);
      if (pocket?.isClosed !== false || aside === undefined || aside.units < transfer.units)
        return { kind: "unfunded" };
      if (!this.#areGoodTimes(transfer)) return { kind: "bad_times" };
      const { nonce, to, units, validAfter, validBefore } = transfer;
      const own = { nonce, to, units, validAfter, validBefore, transactionId, agentId, signedAtBlock };
      const signature = await this.#sign(agentId, transfer);
      const number = (last?.number ?? 0) + 1;
      const authorization = { ...own, number, from: this.addressOf(agentId), signature };
      const recorded = await authorizations.record(authorization, permit);
      if (recorded === "recorded") return { kind: "signed", authorization };
      if (recorded === "fenced") return { kind: "fenced" };
    }
    throw new Error(
      `no authorization of ${transactionId} could be recorded: its nonce is taken by another one`,
    );
  }

  authorizationsOf(transactionId: string): Promise<readonly Authorization[]> {
    return this.#dependencies.authorizations.of(transactionId);
  }

  stateOf(
    {
      agentId,
      nonce,
      signedAtBlock,
      validBefore,
    }: Pick<Authorization, "agentId" | "nonce" | "validBefore" | "signedAtBlock">,
    isExpectedUsed = false,
  ): Promise<AuthorizationState> {
    const { config, mine, rpc } = this.#dependencies;
    const asked = { from: this.addressOf(agentId), nonce, signedAtBlock, validBefore };
    return stateOf({ config, mine, rpc, nowSeconds: () => this.#nowSeconds() }, asked, isExpectedUsed);
  }

  async isUsedUnrecorded(agentId: string, nonce: Hex): Promise<boolean> {
    const from = this.addressOf(agentId);
    // A shop may require a nonce of a purchase whose order is no longer kept.
    if (await this.#dependencies.authorizations.hasNonce(from, nonce)) return false;
    return isUsed(this.#dependencies, { from, nonce });
  }

  fence(places: readonly FencedPlace[]): Promise<void> {
    return this.#dependencies.authorizations.fence(places);
  }

  release(agentId: string, transactionId: string): Promise<void> {
    return this.#release(agentId, [transactionId]);
  }

  async #release(agentId: string, transactionIds: readonly string[]): Promise<void> {
    const releases = await this.#dependencies.records.release(agentId, transactionIds);
    if (releases !== null) this.#releases.set(agentId, releases);
  }

  async close(agentId: string): Promise<Detachment> {
    const { broadcast, finality, outbox, records, wallets } = this.#dependencies;
    if (!(await records.close(agentId))) return "detached";
    const wallet = await wallets.of(agentId);
    if (wallet === null) return "detached";
    const prefix = `pocket/sweep/${agentId}/`;
    const before = await outbox.under(prefix);
    const last = before.findLast(isTransaction);
    if (last !== undefined && last.replacedBy === null) {
      await broadcast([last]);
      if ((await finality.wait(last, SWEEP_WAIT_MS)) === null) return "pending";
    }
    const units = await this.unitsIn(agentId);
    if (units === 0n) return "detached";
    const purpose = `${prefix}${String(before.length + 1)}`;
    const domain = await this.domain();
    const args = await signSweep(this.#dependencies.keys, agentId, domain, {
      purpose,
      to: wallet.address,
      units,
    });
    const data = encodeFunctionData({ abi: tokenAbi, functionName: "transferWithAuthorization", args });
    await this.#send(purpose, data);
    return "pending";
  }

  /** Returns a signature, cached by transfer: signing takes milliseconds and is deterministic. */
  async #sign(agentId: string, transfer: PocketTransfer): Promise<Hex> {
    const { nonce, to, units, validAfter, validBefore } = transfer;
    const key = [agentId, nonce, to, units, validAfter, validBefore].join(" ");
    const known = this.#signatures.get(key);
    if (known !== undefined) return known;
    const signature = await signTransfer(this.#dependencies.keys, agentId, await this.domain(), transfer);
    this.#signatures.set(key, signature);
    return signature;
  }

  /** Releases reservations of payments that the chain has decided, or for which nothing was signed in time. */
  async #prune(agentId: string, besides: string, { reservations }: PocketRecord): Promise<boolean> {
    const stale = await Promise.all(
      reservations.map(async ({ at, transactionId }) => {
        if (transactionId === besides) return [];
        const last = (await this.authorizationsOf(transactionId)).at(-1);
        const isDecided =
          last === undefined
            ? this.#dependencies.clock().getTime() - at.getTime() > UNSIGNED_MS
            : (await this.stateOf(last)).kind !== "open";
        return isDecided ? [transactionId] : [];
      }),
    );
    const released = stale.flat();
    if (released.length > 0) await this.#release(agentId, released);
    return released.length > 0;
  }

  /**
   * Amount of a top-up: up to the float, or what payments need if that is more. Less if the wallet has less, but at
   * least what this payment lacks, so that a refusal by the wallet is this payment's refusal.
   */
  async #centsOf(wallet: Wallet, record: PocketRecord, held: bigint, missing: bigint, least: boolean) {
    const { config, rpc } = this.#dependencies;
    const { tokenDecimals } = config;
    const needed = centsUp(missing, tokenDecimals);
    if (least) return needed;
    const float = unitsOf(config.pocketFloatCents, tokenDecimals);
    const reserved = reservedUnits(record);
    const wanted = centsUp((reserved > float ? reserved : float) - held, tokenDecimals);
    const inWallet = centsOf(await rpc.balanceAt(wallet.address, "latest"), tokenDecimals);
    return Math.max(needed, Math.min(wanted, inWallet));
  }

  /** Advances a top-up, and records its end. */
  async #topUp(wallet: Wallet, topUp: TopUp): Promise<RailOutcome> {
    const { rail, records, rpc, config } = this.#dependencies;
    const { agentId } = wallet;
    const spend: WalletSpend = {
      request: {
        transactionId: topUpId(agentId, topUp.number),
        recipient: this.addressOf(agentId),
        amountMc: mcOf(topUp.cents),
      },
      keepsLimit: true,
    };
    const inWallet = centsOf(await rpc.balanceAt(wallet.address, "latest"), config.tokenDecimals);
    // Permits the owner before any money reaches the pocket, so that the owner can always take it.
    if (topUp.number === 1 && inWallet >= topUp.cents) await this.#permitOwner(wallet);
    const outcome = await rail.spend(wallet, spend, 0);
    if (outcome.status !== "pending") await records.endTopUp(agentId, topUp);
    return outcome;
  }

  /** Lets the wallet's owner take the pocket's money at any time, without the service. Recorded once. */
  async #permitOwner(wallet: Wallet): Promise<void> {
    const { agentId, owner } = wallet;
    const args = await signPermit(this.#dependencies.keys, agentId, await this.domain(), owner);
    const data = encodeFunctionData({ abi: tokenAbi, functionName: "permit", args });
    await this.#send(`pocket/permit/${agentId}`, data);
  }

  async #send(purpose: string, data: `0x${string}`): Promise<void> {
    const { broadcast, config, outbox } = this.#dependencies;
    const call = {
      kind: "call",
      purpose,
      wallet: null,
      to: config.token,
      data,
      gas: GAS.tokenCall,
      isRepeated: true,
    } as const;
    await broadcast((await outbox.record([call])).values());
  }

  #areGoodTimes({ validBefore }: PocketTransfer): boolean {
    const leftSeconds = validBefore - this.#nowSeconds();
    return leftSeconds > 0 && leftSeconds <= AUTHORIZATION_SECONDS_MAX;
  }

  #nowSeconds(): number {
    return Math.floor(this.#dependencies.clock().getTime() / 1_000);
  }
}

export const topUpId = (agentId: string, number: number): string => `pocket/${agentId}/${String(number)}`;

const failed = ({ code, reason }: Omit<Extract<Funding, { status: "failed" }>, "status">): Funding => ({
  status: "failed",
  code,
  reason,
});

/** Returns the whole cents that cover a number of units. */
const centsUp = (units: bigint, tokenDecimals: number): number => {
  const cent = unitsOf(1, tokenDecimals);
  return Number((units + cent - 1n) / cent);
};
