import { COLLECTIONS } from "./documents.ts";
import type { Index, Indexes } from "./indexes.ts";

export type IndexKey = Readonly<Record<string, 1 | -1>>;

/** Field with a record's creation time, which lists are ordered by. */
export type TimeField = "createdAt" | "at";

/**
 * Returns the key of the index that holds records with equal values of `fields`, newest first. A list names the same
 * fields in the same order (src/store/lists.ts) and is read through exactly this index. `behind`: further fields at the
 * end of the key.
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

/** Scopes of agents, payments and approvals, widest first; each is permanently nested in the one before. */
const AGENT_SCOPES = ["organizationId", "projectId", "teamId"] as const;
const PAYMENT_SCOPES = [...AGENT_SCOPES, "agentId"] as const;

/** Fields that a summary of payments needs, so that it reads keys and no records. */
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

/** Index of the payments whose sums have changed later, by the time of the change. */
const MOVED = { organizationId: 1, "moved.at": -1 } as const;
export const MOVED_INDEX = "moved";

/**
 * Indexes for searches of payments. They end with the time; a search sorts the few records that it reads by id itself.
 * The id next to each of a payment's words would triple the index.
 */
export const WORDS_INDEX = { organizationId: 1, words: 1, createdAt: -1 } as const;
export const AMOUNT_INDEX = { organizationId: 1, amountCents: 1, createdAt: -1 } as const;

const CONTAINER_SCOPES = {
  [COLLECTIONS.projects]: ["organizationId"],
  [COLLECTIONS.teams]: ["organizationId", "projectId"],
} as const;

const list = (fields: readonly string[], behind: readonly string[] = []): Index => ({
  key: newestFirst(fields, "createdAt", behind),
  reader: `the list by ${fields.join(", ")}`,
});

/**
 * Indexes behind the lists of projects, teams, agents, payments and approvals: for each scope, with and without the
 * status that a list may be filtered by. The rail is in every key of payments.
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
