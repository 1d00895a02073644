import { Badge } from "@mantine/core";
import type { ReactElement } from "react";
import { type Settings, useOrganization } from "../organization.ts";

/** Describes the rails that move no real money; null if there are none. */
function unrealOf({
  card,
  wallet,
}: Settings["rails"]): { readonly label: string; readonly about: string } | null {
  const cards = "Card payments are simulated.";
  const wallets = "Wallets hold play money on a local chain.";
  if (card === "sandbox") {
    if (wallet === "real") return { label: "Sandbox cards", about: cards };
    return { label: "Sandbox", about: wallet === "local" ? `${cards} ${wallets}` : cards };
  }
  if (card === "test") {
    const about = "Cards are of a test account: no real money moves.";
    return {
      label: wallet === "local" ? "Test" : "Test cards",
      about: wallet === "local" ? `${about} ${wallets}` : about,
    };
  }
  return wallet === "local" ? { label: "Sandbox wallets", about: wallets } : null;
}

/** Badge on every page while payments move no real money, according to the service. */
export function SandboxBadge(): ReactElement | null {
  const { data } = useOrganization();
  const unreal = data === undefined ? null : unrealOf(data.rails);
  if (unreal === null) return null;
  return (
    <Badge variant="light" color="yellow" className="sandbox" title={unreal.about}>
      {unreal.label}
    </Badge>
  );
}
