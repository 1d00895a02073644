import { createHmac } from "node:crypto";
import type { Collection, Db, Document } from "mongodb";

/** An agent with its key and what it may still spend. */
export interface AccountDocument extends Document {
  _id: string;
  keyHash: string;
  remainingCents: number;
  spentCents: number;
}

export interface EntryDocument extends Document {
  _id: string;
  accountId: string;
  idempotencyKey: string;
  amountCents: number;
  merchant: string;
  purpose: string;
  createdAt: Date;
}

export interface PlainStore {
  readonly accounts: Collection<AccountDocument>;
  readonly entries: Collection<EntryDocument>;
}

export const plainStore = (db: Db): PlainStore => ({
  accounts: db.collection("accounts"),
  entries: db.collection("entries"),
});

export const hashKey = (key: string): string => createHmac("sha256", "pepper").update(key).digest("hex");
