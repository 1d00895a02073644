import type { Collection, Db, Document } from "mongodb";
import type { Hex } from "viem";
import { z } from "zod";
import type { RailFailure } from "../../domain/ledger/payment.ts";
import { isDuplicateKey } from "../../lib/duplicate-key.ts";
import type { Clock } from "../../payments/ports.ts";
import type { AccessProofs } from "../../secrets/access-proofs.ts";
import type { Sealer } from "../../secrets/sealer.ts";
import { COLLECTIONS } from "../../store/documents.ts";
import type { Indexes } from "../../store/indexes.ts";
import type { Frame, Offer } from "./protocols/offer.ts";
import type { ShopRequest } from "./shops.ts";

export interface Order {
  readonly request: ShopRequest;
  readonly offer: Pick<Offer, "frame" | "nonce" | "timeoutSeconds"> & {
    /** In the token's smallest units. */
    readonly units: string;
  };
}

/** A shop's answer as given to the agent. */
export interface ShopAnswer {
  readonly httpStatus: number;
  readonly headers: Readonly<Record<string, string>>;
  /** Null if the shop sent no body. */
  readonly body: string | null;
  readonly bodyEncoding: "utf8" | "base64";
  /** Whether the body exceeded the limit or broke off. */
  readonly isCut: boolean;
}

/** Why a purchase ends unpaid. */
export type OrderRefusal = RailFailure | { readonly code: "WITHHELD" };

/** Everything known about a purchase besides its authorization, by transaction id. */
interface OrderDocument extends Document {
  readonly _id: string;
  readonly agentId: string;
  /** The sealed order. Missing after the purchase has ended, or if it was refused before the order was stored. */
  readonly sealed?: string;
  /** The nonce that the shop requires. */
  readonly nonce?: Hex;
  readonly refusal?: OrderRefusal;
  /** MAC over the refusal (`AccessProofs`). */
  readonly refusalProof?: string;
  readonly receipt?: string;
  /** Latest end of the paid request in flight, which tells its turn from others; a second one waits for it. */
  readonly presentingUntil?: Date;
  readonly isAnswered?: boolean;
  readonly createdAt: Date;
}

/** Fields of a purchase that follow from the shop's answer. */
export type Answered = Pick<OrderDocument, "isAnswered" | "receipt">;

interface AnswerDocument extends Document {
  readonly _id: string;
  readonly sealed: string;
  readonly expiresAt: Date;
}

/** Retention of a paid answer. Until then, repeating the idempotency key returns what was bought. */
const ANSWER_RETENTION_MS = 3_600_000;

/** Retention of an order's record. A purchase ends within minutes; its transaction stays. */
export const ORDER_KEPT_SECONDS = 30 * 86_400;

/** Two payments never share a nonce: the second would look paid by the first. */
export const ORDER_INDEXES: Indexes = {
  [COLLECTIONS.purchases]: [
    {
      key: { agentId: 1, nonce: 1 },
      unique: true,
      partialFilterExpression: { nonce: { $gt: "" } },
      reader: "a seller's nonce pays one purchase",
    },
    {
      key: { createdAt: 1 },
      expireAfterSeconds: ORDER_KEPT_SECONDS,
      reader: "removes orders of purchases that ended long ago",
    },
  ],
  [COLLECTIONS.purchaseAnswers]: [
    { key: { expiresAt: 1 }, expireAfterSeconds: 0, reader: "removes answers after their hour" },
  ],
};

const ORDER = "purchase-order";
const ANSWER = "purchase-answer";

const storedOrder = z.object({
  request: z.object({
    url: z.string(),
    method: z.string(),
    headers: z.record(z.string(), z.string()),
    body: z.string().nullable(),
  }),
  offer: z.object({
    frame: z.custom<Frame>((value) => typeof value === "object" && value !== null),
    nonce: z.custom<Hex>((value) => typeof value === "string").nullable(),
    timeoutSeconds: z.number(),
    units: z.string(),
  }),
});

const storedAnswer = z.object({
  httpStatus: z.number(),
  headers: z.record(z.string(), z.string()),
  body: z.string().nullable(),
  bodyEncoding: z.enum(["utf8", "base64"]),
  isCut: z.boolean(),
});

/** The readable part of an order. */
export interface KnownOrder extends Pick<OrderDocument, "refusal" | "receipt" | "isAnswered" | "createdAt"> {
  readonly order: Order | null;
}

/**
 * Orders and answers of purchases in MongoDB. Both are sealed: they hold the agents' requests to shops, and the goods.
 */
export class Orders {
  readonly #orders: Collection<OrderDocument>;
  readonly #answers: Collection<AnswerDocument>;
  readonly #sealer: Sealer;
  readonly #clock: Clock;
  readonly #proofs: Pick<AccessProofs, "genuine" | "make">;

  constructor(db: Db, sealer: Sealer, clock: Clock, proofs: Pick<AccessProofs, "genuine" | "make">) {
    this.#orders = db.collection(COLLECTIONS.purchases);
    this.#answers = db.collection(COLLECTIONS.purchaseAnswers);
    this.#sealer = sealer;
    this.#clock = clock;
    this.#proofs = proofs;
  }

  async of(transactionId: string): Promise<KnownOrder | null> {
    const found = await this.#orders.findOne({ _id: transactionId });
    if (found === null) return null;
    const { refusal, sealed, ...known } = found;
    const opened = sealed === undefined ? null : this.#opened(ORDER, transactionId, sealed);
    const order = opened === null ? null : storedOrder.parse(opened);
    // A refusal that something other than the service wrote is none.
    const isRefused = refusal !== undefined && this.#proofs.genuine("purchaseRefusal", found) !== null;
    return { ...known, ...(isRefused ? { refusal } : {}), order };
  }

