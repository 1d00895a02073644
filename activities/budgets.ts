import type { Collection } from "mongodb";
import type { Addressed } from "../src/domain/budget/commands.ts";
import type { BudgetReport } from "../src/domain/budget/report.ts";
import type { AgentDocument } from "./documents.ts";
import { NoSuchActor } from "./no-such-actor.ts";
import type { AgentGateway } from "./ports.ts";

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

/**
 * Tells an agent what its project's budget has for it, and hears what its totals are then. Null for an agent without an
 * actor (an operator has ended it): it pays nothing any more, and keeps nobody from what the others are told.
 */
export async function heeded(
  agents: AgentGateway,
  { agentId, ...delivery }: Addressed,
): Promise<BudgetReport | null> {
  const command = { kind: "heed_budget", ...delivery } as const;
  try {
    // While it is under way the budget is read from the delivery, afterwards from the record.
    const reply =
      delivery.budgetCents === null
        ? await agents.submit(agentId, command)
        : await agents.submitAndRecord(agentId, command);
    return reply.kind === "report" ? reply.report : null;
  } catch (error) {
    if (error instanceof NoSuchActor) return null;
    throw error;
  }
}
