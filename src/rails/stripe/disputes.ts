import type { CardDispute, IssuerResult } from "../../payments/card-issuer.ts";
import type { StripeClient } from "./client.ts";
import { CARD_KEY } from "./messages.ts";
import { type DisputeObject, disputeObject, type TransactionObject } from "./objects.ts";

/** Stripe's names of dispute reasons. */
const REASONS: Readonly<Record<CardDispute["reason"], string>> = {
  fraudulent: "fraudulent",
  not_received: "not_received",
  not_as_described: "merchandise_not_as_described",
  duplicate: "duplicate",
  canceled: "canceled",
  other: "other",
};

export async function disputesOf(
  client: StripeClient,
  transactions: readonly TransactionObject[],
): Promise<readonly DisputeObject[]> {
  const ids = transactions.flatMap(({ dispute }) => (dispute === null ? [] : [dispute]));
  const expand = ["balance_transactions"];
  return Promise.all(ids.map((id) => client.read(`issuing/disputes/${id}`, { expand }, disputeObject)));
}

/** Disputes captures, oldest first, up to the amount. Existing disputes count, and are submitted if they were not. */
export async function disputeCard(
  client: StripeClient,
  cardRef: string,
  captures: readonly TransactionObject[],
  dispute: CardDispute,
): Promise<IssuerResult<null>> {
  if (captures.length === 0) {
    const reason = "Nothing was captured on this card yet: there is nothing to dispute.";
    return { ok: false, refusal: { code: "REFUSED", reason } };
  }
  const known = await disputesOf(client, captures);
  let left = dispute.amountCents ?? Number.POSITIVE_INFINITY;
  for (const capture of captures) {
    if (left <= 0) break;
    const found = known.find(({ transaction }) => transaction === capture.id);
    const amount = Math.min(left, -capture.amount);
    const made =
      found === undefined
        ? await create(client, cardRef, capture, amount, dispute)
        : { ok: true as const, value: found };
    if (!made.ok) return made;
    left -= made.value.amount;
    if (made.value.status !== "unsubmitted") continue;
    const submitted = await client.call(
      {
        method: "POST",
        path: `issuing/disputes/${made.value.id}/submit`,
        idempotencyKey: `submit/${made.value.id}`,
      },
      disputeObject,
    );
    if (!submitted.ok) return submitted;
  }
  return { ok: true, value: null };
}

const create = (
  client: StripeClient,
  cardRef: string,
  capture: TransactionObject,
  amount: number,
  { explanation, reason }: CardDispute,
): Promise<IssuerResult<DisputeObject>> =>
  client.call(
    {
      method: "POST",
      path: "issuing/disputes",
      idempotencyKey: `dispute/${capture.id}`,
      params: {
        transaction: capture.id,
        amount,
        evidence: { reason: REASONS[reason], [REASONS[reason]]: { explanation } },
        metadata: { [CARD_KEY]: cardRef },
      },
    },
    disputeObject,
  );
