import type { AccountSummary } from "../domain/ledger/state.ts";
import { NoSuchActor } from "./no-such-actor.ts";
import type { AgentGateway, Projections } from "../payments/ports.ts";

export interface AccountRecorderDependencies {
  readonly projections: Projections;
  readonly agents: AgentGateway;
}

/** Records an account's summary. Idempotent. */
export type RecordAccount = (summary: AccountSummary) => Promise<void>;

/**
 * Writes an agent's record as the ledger has its account, and notifies the agent's actor of a pause or resume, for the search
 * attribute that operators filter by.
 */
export const accountRecorder =
  ({ agents, projections }: AccountRecorderDependencies): RecordAccount =>
  async (summary) => {
    await Promise.all([projections.writeAccount(summary), followStatus(agents, summary)]);
  };

async function followStatus(
  agents: AgentGateway,
  { agentId, events, revision, status }: AccountSummary,
): Promise<void> {
  if (events.length === 0 || status === "closed") return;
  try {
    await agents.submit(agentId, { kind: "follow_status", status, revision });
  } catch (error) {
    // It ended with its agent, or an operator has terminated it: there is nothing to notify.
    if (!(error instanceof NoSuchActor)) throw error;
  }
}
