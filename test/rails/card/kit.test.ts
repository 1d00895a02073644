import type { Payment, StoredPayment } from "../../../src/domain/ledger/payment.ts";
import { usedCents } from "../../../src/domain/money.ts";
import type { CardNetwork } from "../../../src/engines/card-network/network.ts";
import type { Transaction } from "../../../src/engines/card-network/shapes.ts";
import type { RailPort, SendOutcome } from "../../../src/payments/ports.ts";
import type { CardLedgerDocument } from "../../../src/rails/card/network-books.ts";
import type { NetworkEffect } from "../../../src/rails/card/merchants.ts";
import { CardSandbox } from "../../../src/rails/card/rail.ts";
import { COLLECTIONS } from "../../../src/store/documents.ts";
import { collectionsOf } from "../../../src/store/collections.ts";
import { eventually, newPayment } from "../../chain/support.ts";
import { testDatabase } from "../../support/mongo.ts";
import { railKit, type RailScene } from "../kit.ts";
import { steppedDb } from "../steps.ts";
import { type IssuedRail, issuedRails } from "./issued-rail.ts";

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

/** Changes of a charge by its merchant and its network, given the card's transactions so far. */
const ISSUER_EFFECTS: readonly ((network: CardNetwork, on: readonly Transaction[]) => void)[] = [
  (network, [charge]) => void network.refund(charge?.id ?? "", 25),
  (network, [charge]) => void network.captureLate(charge?.authorization ?? "", 20),
  (network, [charge]) => {
    const of = { transaction: charge?.id ?? "", amount: 50, evidence: {}, metadata: {} };
    network.submitDispute(network.addDispute(of).id);
  },
  (network, [charge]) => void network.endDispute(charge?.dispute ?? "", "credit"),
  (network, [, refund]) => void network.reverseRefund(refund?.id ?? ""),
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
    effects: EFFECTS.map(
      (effect, number) =>
        ({ request: { transactionId } }) =>
          rail.apply(transactionId, number, effect),
    ),
    close,
  };
}

const API_KEY = "rk_test_of_the_suite";
const SHOP = { name: "SHOP", category: "book_stores", category_code: "5942", network_id: "1", country: "US" };

const idOf = ({ request }: Pick<StoredPayment, "request">): string => request.transactionId;

/** Payments on cards of an issuer, whose merchant charges each card in full once it is armed. */
async function issuedScene(): Promise<RailScene> {
  const { close, db } = await testDatabase();
  const profile = { organizationId: "o", projectId: "p", teamId: "t", agentId: "a", name: "a" };
  const rails = await issuedRails(db, API_KEY, clock);
  const { network } = rails;
  network.configure({ lost: 1 });
  await rails.connect(profile.organizationId);
  const own = rails.open();
  const chargesOn = (cardId: string) =>
    network.store.all<Transaction>("issuing.transaction").filter(({ card }) => card === cardId);

  /** Whether the merchant's one attempt at the payment's card was approved. */
  const attempts = new Map<string, Promise<boolean>>();
  const charged = (payment: Payment): Promise<boolean> => {
    const known = attempts.get(idOf(payment));
    const attempt = known ?? charge(rails.cardsOf(idOf(payment))[0]?.id ?? "", payment);
    attempts.set(idOf(payment), attempt);
    return attempt;
  };
  async function charge(cardId: string, { request }: Payment): Promise<boolean> {
    const { approved, id } = await network.authorize(cardId, usedCents(request.amountMc), SHOP);
    if (approved) network.capture(id, null, true);
    return approved;
  }

  const chargingRail = ({ rail }: IssuedRail, heard = () => Promise.resolve()): RailPort => {
    const seen = async <T extends SendOutcome | null>(payment: StoredPayment, outcome: T) => {
      if (outcome?.status !== "armed" && outcome?.status !== "charged") return outcome;
      const books = await rail.booksOf(idOf(payment));
      return books.some(({ capturedMc }) => capturedMc > 0) ? ({ status: "settled" } as const) : outcome;
    };
    return {
      capabilities: rail.capabilities,
      network: rail,
      async send(of, payment, permit) {
        const outcome = await rail.send(of, payment, permit);
        if (outcome.status === "armed" && !(await charged(payment)))
          await eventually("its card is closed", async () => (await rail.query(payment))?.status !== "armed");
        await heard();
        return seen(payment, outcome.status === "armed" ? ((await rail.query(payment)) ?? outcome) : outcome);
      },
      query: async (payment) => seen(payment, await rail.query(payment)),
      settle: async (of, payment) => seen(payment, await rail.settle(of, payment)),
      withhold: async (of, payment) => seen(payment, await rail.withhold(of, payment)),
      fence: (places) => rail.fence(places),
      balance: () => rail.balance(),
      detach: () => rail.detach(),
    };
  };

  const played = new Set<string>();
  const effects = ISSUER_EFFECTS.map((effect, number) => (payment: Payment) => {
    const key = `${idOf(payment)}/${String(number)}`;
    const [card] = rails.cardsOf(idOf(payment));
    if (!played.has(key)) effect(network, chargesOn(card?.id ?? ""));
    played.add(key);
    return Promise.resolve();
  });

  return {
    rail: chargingRail(own),
    profile,
    payment() {
      const payment = newPayment(100, "shop");
      return { ...payment, request: { ...payment.request, rail: "card" } };
    },
    stepped: (steps) =>
      Promise.resolve({
        rail: chargingRail(rails.open(steppedDb(db, steps)), () => steps.pass()),
        close: () => Promise.resolve(),
      }),
    /** A card that may be charged at any time counts as charged, and so does an order from which it is made. */
    async timesMade(payment) {
      const cards = rails.cardsOf(idOf(payment));
      const times = cards.map(({ id, status }) =>
        Math.max(chargesOn(id).length, status === "active" ? 1 : 0),
      );
      const order = await own.cards.of(idOf(payment));
      const isOrdered = order !== null && order.closedAt === null && order.refusal === null;
      return Math.max(
        times.reduce((total, each) => total + each, 0),
        isOrdered ? 1 : 0,
      );
    },
    sources: {
      collections: collectionsOf(db),
      db,
      env: {},
      pocketKeys: null,
      chainRpcUrl: null,
      cardConnections: own.connections,
    },
    isOnCard: true,
    effects,
    close,
  };
}

railKit("card", cardScene, { effects: EFFECTS.length });
railKit("card", issuedScene, { by: "cards of a connected issuer", effects: ISSUER_EFFECTS.length });
