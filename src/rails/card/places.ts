import type { Collection, Db, Document } from "mongodb";
import type { CategoryLists } from "../../domain/rules/restrictions.ts";
import type { FencedPlace } from "../../payments/ports.ts";
import { BulkWriter } from "../../store/bulk-writer.ts";
import { COLLECTIONS } from "../../store/documents.ts";
import { type FenceDocument, FenceWriter } from "../../store/fence-writer.ts";
import type { CardLedgerDocument } from "./network-books.ts";

/** A decision in the capture's place that the capture is never made. On no organization's books; found only by id. */
export interface WithheldDocument extends Document {
  _id: string;
  status: "withheld";
  createdAt: Date;
}

/** A fence in the capture's place. An entry with at least the fence's permit replaces it. */
interface FencedDocument extends FenceDocument {
  readonly status: "fenced";
}

/**
 * The order of a card at an issuer, written before the issuer is called. Like `withheld`, not on the sandbox's books.
 */
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
  /** Time of the network's newest request; null if there was none. */
  askedAt: Date | null;
  closedAt: Date | null;
  createdAt: Date;
  /** MAC over the fields that define the card (`AccessProofs`). */
  proof: string;
}

export type Entry = CardLedgerDocument | WithheldDocument | FencedDocument | IssuedDocument;

export const isWithheld = (entry: Entry): entry is WithheldDocument => entry.status === "withheld";
export const isFence = (entry: Entry): entry is FencedDocument => entry.status === "fenced";
export const isIssued = (entry: Entry): entry is IssuedDocument => entry.status === "issued";
export const isEffect = (entry: Entry): entry is CardLedgerDocument =>
  !isWithheld(entry) && !isFence(entry) && !isIssued(entry);

/** Prefix of the ids under which a connection check orders its trial cards, which are of no payment. */
export const CHECK_PREFIX = "check_";
export const isCheck = ({ transactionId }: Pick<IssuedDocument, "transactionId">): boolean =>
  transactionId.startsWith(CHECK_PREFIX);

export const placeOf = (transactionId: string): string => `capture/${transactionId}`;

/**
 * The place of each card payment's first entry: a capture of the sandbox, a card at an issuer, or the decision for
 * neither. The first write decides for all processes; a fence only keeps older permits out.
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

  /** Puts an entry into its place. False unless the place was empty, or had a fence not above the permit. */
  async put(document: Exclude<Entry, FencedDocument>, permit: number): Promise<boolean> {
    if ((await this.#writes.write({ insertOne: { document } })) === "written") return true;
    const { _id, ...replacement } = document;
    const filter = { _id, fence: { $lte: permit } };
    // If anything else is in the place, the insert that `upsert` falls back on conflicts with it.
    return (await this.#writes.write({ replaceOne: { filter, replacement, upsert: true } })) === "written";
  }

  /** Ensures that the payment is never charged. False if its place is taken. */
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