  /**
   * Stores the first order of a purchase; until `turn` only the caller may send the paid request. `there`: another
   * process has stored an order or ended the purchase, and that record stays. `used`: the nonce belongs to another
   * purchase.
   */
  async insert(
    agentId: string,
    transactionId: string,
    order: Order,
    turn: Date,
  ): Promise<"stored" | "used" | "there"> {
    const { nonce } = order.offer;
    const sealed = this.#sealer.seal(ORDER, transactionId, JSON.stringify(order));
    const createdAt = this.#clock();
    const own = { _id: transactionId, agentId, sealed, presentingUntil: turn, createdAt };
    try {
      await this.#orders.insertOne(nonce === null ? own : { ...own, nonce });
      return "stored";
    } catch (error) {
      if (!isDuplicateKey(error)) throw error;
      return (await this.#orders.findOne({ _id: transactionId })) === null ? "used" : "there";
    }
  }

  /** Replaces an order for which nothing was signed. `used`: the nonce belongs to another purchase. */
  async put(agentId: string, transactionId: string, order: Order): Promise<"stored" | "used"> {
    const { nonce } = order.offer;
    const sealed = this.#sealer.seal(ORDER, transactionId, JSON.stringify(order));
    const createdAt = this.#clock();
    const change =
      nonce === null
        ? { $set: { agentId, sealed, createdAt }, $unset: { nonce: "" } as const }
        : { $set: { agentId, sealed, createdAt, nonce } };
    try {
      await this.#orders.updateOne({ _id: transactionId }, change, { upsert: true });
      return "stored";
    } catch (error) {
      if (!isDuplicateKey(error)) throw error;
      // The nonce is taken, or another process has just inserted the order.
      const known = nonce === null ? null : await this.#orders.findOne({ agentId, nonce });
      return known === null || known._id === transactionId ? this.put(agentId, transactionId, order) : "used";
    }
  }

  /** Records for good why the purchase ends unpaid. The first reason stays. */
  async refuse(agentId: string, transactionId: string, refusal: OrderRefusal): Promise<OrderRefusal> {
    const createdAt = this.#clock();
    const refused = { _id: transactionId, refusal };
    const refusalProof = this.#proofs.make("purchaseRefusal", refused);
    try {
      await this.#orders.updateOne(
        { _id: transactionId, refusal: { $exists: false } },
        { $set: { refusal, refusalProof }, $unset: { sealed: "" }, $setOnInsert: { agentId, createdAt } },
        { upsert: true },
      );
    } catch (error) {
      if (!isDuplicateKey(error)) throw error;
    }
    return (await this.of(transactionId))?.refusal ?? refusal;
  }

  /** Returns the caller's turn to send the paid request; null while another process sends it, or if it was answered. */
  async beginPresenting(transactionId: string, withinMs: number): Promise<Date | null> {
    const now = this.#clock();
    const turn = new Date(now.getTime() + withinMs);
    const { matchedCount } = await this.#orders.updateOne(
      {
        _id: transactionId,
        isAnswered: { $ne: true },
        $or: [{ presentingUntil: { $exists: false } }, { presentingUntil: { $lt: now } }],
      },
      { $set: { presentingUntil: turn } },
    );
    return matchedCount === 1 ? turn : null;
  }

  /**
   * Ends a turn, unless it was over and another one has begun. With `answered`, the answer has been kept, and no turn
   * begins any more; with `isOver`, the purchase has ended as well.
   */
  async endPresenting(
    transactionId: string,
    turn: Date,
    answered: Answered = {},
    isOver = false,
  ): Promise<void> {
    const isAnswered = answered.isAnswered === true;
    const own = { _id: transactionId, ...(isAnswered ? {} : { presentingUntil: turn }) };
    const answer = isAnswered ? { $set: answered } : {};
    const over = isOver ? { sealed: "" } : {};
    const change = { ...answer, $unset: { presentingUntil: "", ...over } };
    await this.#orders.updateOne(own, change);
  }

  /** Keeps the first paid answer. */
  async keep(transactionId: string, answer: ShopAnswer): Promise<void> {
    const sealed = this.#sealer.seal(ANSWER, transactionId, JSON.stringify(answer));
    const expiresAt = new Date(this.#clock().getTime() + ANSWER_RETENTION_MS);
    await this.#answers.updateOne(
      { _id: transactionId },
      { $setOnInsert: { sealed, expiresAt } },
      { upsert: true },
    );
  }

  /** Returns the kept answer; null if there is none, it has expired, or its master key is retired. */
  async answerOf(transactionId: string): Promise<ShopAnswer | null> {
    const found = await this.#answers.findOne({ _id: transactionId });
    if (found === null || found.expiresAt <= this.#clock()) return null;
    const opened = this.#opened(ANSWER, transactionId, found.sealed);
    return opened === null ? null : storedAnswer.parse(opened);
  }

  /** Returns what was sealed; null once its master key is retired, which a purchase outlives as if it were erased. */
  #opened(purpose: typeof ORDER | typeof ANSWER, transactionId: string, sealed: string): unknown {
    const text = this.#sealer.tryOpen(purpose, transactionId, sealed);
    return text === null ? null : JSON.parse(text);
  }

  /** Erases the agent's request to the shop once the purchase has ended. */
  async close(transactionId: string): Promise<void> {
    await this.#orders.updateOne({ _id: transactionId }, { $unset: { sealed: "" } });
  }
}
