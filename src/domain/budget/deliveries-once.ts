import type { BudgetReply } from "./commands.ts";

type Telling = Extract<BudgetReply, { readonly deliveries: unknown }>;

const isTelling = (reply: BudgetReply): reply is Telling => "deliveries" in reply;

/**
 * The replies of one update, of which the last alone names whoever is to be told something: it names all that the others do, or what has
 * come in its place, and they may be all agents of a project.
 */
export function deliveriesOnce(replies: readonly BudgetReply[]): readonly BudgetReply[] {
  const last = replies.findLastIndex(isTelling);
  return replies.map((reply, index) =>
    isTelling(reply) && index !== last ? { ...reply, deliveries: [] } : reply,
  );
}

/** The same replies, in each of which they are named again. */
export function withDeliveries(replies: readonly BudgetReply[]): readonly BudgetReply[] {
  const last = replies.findLast(isTelling);
  if (last === undefined) return replies;
  const { deliveries } = last;
  return replies.map((reply) => (isTelling(reply) ? { ...reply, deliveries } : reply));
}
