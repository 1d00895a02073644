import type { AccountSummary } from "../domain/ledger/state.ts";
import { NoSuchActor } from "./no-such-actor.ts";
import type { AgentGateway, Projections } from "../payments/ports.ts";

export interface AccountRecorderDependencies {
  readonly projections: Projections;
  readonly agents: AgentGateway;
}

/** Writes down what the ledger has decided of an account. May be repeated. */
export type RecordAccount = (summary: AccountSummary) => Promise<void>;

/**
 * Writes an agent's record as the ledger has its account, and tells the agent's actor where that was paused or resumed: an operator finds
 * agents by it.
 */
export const accountRecorder =
  ({ agents, projections }: AccountRecorderDependencies): RecordAccount =>
  async (summary) => {
    await Promise.all([projections.writeAccount(summary), followStanding(agents, summary)]);
  };

async function followStanding(
  agents: AgentGateway,
  { agentId, events, revision, standing }: AccountSummary,
): Promise<void> {
  if (events.length === 0 || standing === "closed") return;
  try {
    await agents.submit(agentId, { kind: "follow_standing", standing, revision });
  } catch (error) {
    // It ended with its agent, or an operator has ended it: nobody looks for it any more.
    if (!(error instanceof NoSuchActor)) throw error;
  }
}
