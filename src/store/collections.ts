import type { RaiseRequestDocument } from "./raise-documents.ts";
import type { Collection, Db, Document } from "mongodb";
import { type AuditDocument, auditLogOf } from "./audit-documents.ts";
import type {
  AgentDocument,
  ApprovalDocument,
  ContainerDocument,
  EventDocument,
  KeyDeliveryDocument,
  ProjectDocument,
  RuledDocument,
  TeamDocument,
  TransactionDocument,
  TransactionSnapshot,
} from "./documents.ts";
import { COLLECTIONS } from "./documents.ts";
import type { RestrictedLevel } from "../domain/rules/restrictions.ts";
import type { ChainTransactionDocument } from "../chain/outbox.ts";
import type { AuthorizationDocument } from "../rails/pocket/authorizations.ts";
import type { CardLedgerDocument } from "../rails/card/network-books.ts";
import {
  AUTH_COLLECTIONS,
  authCollections,
  type InviteDocument,
  type OrganizationDocument,
  type UserDocument,
} from "./identity-documents.ts";
import type { LogoDocument } from "../containers/logos.ts";
import type { DailyCreatesDocument, OrganizationKeyDocument } from "./organization-key-documents.ts";
import type { Indexes } from "./indexes.ts";

/**
 * A create of an agent, project or team that was requested with an idempotency key, and the permanent id of its result.
 */
export interface CreateDocument extends Document {
  _id: string;
  payloadHash: string;
  createdId: string;
  /** Time at which the create was begun. */
  createdAt: Date;
  /** Lease of the call that executes the create. */
  leaseHolder: string;
  leaseUntil: Date;
}

export interface Collections {
  readonly agents: Collection<AgentDocument>;
  readonly creates: Collection<CreateDocument>;
  readonly keyDeliveries: Collection<KeyDeliveryDocument>;
  readonly events: Collection<EventDocument>;
  readonly transactions: Collection<TransactionDocument>;
  /** Transactions, for readers of `SHOWN_TRANSACTION_FIELDS` only. */
  readonly shownTransactions: Collection<TransactionSnapshot>;
  readonly approvals: Collection<ApprovalDocument>;
  readonly teams: Collection<TeamDocument>;
  readonly organizationKeys: Collection<OrganizationKeyDocument>;
  readonly dailyCreates: Collection<DailyCreatesDocument>;
  readonly projects: Collection<ProjectDocument>;
  /** The collections of projects and teams, typed by their common fields. */
  readonly containers: Readonly<Record<"project" | "team", Collection<ContainerDocument>>>;
  /** Rules and restrictions of each level; an agent's are in a separate collection, under the agent's id. */
  readonly ruled: Readonly<Record<RestrictedLevel, Collection<RuledDocument>>>;
  readonly raiseRequests: Collection<RaiseRequestDocument>;
  readonly auditLog: Collection<AuditDocument>;
  readonly logos: Collection<LogoDocument>;
  readonly organizations: Collection<OrganizationDocument>;
  readonly users: Collection<UserDocument>;
  readonly invites: Collection<InviteDocument>;
  readonly cardLedger: Collection<CardLedgerDocument>;
  readonly chainTransactions: Collection<ChainTransactionDocument>;
  readonly pocketAuthorizations: Collection<AuthorizationDocument>;
}

const DAILY_CREATES = "daily_creates";

export const collectionsOf = (db: Db): Collections => ({
  agents: db.collection(COLLECTIONS.agents),
  creates: db.collection(COLLECTIONS.creates),
  keyDeliveries: db.collection(COLLECTIONS.keyDeliveries, { readPreference: "primary" }),
  events: db.collection(COLLECTIONS.events),
  transactions: db.collection(COLLECTIONS.transactions),
  shownTransactions: db.collection(COLLECTIONS.transactions),
  approvals: db.collection(COLLECTIONS.approvals),
  teams: db.collection(COLLECTIONS.teams),
  // Reads keys from the primary whatever the connection says: a revoked key is dead on its next request.
  organizationKeys: db.collection(AUTH_COLLECTIONS.organizationKeys, { readPreference: "primary" }),
  dailyCreates: db.collection(DAILY_CREATES, { readPreference: "primary" }),
  projects: db.collection(COLLECTIONS.projects),
  containers: { project: db.collection(COLLECTIONS.projects), team: db.collection(COLLECTIONS.teams) },
  // Read from the primary: a change binds the next payment.
  ruled: {
    project: db.collection(COLLECTIONS.projects, { readPreference: "primary" }),
    team: db.collection(COLLECTIONS.teams, { readPreference: "primary" }),
    agent: db.collection(COLLECTIONS.agentRestrictions, { readPreference: "primary" }),
  },
  raiseRequests: db.collection(COLLECTIONS.raiseRequests, { readPreference: "primary" }),
  auditLog: auditLogOf(db),
  logos: db.collection("logos"),
  organizations: authCollections(db).organizations,
  users: authCollections(db).users,
  invites: authCollections(db).invites,
  cardLedger: db.collection(COLLECTIONS.sandboxCardLedger),
  chainTransactions: db.collection(COLLECTIONS.chainTransactions),
  pocketAuthorizations: db.collection(COLLECTIONS.pocketAuthorizations),
});

/** Indexes of collections that only the server writes. */
export const SERVER_INDEXES: Indexes = {
  [AUTH_COLLECTIONS.organizationKeys]: [
    { key: { hash: 1 }, name: "hash_unique", unique: true, reader: "authentication of organization keys" },
    {
      key: { organizationId: 1, createdAt: -1, _id: -1 },
      name: "organization",
      reader: "the list of organization keys",
    },
  ],
  [DAILY_CREATES]: [
    {
      key: { expiresAt: 1 },
      name: "expiry",
      expireAfterSeconds: 0,
      reader: "removes the counts of past days",
    },
  ],
  [COLLECTIONS.raiseRequests]: [
    {
      key: { openOf: 1 },
      name: "open_unique",
      reader: "an agent has one open request for a raise",
      unique: true,
      partialFilterExpression: { openOf: { $gt: "" } },
    },
    {
      key: { agentId: 1, keyHash: 1 },
      name: "key_unique",
      unique: true,
      reader: "replays of an idempotency key",
    },
  ],
  [COLLECTIONS.teams]: [
    { key: { projectId: 1, archivedAt: 1 }, name: "project", reader: "live teams of a project" },
  ],
};
