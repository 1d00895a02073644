import { notRecent } from "../../lib/stamps.ts";
import type { ClientSession, Collection } from "mongodb";
import { refusal } from "../../domain/errors.ts";
import { ok, refused, type Result } from "../../domain/result.ts";
import { type DailyCreatesDocument, dailyCreatesId } from "../../store/organization-key-documents.ts";
import type { OrganizationKeyPrincipal } from "../../identity/principals.ts";
import { isDuplicateKey } from "../../lib/duplicate-key.ts";

/** A slot among a lineage's creates of one UTC day, held by the create with this id. */
export interface QuotaSlot {
  readonly dayId: string;
  readonly createdId: string;
}

/** Age at which the slot of an unfinished create can be reclaimed. */
const ABANDONED_AFTER_MS = 60_000;

/** Maximum attempts when racing with the day's first create or with a reclaim. */
const ROUNDS_MAX = 8;

const DAY_MS = 86_400_000;
const RETENTION_DAYS = 2;

/**
 * Daily create limit of organization keys. Each create takes a slot under its id before it does anything, and its
 * record is committed together with the slot (`confirm`, in the same transaction). So the number of committed creates
 * never exceeds the limit, whichever process creates. An uncommitted slot can be released or reclaimed at any time: a
 * create that lost its slot commits nothing.
 */
export class DailyCreates {
  readonly #days: Collection<DailyCreatesDocument>;

  constructor(days: Collection<DailyCreatesDocument>) {
    this.#days = days;
  }

  /** Returns a slot for a create, its present one or a free one, or else `DAILY_CREATE_LIMIT_REACHED`. */
  async take(
    { dailyCreateLimit: limit, lineageId }: OrganizationKeyPrincipal,
    createdId: string,
    now: Date,
  ): Promise<Result<QuotaSlot>> {
    const dayId = dailyCreatesId(lineageId, now);
    const slot = ok({ dayId, createdId });
    for (let round = 0; round < ROUNDS_MAX; round += 1) {
      if (await this.#add({ dayId, createdId }, limit, now)) return slot;
      const day = await this.#days.findOne({ _id: dayId });
      if (day === null) continue;
      if (day.slots.some(({ id }) => id === createdId)) return slot;
      if (day.slots.length < limit) continue;
      if (!(await this.#reclaim(dayId, now))) return refused(limitReached(now));
    }
    return refused(refusal("CREATE_RETRYABLE", undefined, { retryAfterSeconds: 1 }));
  }

  /** Releases a slot unless its create was committed; a create still in progress can no longer commit. */
  async release({ createdId, dayId }: QuotaSlot): Promise<void> {
    await this.#days.updateOne({ _id: dayId }, { $pull: { slots: { id: createdId, committed: false } } });
  }

  /** Makes a slot permanent, in the transaction that commits the create. Returns false if the create has lost it. */
  async confirm({ createdId, dayId }: QuotaSlot, session: ClientSession): Promise<boolean> {
    const confirmed = await this.#days.updateOne(
      { _id: dayId, "slots.id": createdId },
      { $set: { "slots.$.committed": true } },
      { session },
    );
    return confirmed.matchedCount === 1;
  }

  /** Returns the number of committed creates of the UTC day per lineage. */
  async createdToday(lineageIds: readonly string[], now: Date): Promise<ReadonlyMap<string, number>> {
    const days = [...new Set(lineageIds)].map((lineageId) => [lineageId, dailyCreatesId(lineageId, now)]);
    const committed = { $filter: { input: "$slots", as: "slot", cond: "$$slot.committed" } };
    const counts = await this.#days
      .aggregate<{ _id: string; count: number }>([
        { $match: { _id: { $in: days.map(([, dayId]) => dayId) } } },
        { $project: { count: { $size: committed } } },
      ])
      .toArray();
    const byDay = new Map(counts.map(({ _id, count }) => [_id, count]));
    return new Map(days.map(([lineageId = "", dayId = ""]) => [lineageId, byDay.get(dayId) ?? 0]));
  }

  /** Adds the slot in one conditional update, if there is capacity and none yet; returns whether it did. */
  async #add({ createdId, dayId }: QuotaSlot, limit: number, now: Date): Promise<boolean> {
    const isFree = { [`slots.${limit - 1}`]: { $exists: false } };
    const expiresAt = new Date(startOfNextDay(now) + RETENTION_DAYS * DAY_MS);
    try {
      const added = await this.#days.updateOne(
        { _id: dayId, "slots.id": { $ne: createdId }, ...isFree },
        {
          $push: { slots: { id: createdId, reservedAt: now, committed: false } },
          $setOnInsert: { expiresAt },
        },
        { upsert: true },
      );
      return added.modifiedCount + added.upsertedCount === 1;
    } catch (error) {
      // The day exists and the condition does not hold, or another server has just inserted the day.
      if (isDuplicateKey(error)) return false;
      throw error;
    }
  }

  /** Frees the slots of creates that died long ago; returns whether there were any. */
  async #reclaim(dayId: string, now: Date): Promise<boolean> {
    const reservedAt = notRecent(now.getTime(), ABANDONED_AFTER_MS);
    const freed = await this.#days.updateOne(
      { _id: dayId },
      { $pull: { slots: { committed: { $eq: false }, reservedAt } } },
    );
    return freed.modifiedCount === 1;
  }
}

const startOfNextDay = (now: Date): number => (Math.floor(now.getTime() / DAY_MS) + 1) * DAY_MS;

function limitReached(now: Date) {
  const retryAfterSeconds = Math.ceil((startOfNextDay(now) - now.getTime()) / 1_000);
  return refusal("DAILY_CREATE_LIMIT_REACHED", undefined, { retryAfterSeconds });
}
