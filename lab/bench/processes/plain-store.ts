import { createHmac } from "node:crypto";
import type { Collection, Db, Document } from "mongodb";

/** An agent with its key and what it may still spend. */
export interface AccountDocument extends Document {
  _id: string;
  keyHash: string;
  teamId: string;
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

/** The cap of the project, or of a team, and what is left of it. */
export interface LevelDocument extends Document {
  _id: string;
  remainingCents: number;
  spentCents: number;
}

export interface PlainStore {
  readonly accounts: Collection<AccountDocument>;
  readonly entries: Collection<EntryDocument>;
  readonly levels: Collection<LevelDocument>;
}

export const plainStore = (db: Db): PlainStore => ({
  accounts: db.collection("accounts"),
  entries: db.collection("entries"),
  levels: db.collection("levels"),
});

export const PROJECT = "project";

export const hashKey = (key: string): string => createHmac("sha256", "pepper").update(key).digest("hex");
