import type { RailModes } from "../contract/rails.ts";
import { perRail, type Rail } from "../domain/ledger/payment.ts";
import type { Rails } from "../payments/ports.ts";
import { CardRail } from "./card/card-rail.ts";
import { type CardScripts, CardSandbox } from "./card/rail.ts";
import { cardReconciliation } from "./card/reconcile.ts";
import { issuerReconciliation } from "./card/reconcile-issuer.ts";
import { cardSteps } from "./card/steps.ts";
import { withPurchases } from "./challenge/with-purchases.ts";
import type { ConnectedIssuer, RailFolder, RailsDependencies } from "./folder.ts";
import { pocketReconciliation } from "./pocket/reconcile.ts";
import { walletRailWithoutChain } from "./unavailable.ts";
import type { Wallets } from "./wallet/index.ts";
import { walletReconciliation } from "./wallet/reconcile.ts";
import { walletSteps } from "./wallet/steps.ts";
import { AgentWallets } from "./wallet/wallets.ts";

/** The rails. Each is a folder next to this file, and is registered here. */
export const RAIL_FOLDERS: { readonly [R in Rail]: RailFolder<R> } = {
  card: {
    kind: "push",
    open: ({ cardConnections: connections, cards, clock, db, networkScripts, rulings }) => {
      const begin: CardScripts["begin"] = (...played) => networkScripts.begin("card", ...played);
      const sandbox = new CardSandbox(db, clock, { begin });
      return new CardRail({ cards, connections, rulings, sandbox });
    },
    mode: (_wallets, issuer) => (issuer === null ? "sandbox" : issuer.isTest ? "test" : "real"),
    stepsOf: cardSteps,
    reconciliations: [cardReconciliation, issuerReconciliation],
  },
  wallet: {
    kind: "push",
    open: ({ db, isAgentGenuine, purchases, wallets }) =>
      wallets === null || purchases === null
        ? walletRailWithoutChain(new AgentWallets(db, isAgentGenuine))
        : withPurchases(wallets.rail, purchases),
    mode: (wallets) => (wallets === null ? "off" : wallets.sandbox === null ? "real" : "local"),
    stepsOf: walletSteps,
    reconciliations: [walletReconciliation, pocketReconciliation],
  },
};

export const railsOf = (given: RailsDependencies): Rails => perRail((rail) => RAIL_FOLDERS[rail].open(given));

export const railModesOf = (
  wallets: Pick<Wallets, "sandbox"> | null,
  issuer: ConnectedIssuer | null,
): RailModes => ({
  card: RAIL_FOLDERS.card.mode(wallets, issuer),
  wallet: RAIL_FOLDERS.wallet.mode(wallets, issuer),
});
