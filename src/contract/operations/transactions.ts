import { z } from "zod";
import { manages } from "../access.ts";
import { define } from "../define.ts";
import { paging, uuid } from "../primitives.ts";
import { listOf, transaction } from "../records.ts";
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
  query: z.strictObject({
    ...paging,
    agent_id: uuid.optional(),
    type: z.enum(["card", "wallet"]).optional(),
    range: z.enum(["7d", "30d", "90d", "all"]).optional(),
    projectId: uuid.optional(),
    teamId: uuid.optional(),
  }),
  output: listOf("transactions", transaction),
  errors: ["BAD_CURSOR"],
});
