import { BREACH_LEVELS, NETWORK_ENTRIES } from "../../domain/ledger/books.ts";
import { z } from "zod";
import { EXPLAINED_LIMITS } from "../../domain/ledger/measures.ts";
import { RESTRICTED_LEVELS, RESTRICTION_CODES } from "../../domain/rules/restrictions.ts";
import { reads } from "../access.ts";
import { approvalRule } from "../approval-rules.ts";
import { define } from "../define.ts";
import {
  agentFilter,
  cents,
  ONE_AGENT,
  oneAgent,
  paging,
  text,
  timestamp,
  transactionId,
  uuid,
} from "../primitives.ts";
import {
  approval,
  auditEntry,
  listOf,
  paymentCard,
  rail,
  transaction,
  transactionStatus,
} from "../records.ts";
import { restrictions } from "../restrictions.ts";
import { timezone } from "../timezone.ts";
import { managementTool } from "../tools.ts";
import { delivery, eventType } from "./webhooks.ts";

/** Filters of the list, the export and the sums. */
const filters = {
  ...agentFilter,
  type: rail.optional().meta({ description: "Only payments on this rail." }),
  range: z.enum(["7d", "30d", "90d", "all"]).optional().meta({
    description: "Only the last 7, 30 or 90 days before the first page; `all` (default): no limit.",
  }),
  from: timestamp.optional().meta({ description: "From this time on, inclusive." }),
  to: timestamp.optional().meta({ description: "Before this time." }),
  minAmountCents: cents.optional().meta({ description: "Only amounts from this one on." }),
  maxAmountCents: cents.optional().meta({ description: "Only amounts up to this one." }),
  projectId: uuid.optional(),
  teamId: uuid.optional(),
};

const search = {
  search: text(1, 200)
    .optional()
    .meta({
      description:
        "Only payments in which each of these words begins a word of the recipient or the purpose, ignoring case and " +
        "accents. An amount such as `42.50`, a transaction's id and an on-chain hash are found, too.",
    }),
};

export const listTransactions = define({
  summary: "List transactions",
  description:
    "The organization's transactions, newest first. An organization key sees only its binding. Filtering by an " +
    "unknown agent gives an empty list. A page of a search, by words or amounts, may have fewer than `limit`, or " +
    "none: continue while there is a `nextCursor`.",
  tag: "Transactions",
  access: reads("agents:read", "list"),
  rate: "standard",
  http: { method: "get", path: "/v1/transactions", successStatus: 200 },
  tool: managementTool("list_transactions", "List transactions"),
  query: z
    .strictObject({
      ...paging,
      ...filters,
      ...search,
      status: transactionStatus
        .optional()
        .meta({ description: "Only payments with this status now; `pending`: on hold or in flight." }),
    })
    .refine(oneAgent, ONE_AGENT),
  output: listOf("transactions", transaction),
  errors: ["BAD_CURSOR"],
});

export const exportTransactions = define({
  summary: "Export transactions",
  description:
    "The same transactions as a CSV file, newest first: RFC 4180 in UTF-8, with a header row and CRLF. Columns: id, " +
    "createdAt, agentId, agentName, merchant, amountCents (integer cents), currency, direction, rail, status, " +
    "purpose, denialReason, denialCode, onChainTxHash, chainCaip2, requestedCents, authorizedCents, capturedCents, " +
    "creditedCents, stage, breach (such as `agent budget 500`: level, limit, cents above it); a null is empty. A cell that a spreadsheet would " +
    "read as a formula starts with an apostrophe, and so does what would be one after a semicolon, a tab or a line " +
    "break. Each row shows its transaction as it was when that part of the file was read. A transaction that matches " +
    "the filters throughout is in the file once; one that is made after the export has begun is not. If the " +
    "connection breaks, the file is incomplete. Filtering by an unknown agent, project or team gives the header row " +
    "alone.",
  tag: "Transactions",
  access: reads("agents:read", "list"),
  rate: "export",
  http: { method: "get", path: "/v1/transactions/export", successStatus: 200, contentType: "text/csv" },
  query: z
    .strictObject({
      ...filters,
      ...search,
      status: transactionStatus.extract(["approved", "pending", "denied", "failed"]).optional().meta({
        description: "Only payments with this status when they are read; `pending`: on hold or in flight.",
      }),
      tz: timezone.optional().meta({
        description:
          "The IANA time zone of createdAt, such as Europe/Berlin; the offset is included. Default: UTC.",
      }),
      bom: z.boolean().default(false).meta({
        description: "`true`: the file begins with a byte order mark, by which Excel reads it as UTF-8.",
      }),
    })
    .refine(oneAgent, ONE_AGENT),
  output: z.string(),
  errors: [],
});

