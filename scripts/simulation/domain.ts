import { decidedPayment } from "../../src/domain/agent/commands.ts";
import { handle } from "../../src/domain/agent/decide.ts";
import { initialAgentState } from "../../src/domain/agent/state.ts";
import { handleBudget } from "../../src/domain/budget/budget.ts";
import { initialBudgetState } from "../../src/domain/budget/state.ts";

/** What the simulation takes from the domain to run its actors. Faults are put in here, to see that the auditor notices. */
export interface Domain {
  readonly initialAgentState: typeof initialAgentState;
  readonly initialBudgetState: typeof initialBudgetState;
  readonly handle: typeof handle;
  readonly handleBudget: typeof handleBudget;
  readonly decidedPayment: typeof decidedPayment;
}

export const realDomain: Domain = {
  initialAgentState,
  initialBudgetState,
  handle,
  handleBudget,
  decidedPayment,
};
