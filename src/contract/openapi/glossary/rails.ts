import { CREATED, LATER, note, ULID, type Note } from "./notes.ts";

const connectionUrl = (of: string): string => `https://spend.example.org/v1/rails/rail_${ULID}/${of}`;

/** Card issuers, and the cards of payments. */
export const railNotes: Readonly<Record<string, Note>> = {
  "listRails.rails": note("Whether payments of each rail move real money."),
  connection: note("The organization's account at a card issuer; null: there is none."),
  cardIssuer: note("The card issuer's name.", "stripe"),
  issuers: note("Issuers that can be connected.", ["stripe"]),
  "CardConnection.id": note("Its id.", `rail_${ULID}`),
  isTest: note("Whether the account moves no real money."),
  keyHint: note("The last characters of the key.", "x4Qz"),
  authorizationUrl: note("Where the issuer asks for authorizations.", connectionUrl("authorizations")),
  eventsUrl: note("Where the issuer sends its events.", connectionUrl("events")),
  hasAuthorizationSecret: note("Whether real-time authorizations can be verified."),
  lastRequestAt: note("Newest real-time authorization; null: none.", CREATED),
  lastEventAt: note("Newest event; null: none.", CREATED),
  readThrough: note("The issuer's books have been read as far as that.", LATER),
  fault: note("Why its books could not be read last; null: they could.", null),
  "connectCardIssuer.apiKey": note("A restricted key of the account.", "rk_test_0123456789abcdef"),
  authorizationSecret: note("The signing secret of real-time authorization.", "whsec_0123456789abcdef"),
  isWorking: note("Whether both ended as they should."),
  approved: note("The test authorization that should be approved."),
  refused: note("The test authorization that should be refused."),
  isApproved: note("Whether it was approved."),
  "approved.reason": note("How it ended, in words.", "The service approved it."),
  "refused.reason": note("How it ended, in words.", "The service declined it."),
  nonce: note("Made by the issuer's script in the browser that shows the card.", "ephkn_0123456789"),
  card: note("The payment's own card; null: there is none."),
  "card.last4": note("The last digits of its number.", "4242"),
  readyUntil: note("Until then it waits for the first charge.", LATER),
  cardRef: note("The issuer's id of the card.", "ic_0123456789"),
  ephemeralKey: note("Shows the card in the issuer's iframe, for some minutes.", "ek_test_0123456789"),
  "viewCard.expiresAt": note("When the key ends.", LATER),
  "card.expiresAt": note("When the key ends.", LATER),
  explanation: note("What happened, for the issuer.", "The goods were never sent."),
  "disputeTransaction.reason": note("Why it is disputed.", "not_received"),
  "disputeTransaction.amountCents": note(
    "The disputed amount, in integer cents; left out: all of it.",
    4_999,
  ),
};