const calendarDay = z.iso.date().meta({ description: "A day in the time zone `tz`." });
const sum = {
  count: z.int().min(0).meta({ description: "The payments that were made on this day." }),
  amountCents: z.int().meta({ description: "In cents; below zero where more came back than was charged." }),
};

export const summarizeTransactions = define({
  summary: "Summarize transactions by day",
  description:
    "The number and the sum of the payments of each day, newest day first, by status, rail, agent, team or project. " +
    "What was charged counts on the day it was charged, less what came back on the day it came back; what was not " +
    "charged counts as requested, when it was made. " +
    "The filters are those of the list, but for `search`. Without `range` and `from`: the last 30 days. The figures " +
    "are exact as of when a day is read. Days without payments are left out. An answer has as many days as can be " +
    "read in a second and a half, and at least one: continue with `before` = `nextBefore` until that is null. If a day " +
    "has many agents or teams, it lists the 50 with the largest sums, and `others` has the rest. A server makes one " +
    "summary at a time; a request that waits too long is refused and can be retried.",
  tag: "Transactions",
  access: reads("agents:read", "list"),
  rate: "summary",
  http: { method: "get", path: "/v1/transactions/summary", successStatus: 200 },
  query: z
    .strictObject({
      ...filters,
      status: z
        .enum([...transactionStatus.options, "spent"])
        .optional()
        .meta({
          description:
            "Only payments with this status now; `spent`: approved ones, and those reversed since.",
        }),
      groupBy: z
        .enum(["status", "rail", "agent", "team", "project"])
        .default("status")
        .meta({ description: "How each day is grouped." }),
      tz: timezone.optional().meta({
        description: "The IANA time zone of the days, such as Europe/Berlin. Default: UTC.",
      }),
      before: calendarDay.optional().meta({
        description: "Only days before this one: `nextBefore` of an earlier answer.",
      }),
    })
    .refine(oneAgent, ONE_AGENT),
  output: z.strictObject({
    days: z
      .array(
        z.strictObject({
          day: calendarDay,
          ...sum,
          groups: z
            .array(z.strictObject({ group: z.string(), ...sum }))
            .meta({ description: "The largest sum first; `group` is the status, the rail, or an id." }),
          others: z
            .strictObject(sum)
            .nullable()
            .meta({ description: "The groups that are not listed; null: none." }),
        }),
      )
      .meta({ description: "Newest first." }),
    nextBefore: calendarDay.nullable().meta({
      description: "Continue before this day; null: there are no more days.",
    }),
  }),
  errors: [],
});

export const getTransaction = define({
  summary: "Read a transaction",
  description: "One transaction in its current state.",
  tag: "Transactions",
  access: reads("agents:read", "transaction"),
  rate: "standard",
  http: { method: "get", path: "/v1/transactions/:id", successStatus: 200 },
  params: z.strictObject({ id: transactionId }),
  output: z.strictObject({ transaction }),
  errors: ["NOT_FOUND"],
});

const decision = z.strictObject({
  outcome: z.enum(["approved", "held", "denied"]).meta({
    description: "The outcome of the policies when the payment was requested.",
  }),
  policyVersion: z
    .int()
    .nullable()
    .meta({ description: "The version of the agent's budget policy that was applied; null: unknown." }),
  flaggedByRuleTypes: z.array(z.string()),
});

const railStep = z.strictObject({
  id: z.string(),
  kind: z.enum([...NETWORK_ENTRIES, "withheld", "issued", "signed", "refused"]).meta({
    description:
      "By card: what the network did, in its order. On chain: `signed` and sent, or `refused` instead.",
  }),
  createdAt: timestamp,
  amountCents: cents.nullable(),
  onChainTxHash: z.string().nullable(),
  reason: z.string().nullable().meta({
    description: "Why it was refused or can never be mined; null: it was not refused and can be mined.",
  }),
});

