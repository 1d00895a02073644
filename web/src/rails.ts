import type { IconName } from "./icons.tsx";
import type { Rail } from "./words.ts";

export interface ShownRail {
  readonly value: Rail;
  readonly label: string;
  readonly icon: IconName;
  /** Phrase in "Agent asks …". */
  readonly by: string;
  /** Phrase in a step: "Captured …". */
  readonly steps: string;
}

export const RAILS: Readonly<Record<Rail, ShownRail>> = {
  card: { value: "card", label: "Card", icon: "card", by: "by card", steps: "by the card processor" },
  wallet: {
    value: "wallet",
    label: "Wallet",
    icon: "wallet",
    by: "from the agent’s wallet, on chain: once sent, it can’t be taken back",
    steps: "on chain",
  },
};

export const RAIL_LIST: readonly ShownRail[] = Object.values(RAILS);
