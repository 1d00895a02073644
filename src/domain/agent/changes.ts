import type { AgentState } from "./state.ts";

/** What the agent's record shows of its life has changed. */
export function changeForRecord(state: AgentState, now: number): void {
  state.revision += 1;
  state.updatedAt = now;
}

/** The same, and the ledger is to follow. */
export function changeForLedger(state: AgentState, now: number): void {
  changeForRecord(state, now);
  state.ledgerRevision = state.revision;
}
