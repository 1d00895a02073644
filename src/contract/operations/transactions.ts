import { z } from "zod";
import { manages } from "../access.ts";
import { define } from "../define.ts";
import { agentFilter, ONE_AGENT, oneAgent, paging, transactionId, uuid } from "../primitives.ts";
import { listOf, rail, transaction, transactionStatus } from "../records.ts";
import { timezone } from "../timezone.ts";
import { managementTool } from "../tools.ts";

/** What a list and an export can be narrowed by alike. */
const filters = {
  ...agentFilter,
  type: rail.optional().meta({ description: "Only of this rail." }),
  range: z.enum(["7d", "30d", "90d", "all"]).optional().meta({
    description: "Only of the last 7, 30 or 90 days before the first page; all (default): of any time.",
  }),
  projectId: uuid.optional(),
  teamId: uuid.optional(),
};

export const listTransactions = define({
  summary: "List transactions",
  description:
    "The organization's transactions, newest first; of a key's binding only. An unknown agent as a filter gives an empty " +
    "list.",
  tag: "Transactions",
  access: manages("agents:read", "list"),
  rate: "standard",
  http: { method: "get", path: "/v1/transactions", successStatus: 200 },
  tool: managementTool("list_transactions", "List transactions"),
  query: z
    .strictObject({
      ...paging,
      ...filters,
      status: transactionStatus
        .optional()
        .meta({ description: "Only with this status now; `pending`: on hold or in flight." }),
    })
    .refine(oneAgent, ONE_AGENT),
  output: listOf("transactions", transaction),
  errors: ["BAD_CURSOR"],
});

export const exportTransactions = define({
  summary: "Export transactions",
  description:
    "The same transactions as a CSV file, newest first: RFC 4180 in UTF-8, with a header row and CRLF. Columns: id, createdAt, " +
    "agentId, agentName, merchant, amountCents (integer cents), currency, direction, rail, status, purpose, denialReason, " +
    "denialCode, onChainTxHash, chainCaip2; what is null is empty. A cell that a spreadsheet would take for a formula has an " +
    "apostrophe before it, and so has what would be one after a semicolon, a tab or a line's end. Each row is as its " +
    "transaction was when that part of the file was read: what fits the filters all the while is in it once, what " +
    "is made after the export has begun is not. A connection that breaks is a file that is not whole. An unknown agent, " +
    "project or team as a filter gives the header row alone.",
  tag: "Transactions",
  access: manages("agents:read", "list"),
  rate: "export",
  http: { method: "get", path: "/v1/transactions/export", successStatus: 200, contentType: "text/csv" },
  query: z
    .strictObject({
      ...filters,
      status: transactionStatus
        .extract(["approved", "pending", "denied", "failed"])
        .optional()
        .meta({ description: "Only with this status when it is read; `pending`: on hold or in flight." }),
      tz: timezone.optional().meta({
        description:
          "IANA time zone, like Europe/Berlin, whose clocks createdAt shows, with its offset; by default UTC.",
      }),
    })
    .refine(oneAgent, ONE_AGENT),
  output: z.string(),
  errors: [],
});

export const getTransaction = define({
  summary: "Read a transaction",
  description: "One transaction as it is now, whatever became of it.",
  tag: "Transactions",
  access: manages("agents:read", "transaction"),
  rate: "standard",
  http: { method: "get", path: "/v1/transactions/:id", successStatus: 200 },
  params: z.strictObject({ id: transactionId }),
  output: z.strictObject({ transaction }),
  errors: ["NOT_FOUND"],
});
