import { restricting } from "./restrictions.ts";

const { version: _version, ...LISTS } = restricting();

/** The calendar that a project begins with. */
export const UTC = {
  timezone: "UTC",
  resetTime: "00:00",
  weekStartsOn: "mon",
  monthStartsOn: 1,
  yearStartsIn: 1,
} as const;

/** Bodies of simulations that change nothing. */
export const SIMULATED = {
  simulateAgentBudgetPolicy: {},
  simulateAgentRestrictions: LISTS,
  simulateTeamBudget: { capCents: null, agents: [] },
  simulateTeamApprovalRules: { rules: [] },
  simulateTeamRestrictions: LISTS,
  simulateProjectBudget: { capCents: null, teams: [] },
  simulateProjectApprovalRules: { rules: [] },
  simulateProjectRestrictions: LISTS,
  simulateProjectCalendar: UTC,
} as const;
