import {
  allHandlersFinished,
  condition,
  continueAsNew,
  defineQuery,
  defineUpdate,
  patched,
  setCurrentDetails,
  setHandler,
  workflowInfo,
} from "@temporalio/workflow";
import { accountDueAt, type SweepSettings } from "../src/domain/ledger/due.ts";
import { judgeBatch } from "../src/domain/ledger/judge.ts";
import { packLedger, unpackLedger } from "../src/domain/ledger/pack.ts";
import { type Account, type Ledger, newLedger, summaryOf } from "../src/domain/ledger/state.ts";
import { isAccountQueryInput, isBooksQueryInput } from "../src/messages/guards/ledger-commands.ts";
import { ledgerRefusal } from "../src/messages/guards/refusals.ts";
import type {
  AccountQueryInput,
  AccountView,
  BooksPage,
  BooksQueryInput,
  CapsView,
  LedgerCommand,
  LedgerInput,
  LedgerStateView,
  LedgerSubmitResult,
  TeamBudgets,
} from "../src/messages/ledger.ts";
import {
  ACCOUNT_QUERY,
  BOOKS_QUERY,
  CAPS_QUERY,
  LEDGER_STATE_QUERY,
  LEDGER_SUBMIT_UPDATE,
  TEAM_BUDGETS_QUERY,
} from "../src/messages/ledger.ts";
import { LedgerSweeps } from "./ledger-sweeps.ts";
import { accountView, booksPage, capsView, ledgerStateView, teamBudgets } from "./ledger-views.ts";
import { refuse, refuseUnless } from "./refusing.ts";

export const submitToLedger = defineUpdate<LedgerSubmitResult, [readonly LedgerCommand[]]>(
  LEDGER_SUBMIT_UPDATE,
);
export const accountQuery = defineQuery<AccountView | null, [AccountQueryInput]>(ACCOUNT_QUERY);
export const capsQuery = defineQuery<CapsView>(CAPS_QUERY);
export const teamBudgetsQuery = defineQuery<TeamBudgets, [string]>(TEAM_BUDGETS_QUERY);
export const ledgerStateQuery = defineQuery<LedgerStateView>(LEDGER_STATE_QUERY);
export const booksQuery = defineQuery<BooksPage, [BooksQueryInput]>(BOOKS_QUERY);

/**
 * A task that gives no command is taken for a mere heartbeat where a worker meets the workflow anew, and runs together with the next
 * one: updates come before what came before them. A later replay keeps the two apart. So no task but an update's own ends without a
 * command: the first one has this marker, and a sweep that ended and a timer that found nothing to do leave one.
 */
const FIRST_TASK = "first-task";

/**
 * A project's ledger: decides about all money of the project, at the levels of agent, team and project at once. It decides in synchronous
 * updates, and what it decided it sees through: effects that no one confirms in time it carries out by activities.
 */
export async function ledger(input: LedgerInput): Promise<void> {
  patched(FIRST_TASK);
  const actor = new LedgerActor(input);
  setHandler(submitToLedger, (commands) => actor.submit(commands), {
    validator: (commands) => refuse(ledgerRefusal(commands)),
  });
  setHandler(accountQuery, (query) => {
    refuseUnless(isAccountQueryInput(query), "question about an account");
    return accountView(actor.ledger, query, Date.now());
  });
  setHandler(capsQuery, () => capsView(actor.ledger));
  setHandler(teamBudgetsQuery, (teamId) => teamBudgets(actor.ledger, teamId));
  setHandler(ledgerStateQuery, () => ledgerStateView(actor.ledger));
  setHandler(booksQuery, (query) => {
    refuseUnless(isBooksQueryInput(query), "question about accounts");
    return booksPage(actor.ledger, query);
  });
  setCurrentDetails(
    `The ledger of project \`${actor.ledger.projectId}\`. The query \`${LEDGER_STATE_QUERY}\` shows caps and totals, \`${ACCOUNT_QUERY}\` an agent's account.`,
  );
  await actor.seeThrough();
  // The task that ends this run has answered its updates already, so nobody is caught between two runs.
  await continueAsNew<typeof ledger>({
    start: { kind: "resume", ledger: packLedger(actor.ledger, Date.now()) },
    settings: input.settings,
  });
}

class LedgerActor {
  readonly ledger: Ledger;
  readonly #rollOverAfterEvents: number;
  readonly #sweepSettings: SweepSettings;
  readonly #sweeps: LedgerSweeps;

  constructor({ settings, start }: LedgerInput) {
    this.ledger =
      start.kind === "resume" ? unpackLedger(start.ledger) : newLedger(start.organizationId, start.projectId);
    this.#rollOverAfterEvents = settings.rollOverAfterEvents;
    this.#sweepSettings = { sweepAfterMs: settings.sweepAfterSeconds * 1_000 };
    this.#sweeps = new LedgerSweeps(this.ledger, this.#sweepSettings, () => this.#rollOverDue());
  }

  /** Judges a batch. Synchronous: nothing interleaves, and the answer is sent with the decision's history. */
  submit(commands: readonly LedgerCommand[]): LedgerSubmitResult {
    const { ledger } = this;
    ledger.touched.clear();
    const replies = judgeBatch(ledger, commands, Date.now());
    const touched = [...ledger.touched].flatMap((agentId) => ledger.accounts.get(agentId) ?? []);
    for (const account of touched) this.#sweeps.expect(accountDueAt(account, this.#sweepSettings), account);
    if (replies.some(({ kind }) => kind === "replaced")) this.#sweeps.lookAgain();
    return {
      replies,
      accounts: touched
        .filter(({ confirmedRevision, revision }) => confirmedRevision < revision)
        .map(summaryOf),
      closed: Object.fromEntries(
        touched.filter(hasForgotten).map(({ agentId, closed }) => [agentId, closed]),
      ),
    };
  }

  /** Sweeps until this run should end. */
  async seeThrough(): Promise<void> {
    const sweeps = this.#sweeps;
    while (!this.#rollOverDue()) {
      const isTimeUp = await this.#somethingDue();
      // Whatever the order in which handlers and this function get their turns, the updates at hand are answered first.
      await condition(allHandlersFinished);
      if (this.#rollOverDue()) return;
      sweeps.sweep(Date.now());
      if (isTimeUp) sweeps.leaveCommand();
    }
  }

  /** Waits until there is something to look after; whether a timer said so. */
  async #somethingDue(): Promise<boolean> {
    const sweeps = this.#sweeps;
    const waitUntil = sweeps.nextAt;
    const waitMs = waitUntil - Date.now();
    if (waitMs <= 0) return false;
    const isSooner = () => this.#rollOverDue() || sweeps.nextAt < waitUntil;
    if (waitMs !== Infinity) return !(await condition(isSooner, waitMs));
    await condition(isSooner);
    return false;
  }

  #rollOverDue(): boolean {
    const info = workflowInfo();
    return info.continueAsNewSuggested || info.historyLength >= this.#rollOverAfterEvents;
  }
}

const hasForgotten = ({ forgottenThrough }: Account): boolean => forgottenThrough > 0;
