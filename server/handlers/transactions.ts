import type { Filter } from "mongodb";
import type { TransactionDocument } from "../../activities/documents.ts";
import { ok } from "../../src/domain/result.ts";
import { transactionView } from "../views.ts";
import type { HandlerDependencies } from "./dependencies.ts";
import type { Handlers } from "./types.ts";

const DAY_MS = 86_400_000;
const RANGE_DAYS = { "7d": 7, "30d": 30, "90d": 90 } as const;

/** Transactions of an organization (management-api.md section 4.3). */
export function transactionHandlers({
  clock,
  collections,
  lists,
}: HandlerDependencies): Pick<Handlers, "listTransactions"> {
  return {
    async listTransactions({ query }, { principal }) {
      const range = query.range === undefined || query.range === "all" ? null : RANGE_DAYS[query.range];
      const since = range === null ? null : new Date(clock().getTime() - range * DAY_MS);
      const { cursor, limit } = query;
      const filter: Filter<TransactionDocument> = {
        organizationId: principal.organizationId,
        ...(query.agent_id === undefined ? {} : { agentId: query.agent_id }),
        ...(query.type === undefined ? {} : { rail: query.type }),
        ...(query.projectId === undefined ? {} : { projectId: query.projectId }),
        ...(query.teamId === undefined ? {} : { teamId: query.teamId }),
      };
      const page = await lists.page({
        collection: collections.transactions,
        list: `transactions/${query.range ?? "all"}`,
        filter,
        since,
        limit,
        cursor,
      });
      if (!page.ok) return page;
      const { items, nextCursor } = page.value;
      return ok({ body: { transactions: items.map(transactionView), nextCursor } });
    },
  };
}
