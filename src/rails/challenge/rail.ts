import { setTimeout as sleep } from "node:timers/promises";
import { getAddress, type Hex } from "viem";
import type { Payment, RailFailure, RailOutcome, StoredPayment } from "../../domain/ledger/payment.ts";
import type { AgentProfile } from "../../domain/agent/state.ts";
import { caip2Of } from "../../chain/config.ts";
import { ChainUnreachable } from "../../chain/rpc.ts";
import type { Wallets } from "../wallet/index.ts";
import { SingleFlight } from "../../lib/single-flight.ts";
import type {
  Clock,
  Detachment,
  FencedPlace,
  RailBalance,
  RailPort,
  RequestPermission,
  SendOutcome,
} from "../../payments/ports.ts";
import type { Authorization, Authorized, Pockets, PocketTransfer } from "../pocket/pocket.ts";
import { nonceFor } from "../pocket/signing.ts";
import { answerIn } from "./answers.ts";
import type { Answered, Order, OrderRefusal, Orders, ShopAnswer } from "./orders.ts";
import { presented, receiptOf, validBeforeOf } from "./protocols/choose.ts";
import type { Offer } from "./protocols/offer.ts";
import { SHOP_TIMEOUT_MS, type Shops, type ShopRequest, TURN_TIMEOUT_MS } from "./shops.ts";

/** Maximum wait of one call for the pocket to be funded. */
const FUNDING_WAIT_MS = 5_000;
/** Wait of `send` for a final block after the shop's answer: enough for the whole payment on a local chain. */
const CONFIRMATION_WAIT_MS = 1_000;
/** Longer than an exchange and the wait for it: afterwards the process that began the request must have died. */
const PRESENTING_TIMEOUT_MS = TURN_TIMEOUT_MS + SHOP_TIMEOUT_MS + 2_000;
/** Time in which the caller has to complete a decided or approved purchase. */
export const CLAIM_MS = 3_600_000;
/** A fence above every permit. */
const FOR_GOOD = Number.MAX_SAFE_INTEGER;

const PENDING = { status: "pending" } as const;

const PRICE_CHANGED: RailFailure = {
  code: "PRICE_CHANGED",
  reason: "The seller asks for another price by now, or for payment to somebody else.",
};
const NOT_CLAIMED: RailFailure = {
  code: "NOT_CLAIMED",
  reason: "The request was not repeated in time, so nothing was paid.",
};
const CHALLENGE_OVER: RailFailure = {
  code: "RECIPIENT_REFUSED",
  reason: "The seller's offer had expired before it could be paid, or was used before.",
};
const NOT_TAKEN: RailFailure = {
  code: "NOT_CHARGED",
  reason:
    "The seller did not take the payment in time: nothing was charged, and the amount is available again.",
};

/** An order whose caller is waiting, and the shop's last answer to it. */
export interface Hand {
  readonly request: ShopRequest;
  readonly offer: Offer;
  /** The transaction id that the caller has just created, until it is sent; null if the caller repeats a key. */
  newTransactionId: string | null;
  answer: ShopAnswer | null;
  /** Last writes of a paid purchase: the caller's response waits for them, its payment's record does not. */
  closing: Promise<unknown>;
}

interface AskedOrder {
  readonly order: Order;
  readonly isStored: boolean;
  /** Whether this call created the transaction id, and so sends the payment for the first time. */
  readonly isNew: boolean;
}

/** A paid request that only this process sends now. */
interface Presented {
  readonly order: Order;
  readonly authorization: Authorization;
  readonly turn: Date;
}

export interface ChallengeRailDependencies {
  readonly pockets: Pockets;
  readonly orders: Orders;
  readonly shops: Shops;
  readonly chainCaip2: string;
  readonly pollMs: number;
  readonly clock: Clock;
}

/**
 * Buys from shops that ask for payment with HTTP 402, using signed authorizations from agents' pockets. The pocket
 * records an authorization under the permit, once per payment; that record proves that the payment was sent. Only a
 * final block on the chain decides the outcome: a shop's answer proves nothing.
 */
