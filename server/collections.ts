import type { Collection, Db, Document } from "mongodb";
import type {
  AgentDocument,
  ApprovalDocument,
  TeamDocument,
  TransactionDocument,
} from "../activities/documents.ts";
import { COLLECTIONS } from "../activities/documents.ts";

/** A create that was asked for under an idempotency key, and the id it is given for good. */
export interface AgentCreateDocument extends Document {
  _id: string;
  payloadHash: string;
  agentId: string;
  createdAt: Date;
}

/** The collections that handlers read, typed once. */
export interface Collections {
  readonly agents: Collection<AgentDocument>;
  readonly agentCreates: Collection<AgentCreateDocument>;
  readonly transactions: Collection<TransactionDocument>;
  readonly approvals: Collection<ApprovalDocument>;
  readonly teams: Collection<TeamDocument>;
  readonly organizations: Collection<{ _id: string; status: string }>;
}

export const collectionsOf = (db: Db): Collections => ({
  agents: db.collection(COLLECTIONS.agents),
  agentCreates: db.collection(COLLECTIONS.agentCreates),
  transactions: db.collection(COLLECTIONS.transactions),
  approvals: db.collection(COLLECTIONS.approvals),
  teams: db.collection(COLLECTIONS.teams),
  organizations: db.collection("organizations"),
});
