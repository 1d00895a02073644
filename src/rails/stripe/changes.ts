import type { ChangedCard } from "../../payments/card-issuer.ts";
import type { StripeClient } from "./client.ts";
import { EVENT_TYPES, incomingFrom } from "./messages.ts";
import { disputeObject, type EventObject, eventObject, transactionObject } from "./objects.ts";

/**
 * Yields changed cards, oldest change first. Sources are the list of events, which Stripe keeps for 30 days whether
 * delivered or not, and the transactions, which stay.
 */
export async function* changedCards(
  client: StripeClient,
  since: Date,
  until?: Date,
): AsyncGenerator<ChangedCard> {
  const created = {
    gte: Math.floor(since.getTime() / 1_000),
    lte: until === undefined ? undefined : Math.ceil(until.getTime() / 1_000),
  };
  const changed = new Map<string, number>();
  const note = (cardRef: string, at: number): void => {
    changed.set(cardRef, Math.max(at, changed.get(cardRef) ?? 0));
  };
  const types = EVENT_TYPES.filter((type) => type.startsWith("issuing_"));
  for await (const event of client.list("events", { created, types }, eventObject)) {
    const cardRef = await cardOf(client, event);
    if (cardRef !== null) note(cardRef, event.created);
  }
  for await (const found of client.list("issuing/transactions", { created }, transactionObject))
    note(found.card, found.created);
  const inOrder = [...changed].toSorted(([, one], [, other]) => one - other);
  for (const [cardRef, at] of inOrder) yield { cardRef, changedAt: new Date(at * 1_000) };
}

/** Returns an event's card; null if none. A dispute created by a person in Stripe names only its transaction. */
async function cardOf(client: StripeClient, event: EventObject): Promise<string | null> {
  const message = incomingFrom(event, null);
  if (message.kind === "hint") return message.cardRef;
  const dispute = disputeObject.safeParse(event.data.object);
  if (!dispute.success) return null;
  return (await client.read(`issuing/transactions/${dispute.data.transaction}`, {}, transactionObject)).card;
}
