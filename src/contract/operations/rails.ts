import { z } from "zod";
import { DISPUTE_REASONS } from "../../domain/ledger/books.ts";
import { manages, person } from "../access.ts";
import { define } from "../define.ts";
import { cents, paymentCents, text, timestamp, transactionId } from "../primitives.ts";
import { railModes } from "../rails.ts";
import { transaction } from "../records.ts";

const params = z.strictObject({
  cardIssuer: z
    .string()
    .regex(/^[a-z]{1,40}$/)
    .meta({ description: "The issuer's name, `stripe`." }),
});

const publishableKey = z.string().regex(/^pk_\w{1,200}$/, "must be a publishable key, `pk_…`");

const secret = z.string().regex(/^[\x21-\x7e]{8,255}$/, "must be 8 to 255 characters without spaces");

const connection = z
  .strictObject({
    id: z.string(),
    cardIssuer: z.string(),
    isTest: z.boolean().meta({ description: "Whether the account moves no real money." }),
    keyHint: z.string().meta({ description: "The last characters of the key." }),
    publishableKey: z
      .string()
      .nullable()
      .meta({ description: "With it pages show cards in the issuer's frame; null: they can't." }),
    authorizationUrl: z.string().meta({
      description:
        "To paste into the issuer's settings of real-time authorization; choose there that a time-out declines.",
    }),
    hasAuthorizationSecret: z.boolean().meta({
      description:
        "Whether real-time authorizations can be verified. False: each card's own limit binds, and a pause stops no card that is " +
        "already made.",
    }),
    eventsUrl: z
      .string()
      .meta({ description: "The issuer's events are sent there; the service has set it up." }),
    createdAt: timestamp,
    lastRequestAt: timestamp
      .nullable()
      .meta({ description: "Newest real-time authorization, to the minute." }),
    lastEventAt: timestamp.nullable().meta({ description: "Newest event, to the minute." }),
    readThrough: timestamp.meta({
      description: "The issuer's books have been read as far as that, whatever its events said.",
    }),
    timeoutCheck: z
      .strictObject({ isApproved: z.boolean(), checkedAt: timestamp })
      .nullable()
      .meta({
        description:
          "The network's own decision when the newest check left it without an answer, which should be a refusal. Null: no check has " +
          "told.",
      }),
    fault: z
      .string()
      .nullable()
      .meta({ description: "Why its books could not be read last; null: they could." }),
  })
  .meta({ id: "CardConnection" });

export const listRails = define({
  summary: "Read the rails",
  description:
    "Which rails move real money, and the organization's account at a card issuer with what is available there for authorizations. " +
    "Without one, card payments are made in the sandbox.",
  tag: "Organization",
  access: { ...person({ role: "admin" }), orAuditor: true },
  waitsFor: "receiver",
  rate: "standard",
  http: { method: "get", path: "/v1/rails", successStatus: 200 },
  output: z.strictObject({
    rails: railModes,
    connection: connection.nullable(),
    balanceCents: cents
      .nullable()
      .meta({ description: "Null: there is no account, or the issuer does not say." }),
    issuers: z.array(z.string()).meta({ description: "Issuers that can be connected." }),
  }),
  errors: [],
});

export const connectCardIssuer = define({
  summary: "Connect a card issuer",
  description:
    "Card payments decided from now on are made on cards of this account, one for each payment. The first call takes `apiKey`, a " +
    "restricted key; the service makes a cardholder and the endpoint for events there. `authorizationSecret` is the signing secret " +
    "of real-time authorization, which the issuer shows once `authorizationUrl` is pasted there. Both are sealed and never shown again. " +
    "`publishableKey` lets pages show cards. Fields that are left out stay; another `apiKey` must be of the same account (else 409 " +
    "`RAIL_IN_USE`).",
  tag: "Organization",
  access: person({ role: "owner", stepUp: true }),
  waitsFor: "receiver",
  rate: "standard",
  http: { method: "put", path: "/v1/organization/rails/:cardIssuer", successStatus: 200 },
  params,
  body: z.strictObject({
    apiKey: secret.optional(),
    authorizationSecret: secret.optional(),
    publishableKey: publishableKey.optional(),
  }),
  output: z.strictObject({ connection }),
  errors: ["NOT_FOUND", "ISSUER_REFUSED", "RAIL_IN_USE"],
});

