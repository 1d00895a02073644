import type { Collection, Db, Document } from "mongodb";
import type { Payment, RailOutcome, StoredPayment } from "../domain/ledger/payment.ts";
import type { AgentProfile } from "../domain/agent/state.ts";
import { BulkWriter } from "../store/bulk-writer.ts";
import { COLLECTIONS } from "../store/documents.ts";
import { type FenceDocument, FenceWriter } from "../store/fence-writer.ts";
import type {
  Clock,
  Detachment,
  FencedPlace,
  RailBalance,
  RailPort,
  SendOutcome,
} from "../payments/ports.ts";

/** Merchants at which the sandbox processor behaves specially. */
export const SANDBOX_MERCHANTS = {
  decline: "sandbox-decline",
  reverse: "sandbox-reverse",
  slow: "sandbox-slow",
  flaky: "sandbox-flaky",
} as const;

export const SLOW_SETTLEMENT_SECONDS = 3;
export const REVERSAL_AFTER_SECONDS = 1;

/** An effect on the processor's books; the id makes each effect of a transaction happen once. */
export interface CardLedgerDocument extends Document {
  _id: string;
  organizationId: string;
  transactionId: string;
  merchant: string;
  amountCents: number;
  status: "captured" | "reversed";
  createdAt: Date;
  /** Time until which the capture is not final. */
  settlesAt: Date | null;
  reversesAt: Date | null;
}

/** A decision in the capture's place that it is never made. Not on any organization's books; found by id alone. */
interface WithheldDocument extends Document {
  _id: string;
  status: "withheld";
  createdAt: Date;
}

/** A fence in the capture's place, replaced by a capture whose permit is not below it. */
interface FencedDocument extends FenceDocument {
  readonly status: "fenced";
}

type Entry = CardLedgerDocument | WithheldDocument | FencedDocument;

/** The processor took the call, and the line broke before it answered. */
export class ProcessorConnectionLost extends Error {
  override readonly name = "ProcessorConnectionLost";
}

const DECLINED = {
  status: "failed",
  code: "CARD_DECLINED",
  reason: "The card issuer declined the payment.",
} as const;

const captureId = (transactionId: string): string => `capture/${transactionId}`;
const reversalId = (transactionId: string): string => `reversal/${transactionId}`;

/**
 * The sandbox's card processor: a real counterpart with books of its own in MongoDB. A charge is idempotent by
 * transaction id: its entry's id is made of it, and the journaled insert is the effect. A decline makes no entry.
 */
export class CardSandbox implements RailPort {
  readonly capabilities = { finality: "instant", reversible: true } as const;
  readonly #ledger: Collection<Entry>;
  readonly #writes: BulkWriter<Entry>;
  readonly #fences: FenceWriter;
  readonly #clock: Clock;

  constructor(db: Db, clock: Clock) {
    this.#ledger = db.collection<Entry>(COLLECTIONS.sandboxCardLedger);
    this.#writes = new BulkWriter(this.#ledger);
    this.#fences = new FenceWriter(db.collection(COLLECTIONS.sandboxCardLedger));
    this.#clock = clock;
  }

