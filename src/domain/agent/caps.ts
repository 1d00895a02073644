import type { Ask, BudgetReport } from "../budget/report.ts";
import type { AgentBooks, AgentState } from "./state.ts";

/**
 * What an agent's actor knows of the caps over it. Its project's budget judges by them; the actor asks it, once for each
 * payment, and reports its totals. While no cap is over it, it is let pay without asking.
 */
export interface AgentCaps {
  exempt: boolean;
  /** The newest replacement of a budget that it has heard of; nothing older counts any more. */
  epoch: number;
  /** The newest one that has set its budget. */
  budgetEpoch: number;
  /** Raised by every change of its money, and of what it asks. */
  revision: number;
  /** The newest revision that the budget must hear of, since something was released; and since when. */
  owedRevision: number;
  owedSince: number;
  /** The newest one that it has heard of. */
  reportedRevision: number;
}

export const initialCaps = (): AgentCaps => ({
  exempt: false,
  epoch: 0,
  budgetEpoch: 0,
  revision: 1,
  owedRevision: 0,
  owedSince: 0,
  reportedRevision: 0,
});

/** Actors from before there were caps pay without asking until they are told to. */
export const adoptedCaps = (): AgentCaps => ({ ...initialCaps(), exempt: true });

/** Whether a payment needs the budget's word. */
export const asksForCaps = ({ caps }: AgentState): boolean => caps !== undefined && !caps.exempt;

/** Every change of money is a new revision; one that releases something is owed to the budget, so that others may use it. */
export function changeCaps(state: AgentState, releases: boolean, now: number): void {
  const { caps } = state;
  if (caps === undefined) return;
  caps.revision += 1;
  if (releases && !caps.exempt) owe(caps, now);
}

function owe(caps: AgentCaps, now: number): void {
  if (caps.owedRevision <= caps.reportedRevision) caps.owedSince = now;
  caps.owedRevision = caps.revision;
}

export const owesReport = ({ caps }: AgentBooks): boolean =>
  caps !== undefined && caps.owedRevision > caps.reportedRevision;

/**
 * The budget lets the agent pay without asking, unless the agent has heard of something newer. It reports once more, so
 * that the budget may let it go.
 */
export function exempt(state: AgentState, epoch: number, now: number): void {
  const { caps } = state;
  if (caps === undefined || epoch < caps.epoch) return;
  caps.exempt = true;
  caps.epoch = epoch;
  caps.revision += 1;
  owe(caps, now);
}

/** The agent asks from now on. */
export function demand(state: AgentState, epoch: number): void {
  const caps = (state.caps ??= adoptedCaps());
  if (epoch < caps.epoch) return;
  caps.exempt = false;
  caps.epoch = epoch;
  caps.revision += 1;
}

/** The budget has heard of this revision. */
export function reported(state: AgentState, revision: number): void {
  const { caps } = state;
  if (caps === undefined) return;
  caps.reportedRevision = Math.max(caps.reportedRevision, Math.min(revision, caps.revision));
}

/**
 * What the budget is told; null: nothing, since the agent does not ask, and owes nothing. What was asked before it was let pay
 * without asking still waits for its answer.
 */
export function budgetReport(state: AgentBooks): BudgetReport | null {
  const { caps, profile, usage } = state;
  if (caps === undefined) return null;
  const asks = openAsks(state);
  if (caps.exempt && asks.length === 0 && !owesReport(state)) return null;
  const wanted = asks.reduce((sum, ask) => (ask.kind === "reserve" ? sum + ask.amountCents : sum), 0);
  return {
    agentId: profile.agentId,
    teamId: profile.teamId,
    revision: caps.revision,
    spentCents: usage.spentCents,
    reservedCents: usage.reservedCents - wanted,
    asks,
  };
}

function openAsks({ open }: AgentBooks): Ask[] {
  const asks: Ask[] = [];
  // In the order in which the payments were decided.
  for (const { payment } of Object.values(open)) {
    const { ask, request } = payment;
    if (ask === undefined || ask === null) continue;
    asks.push({ transactionId: request.transactionId, kind: ask, amountCents: request.amountCents });
  }
  return asks;
}
