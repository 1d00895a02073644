import type { BudgetReport, NamedAnswer } from "./report.ts";
import type { Delivery } from "./state.ts";

/** What can be asked of a project's budget. Several go together in one update; each has its own reply. */
export type BudgetCommand =
  | { readonly kind: "report"; readonly report: BudgetReport }
  | {
      readonly kind: "replace_project";
      readonly version: number;
      readonly capCents: number | null;
      readonly teams: readonly { readonly teamId: string; readonly capCents: number | null }[];
      /** Whether `teams` names every live team, and nothing else. */
      readonly complete: boolean;
    }
  | {
      readonly kind: "replace_team";
      readonly teamId: string;
      readonly version: number;
      readonly capCents: number | null;
      /** Agents that get this budget: all that may have had another. */
      readonly budgets: readonly { readonly agentId: string; readonly budgetCents: number }[];
      /** Whether the request named every live agent, and nothing else. */
      readonly complete: boolean;
    }
  /** Agents in the project, looked up after the replacement of this epoch was decided; `last`: that was all of them. */
  | {
      readonly kind: "enrol";
      readonly epoch: number;
      readonly agents: readonly { readonly agentId: string; readonly teamId: string }[];
      readonly last: boolean;
    }
  /** An agent has been told, and said what its totals are; null where there is no such actor. */
  | {
      readonly kind: "delivered";
      readonly agentId: string;
      readonly epoch: number;
      /** Whether it was told to ask: of the same epoch there may have been a delivery without that before. */
      readonly asks: boolean;
      readonly report: BudgetReport | null;
    };

/** A delivery with the agent that it is for. */
export interface Addressed extends Delivery {
  readonly agentId: string;
}

/** What follows from replacements and is not done: agents that have to be looked up, and those that have to be told. */
export interface Unfinished {
  readonly epoch: number;
  /** The teams whose agents are to be looked up; null: none. */
  readonly enrols: "all" | readonly string[] | null;
  readonly deliveries: readonly Addressed[];
}

export type BudgetReply =
  | {
      readonly kind: "reported";
      /** For what the report asked; what is missing, the agent has been told before. */
      readonly answers: readonly NamedAnswer[];
      /** No cap is over the agent: it need not ask until it is told to, unless it has heard of something newer than this. */
      readonly exemptEpoch: number | null;
    }
  | ({ readonly kind: "replaced" } & Unfinished)
  | { readonly kind: "stale"; readonly version: number }
  | { readonly kind: "incomplete" }
  | { readonly kind: "enrolled"; readonly deliveries: readonly Addressed[] }
  | { readonly kind: "confirmed" };