export class ChallengeRail implements RailPort {
  readonly capabilities = { finality: "eventual" } as const;
  readonly network = null;
  readonly #dependencies: ChallengeRailDependencies;
  /** Keyed by agent and idempotency key. */
  readonly #hands = new Map<string, Hand>();
  readonly #sending = new SingleFlight<SendOutcome>();

  constructor(dependencies: ChallengeRailDependencies) {
    this.#dependencies = dependencies;
  }

  /** Runs `work` while a caller waits with its order; the payment of this key is made with that order. */
  async withHand<T>(agentId: string, keyHash: string, hand: Hand, work: () => Promise<T>): Promise<T> {
    const key = handKey(agentId, keyHash);
    this.#hands.set(key, hand);
    try {
      return await work();
    } finally {
      if (this.#hands.get(key) === hand) this.#hands.delete(key);
    }
  }

  /** Returns the paid answer; null if there is none or it has expired. */
  answerOf(transactionId: string): Promise<ShopAnswer | null> {
    return this.#dependencies.orders.answerOf(transactionId);
  }

  /** Whether an authorization was issued: from then on nothing else is signed for the payment. */
  async isSigned(transactionId: string): Promise<boolean> {
    return (await this.#dependencies.pockets.authorizationsOf(transactionId)).length > 0;
  }

  /** Sends a payment. Pending without any effect if there is no order: the key's next use brings one. */
  send(profile: AgentProfile, payment: Payment, permit: number): Promise<SendOutcome> {
    const work = () => this.#send(profile, payment, permit);
    return this.#sending.run(payment.request.transactionId, work);
  }

  async #send(profile: AgentProfile, payment: Payment, permit: number): Promise<SendOutcome> {
    const isNew = this.#isNew(profile, payment);
    const known = isNew ? null : await this.query(payment);
    if (known !== null && known.status !== "pending") {
      // The process that was told of its end may have died before it closed the purchase.
      await this.#close(profile, payment.request.transactionId);
      return known;
    }
    if (known !== null) return this.#deliver(profile, payment, CONFIRMATION_WAIT_MS);
    const asked = await this.#orderFor(profile, payment, isNew);
    return "status" in asked ? asked : this.#pay(profile, payment, permit, asked);
  }

  /** Whether this is the first call for a transaction id that its caller has just created. */
  #isNew({ agentId }: AgentProfile, { request: { keyHash, transactionId } }: Payment): boolean {
    const hand = this.#hands.get(handKey(agentId, keyHash));
    if (hand?.newTransactionId !== transactionId) return false;
    hand.newTransactionId = null;
    return true;
  }

