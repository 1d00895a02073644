import { agentIn } from "../../src/contract/primitives.ts";
import { ok } from "../../src/domain/result.ts";
import { given } from "../lists.ts";
import { transactionView } from "../views.ts";
import type { HandlerDependencies } from "./dependencies.ts";
import type { Handlers } from "./types.ts";

const DAY_MS = 86_400_000;
const RANGE_DAYS = { "7d": 7, "30d": 30, "90d": 90 } as const;

/** Transactions of an organization. */
export function transactionHandlers({
  clock,
  collections,
  lists,
}: HandlerDependencies): Pick<Handlers, "getTransaction" | "listTransactions"> {
  return {
    getTransaction: (_input, { target }) =>
      Promise.resolve(ok({ body: { transaction: transactionView(target) } })),

    async listTransactions({ query }, { principal, target: reach }) {
      const { cursor, limit, projectId, range = "all", status, teamId, type: rail } = query;
      const agentId = agentIn(query);
      const since = range === "all" ? null : new Date(clock().getTime() - RANGE_DAYS[range] * DAY_MS);
      const page = await lists.page({
        collection: collections.transactions,
        list: `transactions/${range}`,
        filter: {
          organizationId: principal.organizationId,
          ...given({ agentId, rail, status, projectId, teamId }),
        },
        within: reach.contained,
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
