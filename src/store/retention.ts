import { type Db, MongoServerError } from "mongodb";
import { COLLECTIONS } from "./documents.ts";

/** How long what is over is kept, in days; 0: for good. The same on servers and workers: who starts last is right. */
export interface Retention {
  /** Events of agents and payments, from when their deliveries were made. */
  readonly eventDays: number;
  /** Which idempotency key has made which agent, project or team, from when that was begun. */
  readonly createDays: number;
  /** What became of agents' creates, from when the window of their first keys was over. */
  readonly keyDeliveryDays: number;
  /** Approvals of payments that have come to their end, from when that was written down. */
  readonly approvalDays: number;
}

/** Where each counts from: a field that is there only once the record is over. */
const RETAINED = [
  { name: COLLECTIONS.events, field: "dispatchedAt", days: "eventDays" },
  { name: COLLECTIONS.creates, field: "createdAt", days: "createDays" },
  { name: COLLECTIONS.keyDeliveries, field: "endedAt", days: "keyDeliveryDays" },
  { name: COLLECTIONS.approvals, field: "closedAt", days: "approvalDays" },
] as const;

export const RETENTION_INDEX = "retention";

const DAY_SECONDS = 86_400;
const DAY_MS = 86_400_000;
const NAMESPACE_NOT_FOUND = 26;
const INDEX_NOT_FOUND = 27;
const INDEX_OPTIONS_CONFLICT = 85;
const UNAUTHORIZED = 13;

/** Has MongoDB remove what was kept for long enough. Idempotent; another retention also applies to what is there already. */
export async function ensureRetention(db: Db, retention: Retention): Promise<void> {
  await Promise.all(RETAINED.map(({ days, field, name }) => setRetention(db, name, field, retention[days])));
}

async function setRetention(db: Db, name: string, field: string, days: number): Promise<void> {
  if (days === 0) return await dropRetention(db, name);
  const expireAfterSeconds = days * DAY_SECONDS;
  const options = { name: RETENTION_INDEX, expireAfterSeconds };
  const create = () => db.collection(name).createIndex({ [field]: 1 }, options);
  try {
    await create();
  } catch (error) {
    if (!isOf(error, INDEX_OPTIONS_CONFLICT)) throw error;
    try {
      await db.command({ collMod: name, index: options });
    } catch (refusal) {
      // The role `readWrite` may build indexes and not change them.
      if (!isOf(refusal, UNAUTHORIZED)) throw refusal;
      await dropRetention(db, name);
      await create();
    }
  }
}

async function dropRetention(db: Db, name: string): Promise<void> {
  try {
    await db.collection(name).dropIndex(RETENTION_INDEX);
  } catch (error) {
    if (!isOf(error, INDEX_NOT_FOUND) && !isOf(error, NAMESPACE_NOT_FOUND)) throw error;
  }
}

const isOf = (error: unknown, code: number): boolean =>
  error instanceof MongoServerError && error.code === code;

/** Approvals of payments that were made before may have been removed; null: all are kept for good. */
export async function approvalsRetainedSince(db: Db, now: Date): Promise<Date | null> {
  const indexes = await db.collection(COLLECTIONS.approvals).indexes();
  const seconds = indexes.find(({ name }) => name === RETENTION_INDEX)?.expireAfterSeconds;
  return seconds === undefined ? null : new Date(now.getTime() - seconds * 1_000);
}

/** Events before that were published long ago, if ever, and may have been removed; null: all are kept for good. */
export const eventsRetainedSince = (eventDays: number, now: Date): number | null =>
  eventDays === 0 ? null : now.getTime() - eventDays * DAY_MS;
