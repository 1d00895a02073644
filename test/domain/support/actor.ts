import type { AgentProfile } from "../../../src/domain/agent/state.ts";
import type { BudgetPolicy } from "../../../src/domain/ledger/policy.ts";

/** Times, names and figures that tests of the domain share. */

export const SECOND = 1_000;
export const MINUTE = 60 * SECOND;
export const HOUR = 60 * MINUTE;
export const DAY = 24 * HOUR;

/** Noon of an ordinary day, in UTC. */
export const NOON = Date.UTC(2026, 4, 13, 12);
export const APPROVAL_WINDOW_SECONDS = 86_400;

export const profile: AgentProfile = {
  organizationId: "org-1",
  projectId: "project-1",
  teamId: "team-1",
  agentId: "agent-1",
  name: "Agent",
};

export const human = { userId: "user-1", name: "Ada" };

/** A policy that denies nothing and holds nothing below its budget. */
export const openPolicy: BudgetPolicy = {
  budgetCents: 100_000,
  autoApprovalThresholdCents: null,
  perTransactionLimitCents: null,
  dailySpendLimitCents: null,
  hourlyVelocityLimit: null,
  dailyVelocityLimit: null,
};
