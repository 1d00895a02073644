import type { AgentState } from "./state.ts";

/** Notes a lifecycle change that the agent's record shows. */
export function changeForRecord(state: AgentState, now: number): void {
  state.revision += 1;
  state.updatedAt = now;
}

/** Notes a change that both the record and the ledger must follow. */
export function changeForLedger(state: AgentState, now: number): void {
  changeForRecord(state, now);
  state.ledgerRevision = state.revision;
}
