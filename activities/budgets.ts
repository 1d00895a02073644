import type { Collection } from "mongodb";
import type { AgentDocument } from "./documents.ts";

/** An agent, and the team that it is of. */
export interface Placed {
  readonly agentId: string;
  readonly teamId: string;
}

/**
 * The agents of a project, or of some of its teams: archived ones too, since what they have spent counts under the caps.
 * Whoever is let pay without asking has a record, so none of them is missed.
 */
export async function agentsUnder(
  agents: Collection<AgentDocument>,
  projectId: string,
  teams: "all" | readonly string[],
): Promise<Placed[]> {
  const within = teams === "all" ? {} : { teamId: { $in: [...teams] } };
  const found = await agents.find({ projectId, ...within }, { projection: { teamId: 1 } }).toArray();
  return found.map(({ _id, teamId }) => ({ agentId: _id, teamId }));
}
