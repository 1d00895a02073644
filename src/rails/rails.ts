import type { Db } from "mongodb";
import type { RailModes } from "../contract/rails.ts";
import type { Clock, RailPort, Rails } from "../payments/ports.ts";
import { CardSandbox, type NetworkScripts } from "./card/rail.ts";
import { walletRailWithoutChain } from "./unavailable.ts";
import type { Wallets } from "./wallet/index.ts";
import { AgentWallets } from "./wallet/wallets.ts";

export interface RailsDependencies {
  readonly db: Db;
  readonly clock: Clock;
  readonly cardNetwork: NetworkScripts;
  /** Null: no chain is set up. */
  readonly walletRail: RailPort | null;
}

/** The modes of the rails that `railsOf` makes. */
export function railModesOf(wallets: Pick<Wallets, "sandbox"> | null): RailModes {
  const wallet = wallets === null ? "off" : wallets.sandbox === null ? "real" : "local";
  return { card: "sandbox", wallet };
}

/** Makes all rails. */
export const railsOf = ({ cardNetwork, clock, db, walletRail }: RailsDependencies): Rails => ({
  card: new CardSandbox(db, clock, cardNetwork),
  wallet: walletRail ?? walletRailWithoutChain(new AgentWallets(db, () => true)),
});
