import { isDeliverable } from "../../src/domain/agent/access.ts";
import { decidedPayment } from "../../src/domain/agent/commands.ts";
import { handle } from "../../src/domain/agent/decide.ts";
import { type AgentState, initialAgentState } from "../../src/domain/agent/state.ts";
import { handleBudget } from "../../src/domain/budget/budget.ts";
import { type BudgetState, initialBudgetState } from "../../src/domain/budget/state.ts";

/** What is taken from the domain to run actors under the auditor's eyes. Faults are put in here, to see that it notices. */
export interface Domain {
  readonly initialAgentState: typeof initialAgentState;
  readonly initialBudgetState: typeof initialBudgetState;
  readonly handle: typeof handle;
  readonly handleBudget: typeof handleBudget;
  readonly decidedPayment: typeof decidedPayment;
  readonly isDeliverable: typeof isDeliverable;
  /** How a state goes through continue-as-new. */
  readonly rollOverAgent: (state: AgentState) => AgentState;
  readonly rollOverBudget: (state: BudgetState) => BudgetState;
}

/** As the engine carries it. */
function throughJson<T>(state: T): T {
  const carried: T = JSON.parse(JSON.stringify(state));
  return carried;
}

export const realDomain: Domain = {
  initialAgentState,
  initialBudgetState,
  handle,
  handleBudget,
  decidedPayment,
  isDeliverable,
  rollOverAgent: throughJson,
  rollOverBudget: throughJson,
};
