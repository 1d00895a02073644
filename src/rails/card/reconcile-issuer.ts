import { isDeepStrictEqual } from "node:util";
import pLimit from "p-limit";
import { joined, type RailBooks } from "../../domain/ledger/books.ts";
import { isUnavailable } from "../../lib/unavailable.ts";
import { COLLECTIONS } from "../../store/documents.ts";
import type { PaymentEntry, RailFinding } from "../findings.ts";
import type { RailReconciliation, RailSources } from "../folder.ts";
import type { CardConnection } from "./connections.ts";
import { isCheck, type IssuedDocument } from "./places.ts";
import { booksText } from "./reconcile.ts";

/** Maximum cards whose books are read concurrently: issuers limit calls. */
const CARDS_AT_ONCE = 4;

/** Compares payments on cards with the issuer's charges, and the issuer's cards with the payments. */
export const issuerReconciliation: RailReconciliation = {
  kind: "card_issuer_differs",
  advice: "Compare the payment with the issuer's card; what the issuer has charged was really paid.",
  async findings(sources) {
    const { cardConnections, organizationId, payments } = sources;
    const isConcerned = payments.some(({ isOnCard }) => isOnCard);
    if (cardConnections === null)
      return isConcerned ? "MASTER_KEY is not set, and the issuer's key is sealed by it." : [];
    try {
      const connection = await cardConnections.fresh(organizationId);
      if (connection !== null) return await compared(connection, sources);
      return isConcerned ? "No card issuer is connected any more." : [];
    } catch (error) {
      if (!isUnavailable(error) || !(error instanceof Error)) throw error;
      return error.message;
    }
  },
};

async function compared(
  connection: CardConnection,
  { db, organizationId, paymentIds, payments }: RailSources,
): Promise<readonly RailFinding[]> {
  const isAsked = (id: string): boolean => paymentIds === null || paymentIds.has(id);
  const cards = await db
    .collection<IssuedDocument>(COLLECTIONS.sandboxCardLedger)
    .find({ status: "issued", organizationOfCard: organizationId })
    .toArray();
  const byId = new Map(payments.map((payment) => [payment.id, payment]));
  const own = cards.filter(
    ({ connectionId, transactionId }) =>
      connectionId === connection.id && !isCheck({ transactionId }) && isAsked(transactionId),
  );
  const read = pLimit(CARDS_AT_ONCE);
  const ofCards = await read.map(own, async ({ cardRef, transactionId }) => {
    const books = cardRef === null ? [] : await connection.issuer.booksOf(cardRef);
    return compareIssued(transactionId, byId.get(transactionId) ?? null, books);
  });
  const ordered = new Set(cards.map(({ transactionId }) => transactionId));
  const withoutCard = payments
    .filter(({ id, isOnCard }) => isOnCard && isAsked(id) && !ordered.has(id))
    .flatMap((payment) => compareIssued(payment.id, payment, []));
  const known = new Set(cards.map(({ cardRef }) => cardRef));
  const strange = new Set<string>();
  for await (const { cardRef } of connection.issuer.changedSince(connection.record.createdAt))
    if (!known.has(cardRef) && isAsked(cardRef)) strange.add(cardRef);
  const ofStrangers = await read.map([...strange], async (cardRef) => {
    const books = await connection.issuer.booksOf(cardRef);
    const what = "the issuer has charges on a card that the service has not ordered";
    return booksIsEmpty(books)
      ? []
      : [{ id: cardRef, what, expected: "nothing", found: booksText(books), mayBeInFlight: false }];
  });
  return [...ofCards, ...ofStrangers, withoutCard].flat();
}

const booksIsEmpty = (books: readonly RailBooks[]): boolean =>
  books.every(({ authorizedMc, capturedMc, creditedMc }) => authorizedMc + capturedMc + creditedMc === 0);

/** Compares one card's payment with its charges. The issuer must be read after the payment. */
export function compareIssued(
  id: string,
  payment: PaymentEntry | null,
  books: readonly RailBooks[],
): RailFinding[] {
  const recorded = ordered(payment?.authorizations ?? []);
  const charged = ordered(books);
  if (isDeepStrictEqual(recorded, charged) || (payment === null && booksIsEmpty(books))) return [];
  const newer = new Map(charged.map((each) => [each.authorization, each]));
  const isAhead = recorded.every((old) => {
    const now = newer.get(old.authorization);
    return now !== undefined && isDeepStrictEqual(joined(old, now), now);
  });
  return [
    {
      id,
      what:
        payment === null ? "the issuer has charges without a payment" : "the issuer's books of the payment",
      expected: booksText(recorded),
      found: booksText(charged),
      mayBeInFlight: isAhead,
    },
  ];
}

const ordered = (books: readonly RailBooks[]): readonly RailBooks[] =>
  books.toSorted((a, b) => (a.authorization < b.authorization ? -1 : 1));
