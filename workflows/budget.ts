import {
  allHandlersFinished,
  condition,
  continueAsNew,
  defineQuery,
  defineUpdate,
  log,
  patched,
  proxyActivities,
  setCurrentDetails,
  setHandler,
  upsertSearchAttributes,
  workflowInfo,
} from "@temporalio/workflow";
import type { Activities } from "../activities/types.ts";
import { handleBudget, outstanding, previewCaps, unfinished } from "../src/domain/budget/budget.ts";
import type { BudgetCommand } from "../src/domain/budget/commands.ts";
import { deliveriesOnce } from "../src/domain/budget/deliveries-once.ts";
import { type BudgetState, cappedTeams, initialBudgetState } from "../src/domain/budget/state.ts";
import type {
  BudgetBooksView,
  BudgetInput,
  BudgetStateView,
  BudgetSubmitResult,
  CapsView,
  CapView,
  DecidedCaps,
  PreviewInput,
} from "../src/messages/budget.ts";
import {
  BUDGET_BOOKS_QUERY,
  BUDGET_STATE_QUERY,
  BUDGET_SUBMIT_UPDATE,
  CAPS_QUERY,
  PREVIEW_QUERY,
} from "../src/messages/budget.ts";
import { isPreviewInput } from "../src/messages/guards/budget-commands.ts";
import { budgetRefusal } from "../src/messages/guards/refusals.ts";
import { projectIdKey } from "../src/messages/search-attributes.ts";
import { refuse, refuseUnless } from "./refusing.ts";

export const submitToBudget = defineUpdate<BudgetSubmitResult, [readonly BudgetCommand[]]>(
  BUDGET_SUBMIT_UPDATE,
);
export const capsQuery = defineQuery<CapsView>(CAPS_QUERY);
export const previewQuery = defineQuery<CapView, [PreviewInput]>(PREVIEW_QUERY);
export const budgetStateQuery = defineQuery<BudgetStateView>(BUDGET_STATE_QUERY);
export const budgetBooksQuery = defineQuery<BudgetBooksView>(BUDGET_BOOKS_QUERY);

/** Its marker keeps the first task from ending without a command (see `ANSWERS_FIRST` in agent.ts). */
const FIRST_TASK = "answers-first";

/** Agents that are told in one activity. */
const TOLD_AT_ONCE_MAX = 50;

const { agentsUnder, tellAgents } = proxyActivities<Activities>({
  startToCloseTimeout: "30 seconds",
  scheduleToCloseTimeout: "2 minutes",
  retry: { initialInterval: "1 second", backoffCoefficient: 2, maximumInterval: "1 minute" },
});

/**
 * A project's budget: owns the caps of the project and its teams, and what their agents have reserved and spent under
 * them. It decides in synchronous updates. A replacement that was decided is carried through: agents that are to be told
 * and that nobody has told in time, it tells itself.
 */
export async function budget(input: BudgetInput): Promise<void> {
  patched(FIRST_TASK);
  const actor = new BudgetActor(input);
  setHandler(submitToBudget, (commands) => actor.submit(commands), {
    validator: (commands) => refuse(budgetRefusal(commands)),
  });
  setHandler(capsQuery, () => actor.caps());
  setHandler(previewQuery, (query) => {
    refuseUnless(isPreviewInput(query), "question about caps");
    return previewCaps(actor.state, query.report, query.amountCents);
  });
  setHandler(budgetStateQuery, () => actor.view());
  setHandler(budgetBooksQuery, () => actor.books());
  setCurrentDetails(
    `The budget of project \`${actor.state.projectId}\`. The query \`${BUDGET_STATE_QUERY}\` shows caps and usage.`,
  );
  await actor.seeThrough();
  await continueAsNew<typeof budget>({
    start: { kind: "resume", state: actor.state },
    settings: input.settings,
  });
}

class BudgetActor {
  readonly state: BudgetState;
  readonly #settings: BudgetInput["settings"];
  #sweeping = false;
  #triedAt = 0;

  constructor({ settings, start }: BudgetInput) {
    this.#settings = settings;
    this.state =
      start.kind === "resume" ? start.state : initialBudgetState(start.organizationId, start.projectId);
  }

  submit(commands: readonly BudgetCommand[]): BudgetSubmitResult {
    return deliveriesOnce(commands.map((command) => handleBudget(this.state, command, Date.now())));
  }

  caps(): CapsView {
    return { ...this.#decided(), unfinished: unfinished(this.state) };
  }

  #decided(): DecidedCaps {
    const { deliveries, project, teams } = this.state;
    const budgets: Record<string, number> = {};
    for (const [agentId, { budgetCents }] of Object.entries(deliveries)) {
      if (budgetCents !== null) budgets[agentId] = budgetCents;
    }
    return { project, teams, budgets };
  }

  view(): BudgetStateView {
    const { deliveries, enrolling, members, used } = this.state;
    return {
      ...this.#decided(),
      used,
      memberCount: Object.keys(members).length,
      deliveryCount: Object.keys(deliveries).length,
      enrolling,
    };
  }

  books(): BudgetBooksView {
    const { deliveries, members } = this.state;
    return { ...this.view(), members, untold: Object.keys(deliveries) };
  }

  /** Tells agents what nobody has told them, until this run should end. */
  async seeThrough(): Promise<void> {
    while (!this.#rollOverDue()) {
      await condition(() => this.#rollOverDue() || this.#dueAt() < Infinity);
      await condition(allHandlersFinished);
      if (this.#rollOverDue()) return;
      const waitMs = Math.max(1, this.#dueAt() - Date.now());
      await condition(() => this.#rollOverDue() || this.#dueAt() === Infinity, waitMs);
      await condition(allHandlersFinished);
      if (!this.#rollOverDue() && this.#dueAt() <= Date.now()) this.#sweep();
    }
  }

  #rollOverDue(): boolean {
    const info = workflowInfo();
    return info.continueAsNewSuggested || info.historyLength >= this.#settings.rollOverAfterEvents;
  }

  #dueAt(): number {
    const { deliveries, enrolling, toldSince } = this.state;
    const isDone = !enrolling && Object.keys(deliveries).length === 0;
    if (isDone || this.#sweeping) return Infinity;
    return Math.max(toldSince, this.#triedAt) + this.#settings.sweepAfterSeconds * 1_000;
  }

  #sweep(): void {
    this.#sweeping = true;
    void this.#tell()
      .catch((error: unknown) => log.warn("agents were not told, and will be", { error }))
      .finally(() => {
        this.#sweeping = false;
        this.#triedAt = Date.now();
        // No task but an update's own ends without a command.
        upsertSearchAttributes([{ key: projectIdKey, value: this.state.projectId }]);
      });
  }

  async #tell(): Promise<void> {
    const { epoch, enrolling, projectId } = this.state;
    if (enrolling) {
      const agents = await agentsUnder({ projectId, teams: cappedTeams(this.state) });
      handleBudget(this.state, { kind: "enrol", epoch, agents, last: true }, Date.now());
    }
    // All in turn: some that can't be told do not keep it from the others. They are tried again after the usual time.
    const waiting = outstanding(this.state);
    for (let from = 0; (from === 0 || from < waiting.length) && !this.#rollOverDue();) {
      const delivered = await tellAgents({ deliveries: waiting.slice(from, from + TOLD_AT_ONCE_MAX) });
      for (const one of delivered) handleBudget(this.state, { kind: "delivered", ...one }, Date.now());
      from += TOLD_AT_ONCE_MAX;
    }
  }
}
