import type { Collection, Db } from "mongodb";
import type { Clock } from "../../payments/ports.ts";
import { COLLECTIONS } from "../../store/documents.ts";

export interface Reservation {
  readonly transactionId: string;
  /** In the token's smallest units. */
  readonly units: bigint;
  readonly at: Date;
}

/** A spend from the wallet to its pocket. */
export interface TopUp {
  readonly number: number;
  readonly cents: number;
}

interface StoredReservation {
  readonly transactionId: string;
  /** Decimal digits. */
  readonly units: string;
  readonly at: Date;
}

export interface PocketDocument {
  /** For example `eip155:1/agt_…`. */
  readonly _id: string;
  readonly agentId: string;
  readonly organizationId: string;
  /** In order of creation, which decides the payments that the pocket's money covers. */
  readonly reservations: StoredReservation[];
  /** Number of releases ever made. */
  readonly releases: number;
  /** Number of top-ups ever begun. */
  readonly topUps: number;
  /** The top-up in flight. */
  readonly topUp: TopUp | null;
  readonly closedAt: Date | null;
}

/** A recorded pocket. Its balance is not stored: the chain knows. */
export interface PocketRecord {
  readonly reservations: readonly Reservation[];
  /** Number of releases ever made. While it stays, no reservation has gone. */
  readonly releases: number;
  readonly topUps: number;
  readonly topUp: TopUp | null;
  readonly isClosed: boolean;
}

/** Records a pocket's reservations and top-ups. Each change is one repeatable write. */
export class PocketRecords {
  readonly #collection: Collection<PocketDocument>;
  readonly #chain: string;
  readonly #clock: Clock;

  constructor(db: Db, chain: string, clock: Clock) {
    const options = { readConcern: { level: "majority" } } as const;
    this.#collection = db.collection(COLLECTIONS.pockets, options);
    this.#chain = chain;
    this.#clock = clock;
  }

  /** Null if the pocket was never used. */
  async read(agentId: string): Promise<PocketRecord | null> {
    const found = await this.#collection.findOne({ _id: this.#id(agentId) });
    return found === null ? null : recordOf(found);
  }

  /** Adds a reservation behind all others, unless the payment has one or the pocket is closed. */
  async reserve(
    agent: { readonly agentId: string; readonly organizationId: string },
    transactionId: string,
    units: bigint,
  ): Promise<PocketRecord> {
    const { agentId, organizationId } = agent;
    const own = { transactionId, units: String(units), at: this.#clock() };
    const before = { $ifNull: ["$reservations", []] };
    const isThere = { $in: [transactionId, { $ifNull: ["$reservations.transactionId", []] }] };
    const isClosed = { $ne: [{ $ifNull: ["$closedAt", null] }, null] };
    const after = {
      $cond: [{ $or: [isThere, isClosed] }, before, { $concatArrays: [before, [{ $literal: own }]] }],
    };
    const change = {
      agentId: { $literal: agentId },
      organizationId: { $literal: organizationId },
      reservations: after,
      releases: { $ifNull: ["$releases", 0] },
      topUps: { $ifNull: ["$topUps", 0] },
      topUp: { $ifNull: ["$topUp", null] },
      closedAt: { $ifNull: ["$closedAt", null] },
    };
    const found = await this.#collection.findOneAndUpdate({ _id: this.#id(agentId) }, [{ $set: change }], {
      upsert: true,
      returnDocument: "after",
    });
    if (found === null) throw new Error(`the pocket of agent ${agentId} was not recorded`);
    return recordOf(found);
  }

  /** Returns the number of releases ever made, this one included; null if the pocket was never used. */
  async release(agentId: string, transactionIds: readonly string[]): Promise<number | null> {
    const pulled = { reservations: { transactionId: { $in: [...transactionIds] } } };
    const found = await this.#collection.findOneAndUpdate(
      { _id: this.#id(agentId) },
      { $pull: pulled, $inc: { releases: 1 } },
      { returnDocument: "after", projection: { releases: 1 } },
    );
    return found?.releases ?? null;
  }

  /** Begins the next top-up, unless one is in flight. */
  async beginTopUp(agentId: string, topUp: TopUp): Promise<void> {
    const free = { _id: this.#id(agentId), topUp: null, topUps: topUp.number - 1, closedAt: null };
    await this.#collection.updateOne(free, { $set: { topUp, topUps: topUp.number } });
  }

  async endTopUp(agentId: string, { number }: TopUp): Promise<void> {
    const own = { _id: this.#id(agentId), "topUp.number": number };
    await this.#collection.updateOne(own, { $set: { topUp: null } });
  }

  /** Closes a pocket for good. False if it was never used. */
  async close(agentId: string): Promise<boolean> {
    const closing = [{ $set: { closedAt: { $ifNull: ["$closedAt", this.#clock()] } } }];
    return (await this.#collection.updateOne({ _id: this.#id(agentId) }, closing)).matchedCount > 0;
  }

  #id(agentId: string): string {
    return `${this.#chain}/${agentId}`;
  }
}

const recordOf = ({ closedAt, releases, reservations, topUp, topUps }: PocketDocument): PocketRecord => ({
  reservations: reservations.map(({ at, transactionId, units }) => ({
    transactionId,
    units: BigInt(units),
    at,
  })),
  releases,
  topUps,
  topUp,
  isClosed: closedAt !== null,
});

/** Sum of the reservations; with `through`, up to and including this payment's. */
export function reservedUnits({ reservations }: PocketRecord, through: string | null = null): bigint {
  let sum = 0n;
  for (const { transactionId, units } of reservations) {
    sum += units;
    if (transactionId === through) break;
  }
  return sum;
}