const event = z.strictObject({
  id: z.string(),
  type: eventType,
  createdAt: timestamp,
});

const story = z.strictObject({
  transaction,
  approval: approval.nullable(),
  decision: decision.nullable().meta({ description: "How it was decided; null: not recorded yet." }),
  railSteps: z.array(railStep).meta({ description: "The rail's records of it, oldest first." }),
  events: z.array(event).meta({ description: "Oldest first." }),
  webhookDeliveries: z
    .array(z.strictObject({ endpointId: z.string(), eventId: z.string(), delivery }))
    .nullable()
    .meta({
      description: "Deliveries to the endpoints that exist now; null: the caller may not read them.",
    }),
  auditEntries: z
    .array(auditEntry)
    .nullable()
    .meta({ description: "Oldest first; null: the caller may not read them." }),
});

const version = z.int().nullable();
const ruledLevel = z.enum(RESTRICTED_LEVELS);

export const getTransactionExplanation = define({
  summary: "Read why a payment was decided as it was",
  description:
    "The payment's history, and what it was decided by: each limit of its agent, team and project with its value and its use just " +
    "before the payment, the rules and restrictions of that time, and the versions of all. Deliveries are for owners and " +
    "admins, audit entries for auditors too, rules and restrictions for sessions.",
  tag: "Transactions",
  access: reads("agents:read", "transaction"),
  rate: "standard",
  http: { method: "get", path: "/v1/transactions/:id/explanation", successStatus: 200 },
  params: z.strictObject({ id: transactionId }),
  output: story.extend({
    card: paymentCard,
    limits: z
      .array(
        z
          .strictObject({
            level: z.enum(BREACH_LEVELS),
            limit: z.enum(EXPLAINED_LIMITS).meta({ description: "The limit; a spend limit by its period." }),
            value: z
              .int()
              .meta({ description: "What the limit was: cents, or payments of a velocity limit." }),
            used: z.int().meta({ description: "What was used of it before the payment." }),
          })
          .meta({ title: "LimitThen" }),
      )
      .nullable()
      .meta({ description: "The agent's first, then its team's and its project's; null: not recorded." }),
    rules: z
      .array(
        z
          .strictObject({
            level: ruledLevel,
            rule: approvalRule,
            flagged: z.boolean().nullable().meta({
              description:
                "Whether it flagged the payment, or would have in the shadow; null: not judged, or not known which of several did.",
            }),
          })
          .meta({ title: "RuleThen" }),
      )
      .nullable()
      .meta({
        description: "The project's, then its team's; null: not recorded, or the caller may not read them.",
      }),
    restrictions: z
      .array(
        z
          .strictObject({
            level: ruledLevel,
            restrictions,
            forbidden: z
              .enum(RESTRICTION_CODES)
              .nullable()
              .meta({ description: "The code by which they forbade the payment; null: they allowed it." }),
          })
          .meta({ title: "RestrictionsThen" }),
      )
      .nullable()
      .meta({
        description:
          "The project's, the team's and the agent's; null: not recorded, or the caller may not read them.",
      }),
    versions: z
      .strictObject({
        policy: version.meta({ description: "The agent's budget policy." }),
        project: version.meta({ description: "The project's rules and restrictions; null: it had none." }),
        team: version.meta({ description: "The team's rules and restrictions; null: it had none." }),
        agent: version.meta({ description: "The agent's restrictions; null: it had none." }),
      })
      .meta({ description: "The versions that were in force." }),
  }),
  errors: ["NOT_FOUND"],
});

export const getTransactionStory = define({
  summary: "Read a transaction's full history",
  description:
    "The payment, how it was decided and by which version of the policy, its approval with who resolved it, the " +
    "records of its rail, and its events. Owners and admins also get the webhook deliveries of these events and the " +
    "payment's entries in the audit log; for everybody else both are null. The decision and the events may appear a " +
    "moment after the payment.",
  tag: "Transactions",
  access: reads("agents:read", "transaction"),
  rate: "standard",
  http: { method: "get", path: "/v1/transactions/:id/story", successStatus: 200 },
  params: z.strictObject({ id: transactionId }),
  output: story,
  errors: ["NOT_FOUND"],
});
