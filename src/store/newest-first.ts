import { COLLECTIONS } from "./documents.ts";
import type { Index, Indexes } from "./indexes.ts";

/** The key of an index. */
export type IndexKey = Readonly<Record<string, 1 | -1>>;

/** The field that says when a record was made, by which it is newer or older than others. */
export type TimeField = "createdAt" | "at";

/**
 * The key of the index that holds the records which have some fields in common, newest first. A list names the same fields
 * in the same order (src/store/lists.ts), and is read through exactly this index. `behind`: fields that it holds besides.
 */
export const newestFirst = (
  fields: readonly string[],
  newestBy: TimeField = "createdAt",
  behind: readonly string[] = [],
): IndexKey => ({
  ...Object.fromEntries(fields.map((field) => [field, 1 as const])),
  [newestBy]: -1,
  _id: -1,
  ...Object.fromEntries(behind.map((field) => [field, 1 as const])),
});

/** The scopes of agents, payments and approvals, the widest first: each is nested in the one before, for good. */
const AGENT_SCOPES = ["organizationId", "projectId", "teamId"] as const;
const PAYMENT_SCOPES = [...AGENT_SCOPES, "agentId"] as const;

/** Fields that a summary of payments is made of, so that it reads keys and no record. */
const SUMMARIZED = {
  organizationId: 1,
  createdAt: -1,
  agentId: 1,
  teamId: 1,
  projectId: 1,
  rail: 1,
  status: 1,
  amountCents: 1,
} as const;
export const SUMMARY_INDEX = "summary";

/** The payments whose sums have changed later, by when. */
const MOVED = { organizationId: 1, "moved.at": -1 } as const;
export const MOVED_INDEX = "moved";

/**
 * Indexes by which payments are searched. They end with the time, and a search sorts the few records that it reads by
 * their ids itself: the id beside each of a payment's words would triple the index.
 */
export const WORDS_INDEX = { organizationId: 1, words: 1, createdAt: -1 } as const;
export const AMOUNT_INDEX = { organizationId: 1, amountCents: 1, createdAt: -1 } as const;

/** The scopes of projects, and of teams. */
const CONTAINER_SCOPES = {
  [COLLECTIONS.projects]: ["organizationId"],
  [COLLECTIONS.teams]: ["organizationId", "projectId"],
} as const;

const list = (fields: readonly string[], behind: readonly string[] = []): Index => ({
  key: newestFirst(fields, "createdAt", behind),
  reader: `the list by ${fields.join(", ")}`,
});

/**
 * The indexes behind the lists of projects, teams, agents, payments and approvals (docs/lists.md): for each scope, without and
 * with the status that a list may be narrowed to. The rail is in every key of payments.
 */
export const LIST_INDEXES: Indexes = {
  [COLLECTIONS.agents]: AGENT_SCOPES.flatMap((scope) => [
    list([scope], ["name"]),
    list([scope, "lifecycle"]),
  ]),
  [COLLECTIONS.transactions]: [
    { key: SUMMARIZED, name: SUMMARY_INDEX, reader: "sums of payments by day, read from keys alone" },
    {
      key: MOVED,
      name: MOVED_INDEX,
      partialFilterExpression: { "moved.at": { $exists: true } },
      reader: "sums by day of what was booked later",
    },
    ...PAYMENT_SCOPES.flatMap((scope) => [list([scope, "rail"]), list([scope, "status", "rail"])]),
    { key: WORDS_INDEX, reader: "the search of payments by words" },
    { key: AMOUNT_INDEX, reader: "the search of payments by amount" },
  ],
  [COLLECTIONS.approvals]: PAYMENT_SCOPES.map((scope) => list([scope, "state"])),
  [COLLECTIONS.raiseRequests]: PAYMENT_SCOPES.flatMap((scope) => [list([scope]), list([scope, "status"])]),
  ...Object.fromEntries(
    Object.entries(CONTAINER_SCOPES).map(([name, scopes]) => [
      name,
      scopes.flatMap((scope) => [list([scope]), list([scope, "state"])]),
    ]),
  ),
  [COLLECTIONS.sandboxCardLedger]: [list(["organizationId"])],
};
