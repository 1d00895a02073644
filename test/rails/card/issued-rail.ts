import type { Db } from "mongodb";
import type { CardNetwork } from "../../../src/engines/card-network/network.ts";
import type { Card } from "../../../src/engines/card-network/shapes.ts";
import type { Clock } from "../../../src/payments/ports.ts";
import { CardRail } from "../../../src/rails/card/card-rail.ts";
import { CardConnections } from "../../../src/rails/card/connections.ts";
import { IssuedCards } from "../../../src/rails/card/issued.ts";
import { CardSandbox } from "../../../src/rails/card/rail.ts";
import { MasterKey } from "../../../src/secrets/master-key.ts";
import { Sealer } from "../../../src/secrets/sealer.ts";
import { TEST_ACCESS_PROOFS } from "../../support/access-proofs.ts";
import { issuersAt, testCardNetwork } from "../../support/card-network.ts";
import { TEST_MASTER_KEY } from "../../support/payloads.ts";

/** The card rail as a process has it. */
export interface IssuedRail {
  readonly cards: IssuedCards;
  readonly connections: CardConnections;
  readonly rail: CardRail;
}

/** The card rail on cards of the simulated network. */
export interface IssuedRails {
  readonly network: CardNetwork;
  /** Opens the rail of another process. */
  open(on?: Db): IssuedRail;
  /** Connects the organization to its account at the network. */
  connect(organizationId: string): Promise<void>;
  cardsOf(transactionId: string): readonly Card[];
}

/** Nothing is restricted. */
const rulings = { categoriesOver: () => Promise.resolve({ only: null, never: [] }) };
const NOWHERE = "http://127.0.0.1:1/";

export async function issuedRails(db: Db, apiKey: string, clock: Clock): Promise<IssuedRails> {
  const running = await testCardNetwork();
  const { network } = running.accountOf(apiKey);
  const kinds = issuersAt(running);
  const sealer = new Sealer(MasterKey.parse(TEST_MASTER_KEY, "a test"));
  const accessProofs = TEST_ACCESS_PROOFS;
  const open = (on = db): IssuedRail => {
    const connections = new CardConnections({ db: on, sealer, kinds, clock });
    const cards = new IssuedCards({ db: on, clock, accessProofs, connections, readySeconds: 60 });
    const sandbox = new CardSandbox(on, clock, { begin: () => Promise.resolve() });
    return { cards, connections, rail: new CardRail({ cards, connections, rulings, sandbox }) };
  };
  return {
    network,
    open,
    async connect(organizationId) {
      const { connections } = open();
      const account = { apiKey, publishableKey: null, authorizationSecret: null, made: null };
      const connectionId = connections.newId();
      const setUp = await connections.kindOf("stripe")?.open(account).setUp({
        connectionId,
        organizationName: "Org",
        eventsUrl: NOWHERE,
        authorizationUrl: NOWHERE,
      });
      if (setUp?.ok !== true) throw new Error("it was not set up");
      const place = { id: connectionId, organizationId, issuer: "stripe" };
      await connections.put(place, { ...account, made: setUp.value });
    },
    cardsOf: (transactionId) =>
      network.store
        .all<Card>("issuing.card")
        .filter(({ metadata }) => metadata["transaction"] === transactionId),
  };
}
