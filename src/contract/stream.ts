import { z } from "zod";
import { agent, approval, transaction } from "./records.ts";
import { budgetWarning } from "./spend-limits.ts";

/** The contract of a change stream: names of events, and their data. */

/** Kinds whose records are sent whole. */
const RECORDS = {
  approvals: approval,
  transactions: transaction,
  agents: agent,
  budgets: budgetWarning,
} as const;

/** Kinds of which only the changed ids are sent. */
const IDS = [
  "projects",
  "teams",
  "members",
  "invites",
  "organization",
  "organizationKeys",
  "webhooks",
  "raiseRequests",
] as const;

export type RecordKind = keyof typeof RECORDS;
export type IdKind = (typeof IDS)[number];
export type ChangeKind = RecordKind | IdKind;

/** The kinds to which a stream can be narrowed; each change event is named after one. */
export const CHANGE_KINDS = [
  "approvals",
  "transactions",
  "agents",
  "budgets",
  ...IDS,
] as const satisfies readonly ChangeKind[];

/** Kinds that only owners and admins may read, and so receive. */
export const ADMINS_KINDS: ReadonlySet<ChangeKind> = new Set(["organizationKeys", "webhooks"]);

/** Kinds that members bound to projects or teams may not read, and so do not receive. */
export const WHOLE_ORGANIZATION_KINDS: ReadonlySet<ChangeKind> = new Set(["members", "invites"]);

export const STREAM_ENDS = ["credential", "role", "restart"] as const;
export type StreamEnd = (typeof STREAM_ENDS)[number];

const more = z.boolean();

/** Data of each event by name. `more`: more of the kind has changed than is listed, so read its lists again. */
export const streamEvents = {
  ready: z.strictObject({ resumed: z.boolean() }),
  reset: z.strictObject({}),
  heartbeat: z.strictObject({}),
  end: z.strictObject({ reason: z.enum(STREAM_ENDS) }),
  approvals: z.strictObject({ approvals: z.array(approval), more }),
  transactions: z.strictObject({ transactions: z.array(transaction), more }),
  agents: z.strictObject({ agents: z.array(agent), more }),
  budgets: z.strictObject({ budgets: z.array(budgetWarning), more }),
  projects: z.strictObject({ ids: z.array(z.string()), more }),
  teams: z.strictObject({ ids: z.array(z.string()), more }),
  members: z.strictObject({ ids: z.array(z.string()), more }),
  invites: z.strictObject({ ids: z.array(z.string()), more }),
  organization: z.strictObject({ ids: z.array(z.string()), more }),
  organizationKeys: z.strictObject({ ids: z.array(z.string()), more }),
  webhooks: z.strictObject({ ids: z.array(z.string()), more }),
  raiseRequests: z.strictObject({ ids: z.array(z.string()), more }),
} as const;

export type StreamEventName = keyof typeof streamEvents;
