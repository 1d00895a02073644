import type { CapView } from "../domain/budget/budget.ts";
import type { BudgetCommand, BudgetReply, Unfinished } from "../domain/budget/commands.ts";
import type { BudgetReport } from "../domain/budget/report.ts";
import type { BudgetState, CapSetting, Member } from "../domain/budget/state.ts";

/** Names and payloads of what is said to a project's budget; shared by the workflow and its callers. */

export const BUDGET_WORKFLOW = "budget";
export const budgetWorkflowId = (projectId: string): string => `budget/${projectId}`;

/** How a project's budget begins, or goes on after continue-as-new. */
export interface BudgetInput {
  readonly start:
    | { readonly kind: "create"; readonly organizationId: string; readonly projectId: string }
    | { readonly kind: "resume"; readonly state: BudgetState };
  readonly settings: BudgetSettings;
}

export interface BudgetSettings {
  /** What agents have not been told after this long, the budget's actor tells them itself. */
  readonly sweepAfterSeconds: number;
  readonly rollOverAfterEvents: number;
}

export const BUDGET_SETTINGS: BudgetSettings = { sweepAfterSeconds: 10, rollOverAfterEvents: 4_000 };

/** The one update of a budget: a batch of commands, decided one after another in one workflow task. */
export const BUDGET_SUBMIT_UPDATE = "submit";

/** One reply for each command, in order. */
export type BudgetSubmitResult = readonly BudgetReply[];

/** Commands that go in one update at the most. */
export const BUDGET_BATCH_MAX = 256;

/** The caps as they were decided, and what is to be done before they are in force. */
export const CAPS_QUERY = "caps";

export interface CapsView extends DecidedCaps {
  readonly unfinished: Unfinished;
}

export interface DecidedCaps {
  readonly project: CapSetting;
  /** Teams that are not named have no cap, and version 1. */
  readonly teams: Readonly<Record<string, CapSetting>>;
  /** Budgets that agents have been given and may not have heard of. */
  readonly budgets: Readonly<Record<string, number>>;
}

/** What the caps leave to one agent, and what they would say to a payment of its. No effect. */
export const PREVIEW_QUERY = "preview";

export interface PreviewInput {
  readonly report: BudgetReport;
  readonly amountCents: number | null;
}

/** Operators' view in the Temporal UI. */
export const BUDGET_STATE_QUERY = "state";
export interface BudgetStateView extends DecidedCaps {
  readonly used: BudgetState["used"];
  readonly memberCount: number;
  readonly deliveryCount: number;
  readonly enrolling: boolean;
}

/** Everything that is compared with the agents' own actors (`npm run admin -- reconcile`). No effect. */
export const BUDGET_BOOKS_QUERY = "books";
export interface BudgetBooksView extends BudgetStateView {
  readonly members: Readonly<Record<string, Member>>;
  /** Agents that are still to be told something. */
  readonly untold: readonly string[];
}

export type { BudgetCommand, CapView };
