import type { EventDocument } from "../store/documents.ts";
import { budgetView } from "../views/spend-limits.ts";
import { agentView, approvalView, transactionView } from "../views/views.ts";

/** Renders an event's data: the records at that time, keyed by noun, in the API's form. */
export function eventData({ _id, data }: EventDocument): object {
  const { agent, approval, authorization, budget, deposit, funding, payment, transaction } = data;
  const rendered = {
    ...(agent === undefined ? {} : { agent: agentView(agent) }),
    ...(approval === undefined ? {} : { approval: approvalView(approval) }),
    ...(transaction === undefined ? {} : { transaction: transactionView(transaction) }),
    ...(authorization === undefined ? {} : { authorization }),
    ...(deposit === undefined ? {} : { deposit: { ...deposit, settledAt: deposit.settledAt.toISOString() } }),
    ...(funding === undefined ? {} : { funding: { ...funding, settledAt: funding.settledAt.toISOString() } }),
    ...(payment === undefined ? {} : { payment: { ...payment, failedAt: payment.failedAt.toISOString() } }),
    ...(budget === undefined ? {} : { budget: budgetView(budget) }),
  };
  if (Object.keys(rendered).length === 0) throw new Error(`${_id} has no data`);
  return rendered;
}
