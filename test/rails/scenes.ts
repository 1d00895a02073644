import type { Payment } from "../../src/domain/ledger/payment.ts";
import type { AgentProfile } from "../../src/domain/agent/state.ts";
import type { RailPort, Rails } from "../../src/payments/ports.ts";
import type { CardLedgerDocument } from "../../src/rails/card/network-books.ts";
import { CardSandbox } from "../../src/rails/card/rail.ts";
import { COLLECTIONS } from "../../src/store/documents.ts";
import { eventually, newPayment, openScene, sharedChainUrl } from "../chain/support.ts";
import { testDatabase } from "../support/mongo.ts";
import { purchaseScene } from "./purchase-scene.ts";
import { steppedChain, steppedDb, type Steps } from "./steps.ts";

/** A process that has a rail, and takes every step through `Steps`. */
export interface SteppedProcess {
  readonly rail: RailPort;
  close(): Promise<void>;
}

/** A rail with its books, and an agent that can pay on it. */
export interface RailScene {
  /** Another process, which nothing stops. */
  readonly rail: RailPort;
  readonly profile: AgentProfile;
  payment(): Payment;
  stepped(steps: Steps): Promise<SteppedProcess>;
  /** How often the rail's own books say that a payment was made. */
  timesMade(payment: Payment): Promise<number>;
  close(): Promise<void>;
}

const clock = (): Date => new Date();

/** Its network does nothing by itself. */
const NO_SCRIPTS = { begin: () => Promise.resolve() };

async function cardScene(): Promise<RailScene> {
  const { close, db } = await testDatabase();
  const profile = { organizationId: "o", projectId: "p", teamId: "t", agentId: "a", name: "a" };
  const ledger = db.collection<CardLedgerDocument>(COLLECTIONS.sandboxCardLedger);
  return {
    rail: new CardSandbox(db, clock, NO_SCRIPTS),
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
    close,
  };
}

async function walletScene(): Promise<RailScene> {
  const scene = await openScene();
  const agent = await scene.funded(100_000);
  const made: Payment[] = [];
  return {
    rail: scene.open().rail,
    profile: agent.profile,
    payment() {
      const payment = newPayment(100);
      made.push(payment);
      return payment;
    },
    async stepped(steps) {
      const chain = await steppedChain(sharedChainUrl(), steps);
      const { rail } = scene.open({ db: steppedDb(scene.db, steps), rpcUrl: chain.url });
      return { rail, close: () => chain.close() };
    },
    async timesMade({ request }) {
      // A transaction is mined a moment after its hand-over is answered.
      await eventually("all is mined", async () => {
        const [pending, latest] = await Promise.all(
          (["pending", "latest"] as const).map((blockTag) =>
            scene.chain.getTransactionCount({ address: scene.signer.address, blockTag }),
          ),
        );
        return pending === latest;
      });
      const { spent } = await scene.audit([agent], made);
      return spent.get(request.transactionId)?.length ?? 0;
    },
    close: () => scene.close(),
  };
}

/** Every rail that there is, each with what shows from outside what it did. */
export const RAIL_SCENES: Readonly<Record<keyof Rails | "purchases", () => Promise<RailScene>>> = {
  card: cardScene,
  wallet: walletScene,
  purchases: purchaseScene,
};