export const disconnectCardIssuer = define({
  summary: "Disconnect the card issuer",
  description:
    "Removes the endpoint for events and erases the key; later card payments are made in the sandbox. While cards wait or more may be " +
    "captured on them it is 409 `RAIL_IN_USE`. Refunds that come afterwards are not seen.",
  tag: "Organization",
  access: person({ role: "owner", stepUp: true }),
  waitsFor: "receiver",
  rate: "standard",
  http: { method: "delete", path: "/v1/organization/rails/:cardIssuer", successStatus: 204 },
  params,
  output: z.undefined(),
  errors: ["NOT_FOUND", "ISSUER_REFUSED", "RAIL_IN_USE"],
});

const trial = z.strictObject({ isApproved: z.boolean(), reason: z.string() });

export const checkCardIssuer = define({
  summary: "Check the card issuer",
  description:
    "Runs three test authorizations through the network: one that the service approves, one that it refuses, and one that it leaves " +
    "unanswered, which shows what a time-out does. An account in live mode is refused, 422 `ISSUER_REFUSED`.",
  tag: "Organization",
  access: person({ role: "owner", stepUp: true }),
  waitsFor: "receiver",
  rate: "standard",
  http: { method: "post", path: "/v1/organization/rails/:cardIssuer/check", successStatus: 200 },
  params,
  output: z.strictObject({
    isWorking: z.boolean().meta({ description: "Whether all three ended as they should." }),
    approved: trial.meta({ description: "The one that should be approved." }),
    refused: trial.meta({ description: "The one that should be refused." }),
    unanswered: trial.meta({ description: "The one without an answer, which should be refused." }),
  }),
  errors: ["NOT_FOUND", "ISSUER_REFUSED"],
});

const ofTransaction = z.strictObject({ id: transactionId });

export const viewCard = define({
  summary: "Show a payment's card",
  description:
    "The short-lived key by which the issuer's script shows number and code in its own iframe, in the browser that made `nonce`. " +
    "They never pass this service. Without `nonce` it answers what the script is loaded and started with. 404 where the payment has " +
    "no card.",
  tag: "Transactions",
  access: manages("never", "transaction", { role: "admin", stepUp: true }),
  waitsFor: "receiver",
  rate: "standard",
  http: { method: "post", path: "/v1/transactions/:id/card-view", successStatus: 200 },
  params: ofTransaction,
  body: z.strictObject({ nonce: text(1, 500).optional() }),
  output: z.strictObject({
    card: z.strictObject({
      cardRef: z.string(),
      scriptUrl: z.string(),
      publishableKey: z.string(),
      ephemeralKey: z.string().nullable(),
      expiresAt: timestamp.nullable(),
    }),
  }),
  errors: ["NOT_FOUND", "ISSUER_REFUSED"],
});

export const disputeTransaction = define({
  summary: "Dispute a charge",
  description:
    "Opens a dispute of what was captured on the payment's card. Its outcome changes the payment later: a credit as a refund, and back " +
    "if it is lost. Repeatable: what was captured is disputed once.",
  tag: "Transactions",
  access: manages("never", "transaction", { role: "admin", stepUp: true }),
  waitsFor: "receiver",
  rate: "standard",
  http: { method: "post", path: "/v1/transactions/:id/dispute", successStatus: 202 },
  params: ofTransaction,
  body: z.strictObject({
    reason: z.enum(DISPUTE_REASONS),
    explanation: text(1, 1_000),
    amountCents: paymentCents.optional().meta({ description: "Left out: all of it." }),
  }),
  output: z.strictObject({ transaction }),
  errors: ["NOT_FOUND", "ISSUER_REFUSED"],
});
