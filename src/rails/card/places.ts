import type { Collection, Db, Document } from "mongodb";
import type { CategoryLists } from "../../domain/rules/restrictions.ts";
import type { FencedPlace } from "../../payments/ports.ts";
import { BulkWriter } from "../../store/bulk-writer.ts";
import { COLLECTIONS } from "../../store/documents.ts";
import { type FenceDocument, FenceWriter } from "../../store/fence-writer.ts";
import type { CardLedgerDocument } from "./network-books.ts";

/** A decision in the capture's place that it is never made. Not on any organization's books; found by id alone. */
export interface WithheldDocument extends Document {
  _id: string;
  status: "withheld";
  createdAt: Date;
}

/** A fence in the capture's place, replaced by an entry whose permit is not below it. */
interface FencedDocument extends FenceDocument {
  readonly status: "fenced";
}

/** The order of a card at an issuer, written before the issuer is called. On no books of the sandbox, as `withheld`. */
export interface IssuedDocument extends Document {
  _id: string;
  status: "issued";
  transactionId: string;
  organizationOfCard: string;
  connectionId: string;
  /** Null until the issuer has answered. */
  cardRef: string | null;
  last4: string | null;
  readyUntil: Date;
  /** Categories that the card is made for: a repeated order is the same one, whatever restrictions say by then. */
  categories: CategoryLists;
  /** Null: none. Said by the issuer, for good. */
  refusal: { readonly code: "CARD_NOT_ISSUED" | "INSUFFICIENT_FUNDS"; readonly reason: string } | null;
  /** Time of the newest request that its network made; null: none. */
  askedAt: Date | null;
  closedAt: Date | null;
  createdAt: Date;
  /** MAC over what the card stands for (`AccessProofs`). */
  proof: string;
}

export type Entry = CardLedgerDocument | WithheldDocument | FencedDocument | IssuedDocument;

export const isWithheld = (entry: Entry): entry is WithheldDocument => entry.status === "withheld";
export const isFence = (entry: Entry): entry is FencedDocument => entry.status === "fenced";
export const isIssued = (entry: Entry): entry is IssuedDocument => entry.status === "issued";
export const isEffect = (entry: Entry): entry is CardLedgerDocument =>
  !isWithheld(entry) && !isFence(entry) && !isIssued(entry);

export const placeOf = (transactionId: string): string => `capture/${transactionId}`;

/**
 * The place of each card payment's first entry: a capture of the sandbox, a card at an issuer, or that there is neither. The first
 * write decides which, once for all processes; a fence only keeps older permits out.
 */
export class CardPlaces {
  readonly #ledger: Collection<Entry>;
  readonly #writes: BulkWriter<Entry>;
  readonly #fences: FenceWriter;

  constructor(db: Db) {
    this.#ledger = db.collection<Entry>(COLLECTIONS.sandboxCardLedger);
    this.#writes = new BulkWriter(this.#ledger);
    this.#fences = new FenceWriter(db.collection(COLLECTIONS.sandboxCardLedger));
  }

  of(transactionId: string): Promise<Entry | null> {
    return this.#ledger.findOne({ _id: placeOf(transactionId) });
  }

  /** Whether the place was empty, or had a fence that is not above the permit. */
  async put(document: Exclude<Entry, FencedDocument>, permit: number): Promise<boolean> {
    if ((await this.#writes.write({ insertOne: { document } })) === "written") return true;
    const { _id, ...replacement } = document;
    const filter = { _id, fence: { $lte: permit } };
    // Anything else in the place is met by the insert that `upsert` falls back on.
    return (await this.#writes.write({ replaceOne: { filter, replacement, upsert: true } })) === "written";
  }

  /** Whether it is never charged now: else the place has something. */
  withhold(transactionId: string, createdAt: Date): Promise<boolean> {
    return this.put({ _id: placeOf(transactionId), status: "withheld", createdAt }, Infinity);
  }

  async fence(places: readonly FencedPlace[], createdAt: Date): Promise<void> {
    await Promise.all(
      places.map(({ fence, transactionId }) =>
        this.#fences.lay({ _id: placeOf(transactionId), status: "fenced", fence, createdAt }),
      ),
    );
  }
}
