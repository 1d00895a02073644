import type { Calendar, PerPeriod } from "../ledger/calendar.ts";
import type { BudgetPolicy } from "../ledger/policy.ts";
import type { Cap } from "../ledger/state.ts";
import type { ReadyRestrictions } from "../rules/restrictions.ts";
import type { ReadyRule } from "../rules/rules.ts";
import type { ZoneOffsets } from "../rules/time-window.ts";

/** Limits, rules and restrictions in force in a simulation. */

/** Amounts from before the simulated time. */
export interface EarlierAmounts {
  readonly spentMc: number;
  readonly mc: PerPeriod;
}

export interface SimulatedLevel {
  readonly cap: Cap;
  readonly rules: readonly ReadyRule[];
  readonly restrictions: ReadyRestrictions | undefined;
  readonly earlier: EarlierAmounts;
}

export interface SimulatedAgent {
  readonly agentId: string;
  readonly teamId: string;
  readonly policy: BudgetPolicy;
  readonly restrictions: ReadyRestrictions | undefined;
  readonly earlier: EarlierAmounts;
}

export interface SimulatedProject extends SimulatedLevel {
  readonly calendar: Calendar;
  readonly approvalWindowSeconds: number;
  /** Returns the wall clock of a zone for all of the simulated time. */
  readonly offsetsOf: (timezone: string) => ZoneOffsets;
  readonly startsAt: number;
}
