import type { NamedAnswer } from "./report.ts";

/** A container's cap; `null`: none. The version is raised by every replacement, and by every change. */
export interface CapSetting {
  readonly capCents: number | null;
  readonly version: number;
}

/** An agent as the budget knows it. One that pays without asking, since no cap is over it, is not known here. */
export interface Member {
  readonly teamId: string;
  /** The report that stands. */
  revision: number;
  spentCents: number;
  /** With what was granted and is not reported yet. */
  reservedCents: number;
  /** What its asks were answered, while it may not know. Left out where there is none. */
  answers?: readonly NamedAnswer[];
  /** It may have been told that it need not ask, and may heed that at any time. */
  offered?: true;
}

/** What is left of a member that was let go: who still has an older report of it in hand is told nothing by it. */
export type Gone = readonly [revision: number, at: number];

/** How long that is kept; longer than anybody acts on a report that he has in hand. */
export const GONE_KEPT_MS = 3_600_000;

/** And how many at the most: the state must fit through continue-as-new, in 2 MiB. */
export const GONE_MAX = 10_000;

/** After so many more the oldest are forgotten. */
export const GONE_FORGOTTEN_EVERY = 500;

/** What an agent is still to be told, until it has said that it knows. */
export interface Delivery {
  /** An agent heeds no delivery that is older than what it has heard. */
  readonly epoch: number;
  /** It is to ask from now on, and to report its totals. */
  readonly asks: boolean;
  /** Its budget from now on, set by its team's; null: as it is. */
  readonly budgetCents: number | null;
  /**
   * Which replacement has set that, where a later one has added to the delivery: an agent that has heard of the budget
   * already, and was given another one by hand since, is not set back.
   */
  readonly budgetEpoch?: number;
}

/** What the agents of a project or a team have used of its cap, as far as they are members. */
export interface Used {
  spentCents: number;
  reservedCents: number;
}

/**
 * The whole state of a project's budget: plain data, carried over continue-as-new as JSON. `used` is the sum over the
 * members by construction: it changes only by the difference between a member before and after.
 */
export interface BudgetState {
  schemaVersion: 1;
  readonly organizationId: string;
  readonly projectId: string;
  project: CapSetting;
  /** Teams whose budget was ever replaced. */
  teams: Record<string, CapSetting>;
  members: Record<string, Member>;
  /** The oldest first. */
  gone: Record<string, Gone>;
  /** How many were let go since the oldest were forgotten. */
  letGo?: number;
  used: { project: Used; teams: Record<string, Used> };
  /** Raised by every replacement of a budget. */
  epoch: number;
  /** Whether the agents that a new cap is over are still to be looked up. */
  enrolling: boolean;
  deliveries: Record<string, Delivery>;
  /** When something was last begun that agents are to be told; what is left some time after, the actor does itself. */
  toldSince: number;
}

export const NO_CAP: CapSetting = { capCents: null, version: 1 };

export const initialBudgetState = (organizationId: string, projectId: string): BudgetState => ({
  schemaVersion: 1,
  organizationId,
  projectId,
  project: NO_CAP,
  teams: {},
  members: {},
  gone: {},
  used: { project: { spentCents: 0, reservedCents: 0 }, teams: {} },
  epoch: 1,
  enrolling: false,
  deliveries: {},
  toldSince: 0,
});

export const teamOf = (state: BudgetState, teamId: string): CapSetting => state.teams[teamId] ?? NO_CAP;

/** Whether any cap is over the agents of a team. */
export const isCapped = (state: BudgetState, teamId: string): boolean =>
  state.project.capCents !== null || teamOf(state, teamId).capCents !== null;

export const usedOf = (state: BudgetState, teamId: string): Used =>
  state.used.teams[teamId] ?? { spentCents: 0, reservedCents: 0 };

/** The teams whose agents a cap is over; "all": the project's. */
export const cappedTeams = (state: BudgetState): "all" | string[] =>
  state.project.capCents !== null
    ? "all"
    : Object.keys(state.teams).filter((teamId) => teamOf(state, teamId).capCents !== null);