  async send(profile: AgentProfile, payment: Payment, permit: number): Promise<SendOutcome> {
    const { transactionId, recipient: merchant } = payment.request;
    if (merchant === SANDBOX_MERCHANTS.decline) return DECLINED;
    const entry = this.#capture(profile, payment);
    if (!(await this.#put(entry, permit))) return (await this.query(payment)) ?? { status: "fenced" };
    if (merchant === SANDBOX_MERCHANTS.flaky) throw new ProcessorConnectionLost(transactionId);
    return this.#outcome(entry);
  }

  async query(payment: StoredPayment): Promise<RailOutcome | null> {
    const { transactionId, amountCents } = payment.request;
    const entry = await this.#ledger.findOne({ _id: captureId(transactionId) });
    if (entry === null || isFence(entry)) return null;
    if (isWithheld(entry)) return { status: "withheld" };
    if (entry.amountCents !== amountCents) throw new Error(`another amount under ${transactionId}`);
    if (entry.reversesAt !== null && entry.reversesAt <= this.#clock()) {
      await this.#reverse(entry, entry.reversesAt);
      return { status: "reversed" };
    }
    const reversal = await this.#ledger.findOne({ _id: reversalId(transactionId) });
    return reversal === null ? this.#outcome(entry) : { status: "reversed" };
  }

  /** The processor settles by itself; there is nothing to do but to ask. */
  settle(_profile: AgentProfile, payment: Payment): Promise<RailOutcome | null> {
    return this.query(payment);
  }

  /** Inserts the refusal in the capture's place, so that exactly one of the two exists, whichever comes first. */
  async withhold(_profile: AgentProfile, payment: Payment): Promise<RailOutcome> {
    // A withdrawn payment has no entry.
    if (payment.request.recipient === SANDBOX_MERCHANTS.decline) return DECLINED;
    const _id = captureId(payment.request.transactionId);
    const document = { _id, status: "withheld", createdAt: this.#clock() } as const;
    if (await this.#put(document, Infinity)) return { status: "withheld" };
    return (await this.query(payment)) ?? unreachable(payment.request.transactionId);
  }

  async fence(places: readonly FencedPlace[]): Promise<void> {
    const createdAt = this.#clock();
    await Promise.all(
      places.map(({ fence, transactionId }) =>
        this.#fences.lay({ _id: captureId(transactionId), status: "fenced", fence, createdAt }),
      ),
    );
  }

  async reverse({ request }: Payment): Promise<RailOutcome> {
    const entry = await this.#ledger.findOne({ _id: captureId(request.transactionId) });
    if (entry === null || !isEffect(entry)) throw new Error(`${request.transactionId} was never captured`);
    await this.#reverse(entry, this.#clock());
    return { status: "reversed" };
  }

  balance(): Promise<RailBalance> {
    return Promise.resolve({ kind: "none" });
  }

  /** The card is the organization's, and an agent has no right of its own on it. */
  detach(): Promise<Detachment> {
    return Promise.resolve("detached");
  }

  /** Whether the place was empty, or had a fence that is not above the permit. */
  async #put(document: CardLedgerDocument | WithheldDocument, permit: number): Promise<boolean> {
    if ((await this.#writes.write({ insertOne: { document } })) === "written") return true;
    const { _id, ...replacement } = document;
    const filter = { _id, fence: { $lte: permit } };
    // Anything else in the place is met by the insert that `upsert` falls back on.
    return (await this.#writes.write({ replaceOne: { filter, replacement, upsert: true } })) === "written";
  }

  #capture(profile: AgentProfile, payment: Payment): CardLedgerDocument {
    const { transactionId, recipient: merchant, amountCents } = payment.request;
    const now = this.#clock();
    const after = (seconds: number) => new Date(now.getTime() + seconds * 1_000);
    return {
      _id: captureId(transactionId),
      organizationId: profile.organizationId,
      transactionId,
      merchant,
      amountCents,
      status: "captured",
      createdAt: now,
      settlesAt: merchant === SANDBOX_MERCHANTS.slow ? after(SLOW_SETTLEMENT_SECONDS) : null,
      reversesAt: merchant === SANDBOX_MERCHANTS.reverse ? after(REVERSAL_AFTER_SECONDS) : null,
    };
  }

  #outcome(entry: CardLedgerDocument): RailOutcome {
    if (entry.settlesAt !== null && entry.settlesAt > this.#clock()) return { status: "pending" };
    return { status: "settled", final: entry.reversesAt === null };
  }

  async #reverse(entry: CardLedgerDocument, createdAt: Date): Promise<void> {
    const _id = reversalId(entry.transactionId);
    const reversal: CardLedgerDocument = { ...entry, _id, status: "reversed", createdAt };
    await this.#writes.write({ insertOne: { document: reversal } });
  }
}

const isWithheld = (entry: Entry): entry is WithheldDocument => entry.status === "withheld";
const isFence = (entry: Entry): entry is FencedDocument => entry.status === "fenced";
const isEffect = (entry: Entry): entry is CardLedgerDocument => !isWithheld(entry) && !isFence(entry);

function unreachable(transactionId: string): never {
  throw new Error(`the ledger has lost its entry of ${transactionId}`);
}
