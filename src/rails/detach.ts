import type { AgentProfile } from "../domain/agent/state.ts";
import type { Detachment, Rails } from "../payments/ports.ts";

/** Gives up the right to spend for an agent on every rail; `pending` until all of them have. May be repeated. */
export async function detachEverywhere(rails: Rails, profile: AgentProfile): Promise<Detachment> {
  const ends = await Promise.all(Object.values(rails).map((rail) => rail.detach(profile)));
  return ends.every((end) => end === "detached") ? "detached" : "pending";
}
