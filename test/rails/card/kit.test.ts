import type { CardLedgerDocument } from "../../../src/rails/card/network-books.ts";
import type { NetworkEffect } from "../../../src/rails/card/merchants.ts";
import { CardSandbox } from "../../../src/rails/card/rail.ts";
import { COLLECTIONS } from "../../../src/store/documents.ts";
import { collectionsOf } from "../../../src/store/collections.ts";
import { newPayment } from "../../chain/support.ts";
import { testDatabase } from "../../support/mongo.ts";
import { railKit, type RailScene } from "../kit.ts";
import { steppedDb } from "../steps.ts";

const clock = (): Date => new Date();

/** Its network does nothing by itself. */
const NO_SCRIPTS = { begin: () => Promise.resolve() };

const EFFECTS: readonly Omit<NetworkEffect, "afterSeconds">[] = [
  { kind: "refunded", percent: 25 },
  { kind: "captured", percent: 20 },
  { kind: "disputed", percent: 50 },
  { kind: "refunded", percent: 50 },
  { kind: "refund_reversed", percent: 25 },
];

async function cardScene(): Promise<RailScene> {
  const { close, db } = await testDatabase();
  const profile = { organizationId: "o", projectId: "p", teamId: "t", agentId: "a", name: "a" };
  const ledger = db.collection<CardLedgerDocument>(COLLECTIONS.sandboxCardLedger);
  const rail = new CardSandbox(db, clock, NO_SCRIPTS);
  return {
    rail,
    profile,
    payment() {
      const payment = newPayment(100, "shop");
      return { ...payment, request: { ...payment.request, rail: "card" } };
    },
    stepped: (steps) =>
      Promise.resolve({
        rail: new CardSandbox(steppedDb(db, steps), clock, NO_SCRIPTS),
        close: () => Promise.resolve(),
      }),
    timesMade: ({ request }) =>
      ledger.countDocuments({ transactionId: request.transactionId, status: "captured" }),
    sources: { collections: collectionsOf(db), db, env: {}, pocketKeys: null, chainRpcUrl: null },
    async play({ request: { transactionId } }, number) {
      const effect = EFFECTS[number];
      if (effect !== undefined) await rail.apply(transactionId, number, effect);
    },
    close,
  };
}

railKit("card", cardScene, { effects: EFFECTS.length });