  /** Returns the waiting caller's order, or else the stored one. */
  async #orderFor(
    profile: AgentProfile,
    payment: Payment,
    isNew: boolean,
  ): Promise<AskedOrder | RailOutcome> {
    const { amountMc, recipient, transactionId } = payment.request;
    const hand = this.#hands.get(handKey(profile.agentId, payment.request.keyHash));
    if (hand === undefined) {
      const order = (await this.#dependencies.orders.of(transactionId))?.order ?? null;
      return order === null ? PENDING : { order, isStored: true, isNew };
    }
    const { offer, request } = hand;
    if (offer.amountMc !== amountMc || offer.payTo !== getAddress(recipient))
      return this.#refuse(profile, payment, PRICE_CHANGED);
    const { frame, nonce, timeoutSeconds, units } = offer;
    const order = { request, offer: { frame, nonce, timeoutSeconds, units: String(units) } };
    return { order, isStored: false, isNew };
  }

  async #pay(
    profile: AgentProfile,
    payment: Payment,
    permit: number,
    { isNew, isStored, order }: AskedOrder,
  ): Promise<SendOutcome> {
    const { clock, orders, pockets } = this.#dependencies;
    const { recipient, transactionId } = payment.request;
    const { agentId } = profile;
    const units = BigInt(order.offer.units);
    const transferNow = (): PocketTransfer => ({
      to: getAddress(recipient),
      units,
      validAfter: 0,
      validBefore: validBeforeOf(order.offer, clock().getTime()),
      nonce: nonceOf(transactionId, order),
    });
    const began = performance.now();
    const firstTurn = new Date(clock().getTime() + FUNDING_WAIT_MS + PRESENTING_TIMEOUT_MS);
    const store = () =>
      isNew
        ? orders.insert(agentId, transactionId, order, firstTurn)
        : orders.put(agentId, transactionId, order);
    const [stored, funding, prepared] = await Promise.all([
      isStored ? "stored" : store(),
      pockets.fund(profile, transactionId, units, FUNDING_WAIT_MS),
      isNew ? pockets.prepare(agentId, transferNow()) : null,
    ]);
    if (stored === "there") return this.#sendAgain(profile, payment, permit);
    if (stored === "used") return this.#refuse(profile, payment, CHALLENGE_OVER);
    if (funding.status === "failed") return this.#refuse(profile, payment, funding);
    if (funding.status === "pending") {
      if (isNew) await orders.endPresenting(transactionId, firstTurn);
      return PENDING;
    }
    const authorize = async (): Promise<Authorized> => {
      const transfer = transferNow();
      // A signature made before a long wait for a top-up would expire too early.
      const isInTime = prepared !== null && transfer.validBefore <= prepared.transfer.validBefore + 1;
      const first = isInTime ? await pockets.authorizeFirst(agentId, transactionId, prepared, permit) : null;
      return first ?? pockets.authorize(agentId, transactionId, transfer, permit);
    };
    // A new order is stored with the turn, which a long wait for a top-up uses up.
    const takeTurn = async (): Promise<Date | null> => {
      if (isNew && performance.now() - began <= FUNDING_WAIT_MS) return firstTurn;
      if (isNew) await orders.endPresenting(transactionId, firstTurn);
      return orders.beginPresenting(transactionId, PRESENTING_TIMEOUT_MS);
    };
    const [authorized, turn] = await Promise.all([authorize(), takeTurn()]);
    if (authorized.kind === "signed") {
      const begun = turn === null ? null : { order, authorization: authorized.authorization, turn };
      return this.#deliver(profile, payment, CONFIRMATION_WAIT_MS, begun);
    }
    if (turn !== null) await orders.endPresenting(transactionId, turn);
    switch (authorized.kind) {
      case "fenced":
        return { status: "fenced" };
      case "unfunded":
        return PENDING;
      case "bad_times":
        return this.#refuse(profile, payment, CHALLENGE_OVER);
      case "used":
        return this.#deliver(profile, payment, CONFIRMATION_WAIT_MS);
    }
  }

  /**
   * Sends a payment whose order another process stored, or whose purchase another process ended, while this one was
   * suspended. Leaves no money reserved for a purchase that has ended.
   */
  async #sendAgain(profile: AgentProfile, payment: Payment, permit: number): Promise<SendOutcome> {
    const outcome = await this.#send(profile, payment, permit);
    if (outcome.status !== "pending" && outcome.status !== "fenced")
      await this.#dependencies.pockets.release(profile.agentId, payment.request.transactionId);
    return outcome;
  }

  /** Sends the paid request unless it was answered, and waits up to `withinMs` for a final block. */
  async #deliver(
    profile: AgentProfile,
    payment: Payment,
    withinMs: number,
    begun: Presented | null = null,
  ): Promise<RailOutcome> {
    const paid = begun ?? (await this.#toPresent(payment));
    const until = performance.now() + withinMs;
    const first = paid === null ? null : await this.#present(profile, payment, paid);
    if (first !== null && first.status !== "pending") return first;
    for (;;) {
      const outcome = (await this.query(payment)) ?? PENDING;
      if (outcome.status !== "pending") await this.#close(profile, payment.request.transactionId);
      if (outcome.status !== "pending" || performance.now() >= until) return outcome;
      await sleep(this.#dependencies.pollMs);
    }
  }

  /** Returns the paid request if it is to be sent now and no other process is sending it. */
  async #toPresent({ request: { transactionId } }: Payment): Promise<Presented | null> {
    const { clock, orders, pockets } = this.#dependencies;
    const [authorizations, known] = await Promise.all([
      pockets.authorizationsOf(transactionId),
      orders.of(transactionId),
    ]);
    const authorization = authorizations.at(-1);
    const order = known?.order ?? null;
    if (order === null || authorization === undefined || known?.isAnswered === true) return null;
    if (authorization.validBefore * 1_000 <= clock().getTime()) return null;
    const turn = await orders.beginPresenting(transactionId, PRESENTING_TIMEOUT_MS);
    return turn === null ? null : { order, authorization, turn };
  }

  /**
   * Sends the paid request. Whatever the shop answers, the same authorization stays the only one. Resolves to the
   * chain's state, which is read while the answer is stored; null if it was not read.
   */
  async #present(
    profile: AgentProfile,
    payment: Payment,
    { authorization, order: { offer, request }, turn }: Presented,
  ): Promise<RailOutcome | null> {
    const { orders, pockets, shops } = this.#dependencies;
    const { keyHash, transactionId } = payment.request;
    const hand = this.#hands.get(handKey(profile.agentId, keyHash));
    let answered: Answered = {};
    let outcome: RailOutcome | null = null;
    try {
      const header = presented(offer.frame, authorization);
      const others = Object.entries(request.headers).filter(([name]) => name.toLowerCase() !== header.name);
      const headers = { ...Object.fromEntries(others), [header.name]: header.value };
      const fetched = await shops.fetch(profile, { ...request, headers });
      // A 402 at this point says nothing: the authorization may have been settled, or will be.
      if (fetched?.kind !== "answered" || fetched.httpStatus === 402) return null;
      const answer = answerIn(fetched);
      if (hand !== undefined) hand.answer = answer;
      if (fetched.httpStatus >= 400) return null;
      const receipt = receiptOf(offer.frame.protocol, fetched);
      [outcome] = await Promise.all([
        this.#outcomeOf(authorization, receipt, receipt !== null).catch(() => null),
        orders.keep(transactionId, answer),
      ]);
      answered = { isAnswered: true, ...(receipt === null ? {} : { receipt }) };
      return outcome;
    } finally {
      const isOver = outcome !== null && outcome.status !== "pending";
      const closing = Promise.all([
        orders.endPresenting(transactionId, turn, answered, isOver),
        isOver ? pockets.release(profile.agentId, transactionId) : null,
      ]);
      if (isOver && hand !== undefined) hand.closing = closing.catch(() => undefined);
      else await closing;
    }
  }

  async query({ request: { transactionId } }: StoredPayment): Promise<RailOutcome | null> {
    const { orders, pockets } = this.#dependencies;
    const [authorizations, known] = await Promise.all([
      pockets.authorizationsOf(transactionId),
      orders.of(transactionId),
    ]);
    const last = authorizations.at(-1);
    if (last === undefined) return known?.refusal === undefined ? null : outcomeOf(known.refusal);
    return this.#outcomeOf(last, known?.receipt ?? null);
  }

  /** Returns the outcome of an authorization by the chain. `isSaidSettled`: the shop claims to have settled it. */
  async #outcomeOf(
    authorization: Authorization,
    received: string | null,
    isSaidSettled = false,
  ): Promise<RailOutcome> {
    const { chainCaip2, pockets } = this.#dependencies;
    const receipt = received === null ? {} : { receipt: received };
    const state = await pockets.stateOf(authorization, isSaidSettled);
    if (state.kind === "dead") return { status: "failed", ...NOT_TAKEN };
    if (state.kind === "open") return { ...PENDING, ...receipt };
    const { txHash } = state;
    return { status: "settled", ...receipt, ...(txHash === null ? {} : { onChain: { txHash, chainCaip2 } }) };
  }

  async settle(
    profile: AgentProfile,
    payment: Payment,
    withinMs: number,
    requestPermission: RequestPermission,
  ): Promise<RailOutcome | null> {
    const known = await this.query(payment);
    if (known?.status === "pending") return this.#deliver(profile, payment, withinMs);
    if (known !== null) {
      await this.#close(profile, payment.request.transactionId);
      return known;
    }
    const permission = await requestPermission();
    if (permission.kind === "wait") return PENDING;
    if (permission.kind === "withdraw") return this.withhold(profile, payment);
    const sent = await this.send(profile, payment, permission.permit);
    if (sent.status !== "pending" && sent.status !== "fenced") return sent;
    return this.#isClaimable(payment) ? PENDING : this.#refuse(profile, payment, NOT_CLAIMED);
  }

  #isClaimable({ approval, createdAt }: Payment): boolean {
    const since = approval?.resolvedAt ?? createdAt;
    return this.#dependencies.clock().getTime() < since + CLAIM_MS;
  }

  withhold(profile: AgentProfile, payment: Payment): Promise<RailOutcome> {
    return this.#refuse(profile, payment, { code: "WITHHELD" });
  }

  /** Ends a purchase unpaid: nothing more is signed. Whatever was signed before is answered by its own outcome. */
  async #refuse(profile: AgentProfile, payment: Payment, refusal: OrderRefusal): Promise<RailOutcome> {
    const { orders, pockets } = this.#dependencies;
    const { transactionId } = payment.request;
    await pockets.fence([{ transactionId, fence: FOR_GOOD }]);
    if (await this.isSigned(transactionId)) return (await this.query(payment)) ?? PENDING;
    if (await this.#isPaid(profile, transactionId, refusal)) return PENDING;
    const kept = await orders.refuse(profile.agentId, transactionId, refusal);
    await pockets.release(profile.agentId, transactionId);
    return outcomeOf(kept);
  }

  /**
   * Whether the pocket has paid by an authorization whose record was removed from the database. A withdrawal needs no
   * answer of the chain, so that a stop does not.
   */
  async #isPaid({ agentId }: AgentProfile, transactionId: string, { code }: OrderRefusal): Promise<boolean> {
    const { orders, pockets } = this.#dependencies;
    const order = (await orders.of(transactionId))?.order ?? null;
    return pockets.isUsedUnrecorded(agentId, nonceOf(transactionId, order)).catch((error: unknown) => {
      if (error instanceof ChainUnreachable && code === "WITHHELD") return false;
      throw error;
    });
  }

  async #close({ agentId }: AgentProfile, transactionId: string): Promise<void> {
    const { orders, pockets } = this.#dependencies;
    await Promise.all([orders.close(transactionId), pockets.release(agentId, transactionId)]);
  }

  fence(places: readonly FencedPlace[]): Promise<void> {
    return this.#dependencies.pockets.fence(places);
  }

  /** The pocket's money is part of the wallet's balance. */
  balance(): Promise<RailBalance> {
    return Promise.resolve({ kind: "none" });
  }

  /** The pocket is closed together with its wallet. */
  detach(): Promise<Detachment> {
    return Promise.resolve("detached");
  }
}

export const challengeRailOf = (
  { config, pockets }: Pick<Wallets, "config" | "pockets">,
  others: Pick<ChallengeRailDependencies, "clock" | "orders" | "shops">,
): ChallengeRail =>
  new ChallengeRail({ ...others, pockets, chainCaip2: caip2Of(config.chainId), pollMs: config.pollMs });

/**
 * Returns the nonce that the seller requires, or else one derived from the payment: even if the service lost its
 * records, no two authorizations for one payment could settle.
 */
const nonceOf = (transactionId: string, order: Order | null): Hex =>
  order?.offer.nonce ?? nonceFor(`${transactionId}/1`);

const handKey = (agentId: string, keyHash: string): string => `${agentId}/${keyHash}`;

const outcomeOf = (refusal: OrderRefusal): RailOutcome =>
  refusal.code === "WITHHELD"
    ? { status: "withheld" }
    : { status: "failed", code: refusal.code, reason: refusal.reason };
