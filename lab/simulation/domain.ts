import { handle } from "../../src/domain/agent/handle.ts";
import { type AgentState, initialAgentState } from "../../src/domain/agent/state.ts";
import { judge } from "../../src/domain/ledger/judge.ts";
import { packLedger, unpackLedger } from "../../src/domain/ledger/pack.ts";
import { decidedPayment } from "../../src/domain/ledger/pay.ts";
import { type Ledger, newLedger } from "../../src/domain/ledger/state.ts";

/** Functions of the domain that run actors under the auditor's eyes. Faults replace them, to see that it notices. */
export interface Domain {
  readonly newLedger: typeof newLedger;
  readonly judge: typeof judge;
  readonly decidedPayment: typeof decidedPayment;
  readonly initialAgentState: typeof initialAgentState;
  readonly handle: typeof handle;
  /** Passes a state through continue-as-new. */
  readonly rollOverLedger: (ledger: Ledger, now: number) => Ledger;
  readonly rollOverAgent: (state: AgentState) => AgentState;
}

/** As the engine carries it. */
function throughJson<T>(state: T): T {
  const carried: T = JSON.parse(JSON.stringify(state));
  return carried;
}

export const realDomain: Domain = {
  newLedger,
  judge,
  decidedPayment,
  initialAgentState,
  handle,
  rollOverLedger: (ledger, now) => unpackLedger(throughJson(packLedger(ledger, now))),
  rollOverAgent: throughJson,
};
