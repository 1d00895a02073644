import { z } from "zod";
import { manages } from "../access.ts";
import { define } from "../define.ts";
import { agentFilter, ONE_AGENT, oneAgent, paging, transactionId, uuid } from "../primitives.ts";
import { listOf, rail, transaction, transactionStatus } from "../records.ts";
import { managementTool } from "../tools.ts";

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
      ...agentFilter,
      type: rail.optional().meta({ description: "Only of this rail." }),
      status: transactionStatus
        .optional()
        .meta({ description: "Only with this status now; `pending`: on hold or in flight." }),
      range: z
        .enum(["7d", "30d", "90d", "all"])
        .optional()
        .meta({ description: "Only of the last 7, 30 or 90 days; all (default): of any time." }),
      projectId: uuid.optional(),
      teamId: uuid.optional(),
    })
    .refine(oneAgent, ONE_AGENT),
  output: listOf("transactions", transaction),
  errors: ["BAD_CURSOR"],
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
