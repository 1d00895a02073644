import type { Collection, Db, Document } from "mongodb";
import type { Hex } from "viem";
import { z } from "zod";
import type { RailFailure } from "../../domain/ledger/payment.ts";
import { isDuplicateKey } from "../../lib/duplicate-key.ts";
import type { Clock } from "../../payments/ports.ts";
import type { Sealer } from "../../secrets/sealer.ts";
import { COLLECTIONS } from "../../store/documents.ts";
import type { Indexes } from "../../store/indexes.ts";
import type { Frame, Offer } from "./protocols/offer.ts";
import type { ShopRequest } from "./shops.ts";

/** Request to a shop, and the offer that is taken. */
export interface Order {
  readonly request: ShopRequest;
  readonly offer: Pick<Offer, "frame" | "nonce" | "timeoutSeconds"> & {
    /** The token's smallest units. */
    readonly units: string;
  };
}

/** An answer of a shop as it is given to the agent. */
export interface ShopAnswer {
  readonly httpStatus: number;
  readonly headers: Readonly<Record<string, string>>;
  /** Null: the shop sent no body. */
  readonly body: string | null;
  readonly bodyEncoding: "utf8" | "base64";
  /** Whether the body was longer, or broke off. */
  readonly isCut: boolean;
}

/** Why a purchase ends unpaid. */
export type OrderRefusal = RailFailure | { readonly code: "WITHHELD" };

/** All that is known of a purchase beside its authorization, by transaction id. */
interface OrderDocument extends Document {
  readonly _id: string;
  readonly agentId: string;
  /** The order, sealed; missing where the purchase was refused before, and after its end. */
  readonly sealed?: string;
  /** The nonce that the shop demands. */
  readonly nonce?: Hex;
  readonly refusal?: OrderRefusal;
  readonly receipt?: string;
  /** The paid request is under way until then at the latest; another one waits. */
  readonly presentingUntil?: Date;
  readonly isAnswered?: boolean;
  readonly createdAt: Date;
}

/** Part of a purchase that follows from the shop's answer. */
export type Answered = Pick<OrderDocument, "isAnswered" | "receipt">;

interface AnswerDocument extends Document {
  readonly _id: string;
  readonly sealed: string;
  readonly expiresAt: Date;
}

/** The time for which a paid answer is kept: so long the same key gets what was bought. */
const ANSWER_KEPT_MS = 3_600_000;

/** The time for which an order's record is kept. A purchase ends within minutes of it; its transaction stays. */
export const ORDER_KEPT_SECONDS = 30 * 86_400;

/** Two payments never share a nonce: the second would look paid by the first. */
export const ORDER_INDEXES: Indexes = {
  [COLLECTIONS.purchases]: [
    {
      key: { agentId: 1, nonce: 1 },
      unique: true,
      partialFilterExpression: { nonce: { $type: "string" } },
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

/** Readable part of an order. */
export interface KnownOrder extends Pick<OrderDocument, "refusal" | "receipt" | "isAnswered" | "createdAt"> {
  readonly order: Order | null;
}

/** Orders and answers of purchases in MongoDB, both sealed: they hold what agents say to shops, and what they bought. */
export class Orders {
  readonly #orders: Collection<OrderDocument>;
  readonly #answers: Collection<AnswerDocument>;
  readonly #sealer: Sealer;
  readonly #clock: Clock;

  constructor(db: Db, sealer: Sealer, clock: Clock) {
    this.#orders = db.collection(COLLECTIONS.purchases);
    this.#answers = db.collection(COLLECTIONS.purchaseAnswers);
    this.#sealer = sealer;
    this.#clock = clock;
  }

  async of(transactionId: string): Promise<KnownOrder | null> {
    const found = await this.#orders.findOne({ _id: transactionId });
    if (found === null) return null;
    const { sealed } = found;
    const order =
      sealed === undefined
        ? null
        : storedOrder.parse(JSON.parse(this.#sealer.open(ORDER, transactionId, sealed)));
    return { ...found, order };
  }

  /** Stores the first order of a purchase. `there`: another process has stored one, or ended the purchase, and keeps its place. */
  async insert(agentId: string, transactionId: string, order: Order): Promise<"stored" | "used" | "there"> {
    const { nonce } = order.offer;
    const sealed = this.#sealer.seal(ORDER, transactionId, JSON.stringify(order));
    const own = { _id: transactionId, agentId, sealed, createdAt: this.#clock() };
    try {
      await this.#orders.insertOne(nonce === null ? own : { ...own, nonce });
      return "stored";
    } catch (error) {
      if (!isDuplicateKey(error)) throw error;
      return (await this.#orders.findOne({ _id: transactionId })) === null ? "used" : "there";
    }
  }

  /** Stores the order, in the place of an earlier one that nothing was signed for. `used`: its nonce is another purchase's. */
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

  /** Notes for good why the purchase ends unpaid; the first reason stays. */
  async refuse(agentId: string, transactionId: string, refusal: OrderRefusal): Promise<OrderRefusal> {
    const createdAt = this.#clock();
    try {
      await this.#orders.updateOne(
        { _id: transactionId, refusal: { $exists: false } },
        { $set: { refusal }, $unset: { sealed: "" }, $setOnInsert: { agentId, createdAt } },
        { upsert: true },
      );
    } catch (error) {
      if (!isDuplicateKey(error)) throw error;
    }
    return (await this.#orders.findOne({ _id: transactionId }))?.refusal ?? refusal;
  }

  /** Whether the caller may send the paid request now: nobody else is sending it, and no answer is there. */
  async beginPresenting(transactionId: string, withinMs: number): Promise<boolean> {
    const now = this.#clock();
    const { matchedCount } = await this.#orders.updateOne(
      {
        _id: transactionId,
        isAnswered: { $ne: true },
        $or: [{ presentingUntil: { $exists: false } }, { presentingUntil: { $lt: now } }],
      },
      { $set: { presentingUntil: new Date(now.getTime() + withinMs) } },
    );
    return matchedCount === 1;
  }

  /** `answered`: the answer is kept by now. `isOver`: the purchase has come to its end, too. */
  async endPresenting(transactionId: string, answered: Answered = {}, isOver = false): Promise<void> {
    const answer = answered.isAnswered === true ? { $set: answered } : {};
    const over = isOver ? { sealed: "" } : {};
    const change = { ...answer, $unset: { presentingUntil: "", ...over } };
    await this.#orders.updateOne({ _id: transactionId }, change);
  }

  /** Keeps the first paid answer. */
  async keep(transactionId: string, answer: ShopAnswer): Promise<void> {
    const sealed = this.#sealer.seal(ANSWER, transactionId, JSON.stringify(answer));
    const expiresAt = new Date(this.#clock().getTime() + ANSWER_KEPT_MS);
    await this.#answers.updateOne(
      { _id: transactionId },
      { $setOnInsert: { sealed, expiresAt } },
      { upsert: true },
    );
  }

  /** The answer that was kept; null: there is none, or none any more. */
  async answerOf(transactionId: string): Promise<ShopAnswer | null> {
    const found = await this.#answers.findOne({ _id: transactionId });
    if (found === null || found.expiresAt <= this.#clock()) return null;
    return storedAnswer.parse(JSON.parse(this.#sealer.open(ANSWER, transactionId, found.sealed)));
  }

  /** Erases what the agent said to the shop: the purchase has come to its end. */
  async close(transactionId: string): Promise<void> {
    await this.#orders.updateOne({ _id: transactionId }, { $unset: { sealed: "" } });
  }
}
