import { SHOWN_TRANSACTION_FIELDS } from "../store/documents.ts";
import type { ChangeKind } from "../contract/stream.ts";
import type { Collections } from "../store/collections.ts";
import { budgetView } from "../views/spend-limits.ts";
import { agentView, approvalView, transactionView } from "../views/views.ts";

/** The data of an event: records as they are now, in the order in which they changed, or ids alone. */
export type EventData = (
  organizationId: string,
  kind: ChangeKind,
  ids: readonly string[],
  more: boolean,
) => Promise<object>;

type Records = Pick<Collections, "agents" | "approvals" | "events" | "shownTransactions">;

/** Reads the records that changed: all of one kind at once. */
export const eventDataOf =
  ({ agents, approvals, events, shownTransactions }: Records): EventData =>
  async (organizationId, kind, ids, more) => {
    const those = { _id: { $in: [...ids] }, organizationId };
    switch (kind) {
      case "approvals": {
        const found = await approvals.find(those).toArray();
        return { approvals: inOrder(ids, found).map(approvalView), more };
      }
      case "transactions": {
        const found = await shownTransactions.find(those, { projection: SHOWN_TRANSACTION_FIELDS }).toArray();
        return { transactions: inOrder(ids, found).map(transactionView), more };
      }
      case "agents": {
        const found = await agents.find(those).toArray();
        return { agents: inOrder(ids, found).map(agentView), more };
      }
      case "budgets": {
        const found = await events.find(those).toArray();
        const said = inOrder(ids, found).flatMap(({ data: { budget } }) => budget ?? []);
        return { budgets: said.map(budgetView), more };
      }
      default:
        return { ids, more };
    }
  };

function inOrder<T extends { readonly _id: string }>(ids: readonly string[], found: readonly T[]): T[] {
  const byId = new Map(found.map((one) => [one._id, one]));
  return ids.flatMap((id) => byId.get(id) ?? []);
}
