import type { Collection, Db, Document } from "mongodb";
import type { CategoryLists } from "../../domain/rules/restrictions.ts";
import type { ChangeFeed, Clock, FencedPlace } from "../../payments/ports.ts";
import { BulkWriter } from "../../store/bulk-writer.ts";
import { COLLECTIONS } from "../../store/documents.ts";
import { type FenceDocument, FenceWriter } from "../../store/fence-writer.ts";
import type { Indexes } from "../../store/indexes.ts";
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
  /** MAC over all fields but `askedAt` (`AccessProofs`). */
  proof: string;
}

interface Marked {
  readonly _id: string;
  readonly unbookedAt: Date;
}

export type Entry = CardLedgerDocument | WithheldDocument | FencedDocument | IssuedDocument;

export const isWithheld = (entry: Entry): entry is WithheldDocument => entry.status === "withheld";
export const isFence = (entry: Entry): entry is FencedDocument => entry.status === "fenced";
export const isIssued = (entry: Entry): entry is IssuedDocument => entry.status === "issued";
export const isEffect = (entry: Entry): entry is CardLedgerDocument =>
  !isWithheld(entry) && !isFence(entry) && !isIssued(entry);

/** Prefix of the ids under which a connection check orders its trial cards, which are of no payment. */
export const CHECK_PREFIX = "check_";
export const CHECK_IDS = new RegExp(`^${CHECK_PREFIX}`);
export const isCheck = ({ transactionId }: Pick<IssuedDocument, "transactionId">): boolean =>
  CHECK_IDS.test(transactionId);

const PLACES = "capture/";
export const placeOf = (transactionId: string): string => `${PLACES}${transactionId}`;

export const UNBOOKED_INDEXES: Indexes = {
  [COLLECTIONS.sandboxCardLedger]: [
    {
      key: { unbookedAt: 1 },
      partialFilterExpression: { unbookedAt: { $type: "date" } },
      reader: "payments whose changes could not be booked",
    },
  ],
};

/** Maximum payments in a page of those that could not be booked. */
const UNBOOKED_PAGE_SIZE = 100;
/** Time after which the remaining payments that could not be booked are left to the next read. */
const UNBOOKED_MS = 600_000;

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

  /** Marks a payment as changed and not booked. Throws if it has no place. */
  async keepUnbooked(transactionId: string, unbookedAt: Date): Promise<void> {
    const _id = placeOf(transactionId);
    const { matchedCount } = await this.#ledger.updateOne({ _id }, { $set: { unbookedAt } });
    if (matchedCount === 0) throw new Error(`${transactionId} has no place`);
  }

  /** Yields the marked payments, those tried longest ago first. One that is marked again keeps its mark. */
  async *unbooked(clock: Clock): ChangeFeed {
    const began = clock();
    while (clock().getTime() - began.getTime() < UNBOOKED_MS) {
      const marked = await this.#ledger
        .find<Marked>({ unbookedAt: { $type: "date", $lt: began } }, { projection: { unbookedAt: 1 } })
        .sort({ unbookedAt: 1 })
        .limit(UNBOOKED_PAGE_SIZE)
        .toArray();
      if (marked.length === 0) return;
      yield marked.map(({ _id }) => _id.slice(PLACES.length));
      const update = { $unset: { unbookedAt: true } };
      await this.#ledger.bulkWrite(
        marked.map(({ _id, unbookedAt }) => ({ updateOne: { filter: { _id, unbookedAt }, update } })),
      );
    }
  }

  async fence(places: readonly FencedPlace[], createdAt: Date): Promise<void> {
    await Promise.all(
      places.map(({ fence, transactionId }) =>
        this.#fences.lay({ _id: placeOf(transactionId), status: "fenced", fence, createdAt }),
      ),
    );
  }
}
