import { type AgentState, summarize } from "../../src/domain/agent/state.ts";
import { countToday, countWithinHour, spentToday } from "../../src/domain/agent/usage.ts";
import type { AgentShown } from "./audit/observer.ts";

/** What an agent's actor keeps, laid open for the auditor. */
export function shownOf(state: AgentState, now: number): AgentShown {
  const { access = null, open, sequence, usage } = state;
  return {
    ...summarize(state),
    sequence,
    access,
    usage: {
      todayCents: spentToday(usage, now).amountCents,
      todayCount: countToday(usage, now),
      lastHourCount: countWithinHour(usage, now),
    },
    open: Object.values(open).map(({ payment: { phase, request, status } }) => ({
      transactionId: request.transactionId,
      status,
      isHeld: phase === "held",
    })),
  };
}
