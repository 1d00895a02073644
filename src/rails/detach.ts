import type { AgentProfile } from "../domain/agent/state.ts";
import type { Detachment, Rails } from "../payments/ports.ts";

/** Revokes an agent's right to spend on every rail. `pending` until all rails have revoked it. Repeatable. */
export async function detachEverywhere(rails: Rails, profile: AgentProfile): Promise<Detachment> {
  const ends = await Promise.all(Object.values(rails).map((rail) => rail.detach(profile)));
  return ends.every((end) => end === "detached") ? "detached" : "pending";
}
