import { type Db, MongoClient } from "mongodb";
import { type ApprovalDocument, COLLECTIONS } from "../../src/store/documents.ts";
import { approvalEntry } from "./audit/entries.ts";
import type { ApprovalEntry } from "./audit/delivered.ts";

/** Retention of each role: the least that is allowed. */
export const RETENTION_DAYS = 2;
export const RETENTION_SETTINGS = Object.fromEntries(
  ["EVENT", "CREATE", "KEY_DELIVERY", "APPROVAL", "WEBHOOK"].map((what) => [
    `${what}_RETENTION_DAYS`,
    String(RETENTION_DAYS),
  ]),
);

const AGED_MS = (RETENTION_DAYS + 1) * 86_400_000;
/** A create may still be repeated for so long; its key's window is half of that. */
const CREATE_IS_OVER_MS = 60_000;
const CALL_MS = 10_000;

/** Start of each retention. Deliveries of webhooks are left out: the audit holds them against what came. */
const COUNTED_FROM = [
  { name: COLLECTIONS.events, field: "dispatchedAt" },
  { name: COLLECTIONS.approvals, field: "closedAt" },
  { name: COLLECTIONS.keyDeliveries, field: "endedAt" },
  { name: COLLECTIONS.creates, field: "createdAt" },
] as const;

/** Makes what is over as old as if days had passed, so that MongoDB removes it by the service's own indexes while the load goes on. */
export class Aging {
  readonly #mongo: MongoClient;
  readonly #db: Db;
  /** Approvals that were there before they were aged. */
  readonly #approvals = new Map<string, ApprovalEntry>();
  #aged = 0;

  private constructor(mongo: MongoClient) {
    this.#mongo = mongo;
    this.#db = mongo.db();
  }

  static async open(mongodbUri: string): Promise<Aging> {
    const bounds = { serverSelectionTimeoutMS: CALL_MS, socketTimeoutMS: CALL_MS };
    return new Aging(await new MongoClient(mongodbUri, bounds).connect());
  }

  close(): Promise<void> {
    return this.#mongo.close();
  }

  /** Approvals that the retention may have removed since. */
  get approvals(): readonly ApprovalEntry[] {
    return [...this.#approvals.values()];
  }

  /** Records that were made old so far. */
  get aged(): number {
    return this.#aged;
  }

  /** While nothing is under way: what is over then is over for good. */
  async age(): Promise<void> {
    const before = new Date(Date.now() - CREATE_IS_OVER_MS);
    const closed = { closedAt: { $lt: before } };
    const approvals = this.#db.collection<ApprovalDocument>(COLLECTIONS.approvals);
    for (const each of await approvals.find(closed).toArray())
      this.#approvals.set(each._id, approvalEntry(each));
    for (const { field, name } of COUNTED_FROM) {
      const then = new Date(before.getTime() - AGED_MS);
      const isOver = { [field]: { $lt: before, $gt: then } };
      const { modifiedCount } = await this.#db
        .collection(name)
        .updateMany(isOver, [{ $set: { [field]: { $subtract: [`$${field}`, AGED_MS] } } }]);
      this.#aged += modifiedCount;
    }
  }

  /**
   * Returns a line about expired records that are still there; null: there are none. Makes MongoDB look each second
   * instead of each minute.
   */
  async unremoved(): Promise<string | null> {
    await this.#mongo.db("admin").command({ setParameter: 1, ttlMonitorSleepSecs: 1 });
    const before = new Date(Date.now() - RETENTION_DAYS * 86_400_000);
    for (const { field, name } of COUNTED_FROM) {
      const count = await this.#db.collection(name).countDocuments({ [field]: { $lt: before } });
      if (count > 0) return `${String(count)} ${name} are past their retention`;
    }
    return null;
  }
}
