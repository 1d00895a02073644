import type { Db } from "mongodb";
import type { Clock, RailPort, Rails } from "../payments/ports.ts";
import { CardSandbox } from "./card-sandbox.ts";
import { walletRailWithoutChain } from "./unavailable.ts";
import { AgentWallets } from "./wallet/wallets.ts";

export interface RailsDependencies {
  readonly db: Db;
  readonly clock: Clock;
  /** Null: no chain is set up. */
  readonly walletRail: RailPort | null;
}

/** What each rail is made of. */
export const railsOf = ({ clock, db, walletRail }: RailsDependencies): Rails => ({
  card: new CardSandbox(db, clock),
  wallet: walletRail ?? walletRailWithoutChain(new AgentWallets(db)),
});
