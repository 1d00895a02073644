import { type Db, MongoServerError } from "mongodb";
import { COLLECTIONS } from "./documents.ts";

/** Retention of finished records in days; 0: for good. Servers and workers must agree: the last to start wins. */
export interface Retention {
  /** Events of agents and payments, counted from the creation of their deliveries. */
  readonly eventDays: number;
  /** Idempotency keys of creates of agents, projects and teams, counted from the create's beginning. */
  readonly createDays: number;
  /** Outcomes of agents' creates, counted from the end of the first key's delivery window. */
  readonly keyDeliveryDays: number;
  /** Approvals of finished payments, counted from the recording of the payment's end. */
  readonly approvalDays: number;
}

/** Field that each retention counts from; set only once the record is finished. */
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

/** Sets the TTL indexes. Idempotent; a changed retention also applies to existing records. */
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
      // The role `readWrite` may create indexes but not modify them.
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

/** Returns the time before which approvals of payments may have been removed; null if all are kept. */
export async function approvalsRetainedSince(db: Db, now: Date): Promise<Date | null> {
  const indexes = await db.collection(COLLECTIONS.approvals).indexes();
  const seconds = indexes.find(({ name }) => name === RETENTION_INDEX)?.expireAfterSeconds;
  return seconds === undefined ? null : new Date(now.getTime() - seconds * 1_000);
}

/** Returns the time before which events may have been removed; null if all are kept. */
export const eventsRetainedSince = (eventDays: number, now: Date): number | null =>
  eventDays === 0 ? null : now.getTime() - eventDays * DAY_MS;
