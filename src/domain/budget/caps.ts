import { dollars, limitDenial, type LimitDenial } from "../agent/policy.ts";
import { remainingOf } from "../money.ts";
import { type BudgetState, type CapSetting, teamOf, type Used, usedOf } from "./state.ts";

/**
 * Whether so much more fits the caps of team and project, the team first; the first that does not
 * names the denial. `ownCents`: what the payment has reserved already, and is not held against it.
 */
export function checkCaps(
  state: BudgetState,
  teamId: string,
  amountCents: number,
  ownCents: number,
): LimitDenial | null {
  const team = roomUnder(teamOf(state, teamId), usedOf(state, teamId), ownCents);
  const project = roomUnder(state.project, state.used.project, ownCents);
  return (
    checkCap("TEAM_CAP_EXCEEDED", "team", team, amountCents) ??
    checkCap("PROJECT_CAP_EXCEEDED", "project", project, amountCents)
  );
}

interface Room {
  readonly capCents: number;
  readonly usedCents: number;
}

const roomUnder = ({ capCents }: CapSetting, used: Used, ownCents: number): Room | null =>
  capCents === null ? null : { capCents, usedCents: used.spentCents + used.reservedCents - ownCents };

function checkCap(
  code: "TEAM_CAP_EXCEEDED" | "PROJECT_CAP_EXCEEDED",
  noun: string,
  room: Room | null,
  amountCents: number,
): LimitDenial | null {
  if (room === null || room.usedCents + amountCents <= room.capCents) return null;
  const { capCents, usedCents } = room;
  const remaining = remainingOf(capCents, usedCents);
  const reason = `The payment is above what is left of the ${noun}'s cap: ${dollars(remaining)} of ${dollars(capCents)}.`;
  return limitDenial(code, reason, capCents, remaining, null);
}

/** What is left under a container's cap; null where it has none. */
export const remainingCents = (cap: CapSetting, used: Used): number | null =>
  cap.capCents === null ? null : remainingOf(cap.capCents, used.spentCents + used.reservedCents);
