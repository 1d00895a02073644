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
import { perRail, type Rail, WALLET_RAIL } from "../src/domain/ledger/payment.ts";
import { judge } from "../src/domain/ledger/judge.ts";
import { packLedger, unpackLedger } from "../src/domain/ledger/pack.ts";
import { newLedger } from "../src/domain/ledger/state.ts";
import { staleBackupOf } from "../src/domain/ledger/stale-backup.ts";
import { ledgerRefusal } from "../src/messages/guards/batch-refusals.ts";
import type {
  AccountQueryInput,
  AccountView,
  SnapshotPage,
  SnapshotQueryInput,
  CapsQueryInput,
  CapsView,
  KnownRevisions,
  LedgerCommand,
  LedgerInput,
  LedgerSettings,
  LedgerStateView,
  LedgerSubmitResult,
  TeamBudgetQueryInput,
  TeamBudgetView,
} from "../src/messages/ledger.ts";
import {
  ACCOUNT_QUERY,
  SNAPSHOT_QUERY,
  CAPS_QUERY,
  LEDGER_STATE_QUERY,
  LEDGER_SUBMIT_UPDATE,
  TEAM_BUDGET_QUERY,
} from "../src/messages/ledger.ts";
import { projectIdKey } from "../src/messages/search-attributes.ts";
import { sideTaskQueue } from "../src/messages/task-queues.ts";
import { LedgerActor } from "./ledger-actor.ts";
import type { SweepPorts } from "./ledger-sweeps.ts";
import { accountView, snapshotPage, capsView, ledgerStateView, teamBudgetView } from "./ledger-views.ts";
import { refuse, refuseStaleBackup } from "./refusing.ts";

export const submitToLedger = defineUpdate<LedgerSubmitResult, [readonly LedgerCommand[], KnownRevisions]>(
  LEDGER_SUBMIT_UPDATE,
);
export const accountQuery = defineQuery<AccountView | null, [AccountQueryInput]>(ACCOUNT_QUERY);
export const capsQuery = defineQuery<CapsView, [CapsQueryInput]>(CAPS_QUERY);
export const teamBudgetQuery = defineQuery<TeamBudgetView, [TeamBudgetQueryInput]>(TEAM_BUDGET_QUERY);
export const ledgerStateQuery = defineQuery<LedgerStateView>(LEDGER_STATE_QUERY);
export const snapshotQuery = defineQuery<SnapshotPage, [SnapshotQueryInput]>(SNAPSHOT_QUERY);

/**
 * Marker of the first task. When a worker meets a workflow anew, Temporal takes a task without commands for a heartbeat
 * and runs it together with the next one, so updates run before earlier work; a later replay keeps the two apart.
 * Therefore only an update's own task may end without a command: the first task has this marker, and a finished sweep
 * or an idle timer emits one.
 */
const FIRST_TASK = "first-task";

/**
 * A project's ledger. It decides about all money of the project, at the levels of agent, team and project at once, in
 * synchronous updates. It sees its decisions through: effects that nobody confirms in time are executed by activities.
 */
export async function ledger(input: LedgerInput): Promise<void> {
  patched(FIRST_TASK);
  const actor = actorOf(input);
  setHandler(submitToLedger, (commands, known) => actor.submit(commands, known), {
    validator: (commands, known) => {
      refuseStaleBackup(staleBackupOf(actor.ledger, known));
      refuse(ledgerRefusal(commands));
    },
  });
  setHandler(accountQuery, (query) => accountView(actor.ledger, query, Date.now()));
  setHandler(capsQuery, ({ now }) => capsView(actor.ledger, Math.max(now, Date.now())));
  setHandler(teamBudgetQuery, ({ now, teamId }) =>
    teamBudgetView(actor.ledger, teamId, Math.max(now, Date.now())),
  );
  setHandler(ledgerStateQuery, () => ledgerStateView(actor.ledger, Date.now()));
  setHandler(snapshotQuery, (query) => snapshotPage(actor.ledger, query));
  setCurrentDetails(
    `The ledger of project \`${actor.ledger.projectId}\`. The query \`${LEDGER_STATE_QUERY}\` shows caps and totals, \`${ACCOUNT_QUERY}\` an agent's account.`,
  );
  await sweepUntilDone(actor, input.settings);
  // The task that ends this run has already answered its updates, so none is lost between runs.
  await continueAsNew<typeof ledger>({
    start: { kind: "resume", ledger: packLedger(actor.ledger, Date.now()) },
    settings: input.settings,
  });
}

const ACTIVITY_OPTIONS = {
  startToCloseTimeout: "20 seconds",
  // An activity that fails by then frees its slot and is retried after the others.
  scheduleToCloseTimeout: "2 minutes",
  retry: { initialInterval: "1 second", backoffCoefficient: 2, maximumInterval: "1 minute" },
} as const;

const { tellActors, writeAccounts, writeCaps } = proxyActivities<Activities>(ACTIVITY_OPTIONS);

/** Returns the activities of a rail, which have their own task queue. */
const activitiesOn = (rail: Rail) =>
  proxyActivities<Activities>({
    ...ACTIVITY_OPTIONS,
    taskQueue: sideTaskQueue(workflowInfo().taskQueue, rail),
  });

function sweepActivities(): SweepPorts["activities"] {
  const rails = perRail(activitiesOn);
  return {
    executePayments: (rail, input) => rails[rail].executePayments(input),
    mirrorLimits: (input) => rails[WALLET_RAIL].mirrorLimits(input),
    tellActors,
    writeAccounts,
    writeCaps,
  };
}

function actorOf({ settings, start }: LedgerInput): LedgerActor {
  const money =
    start.kind === "resume" ? unpackLedger(start.ledger) : newLedger(start.organizationId, start.projectId);
  return new LedgerActor(
    money,
    { sweepAfterMs: settings.sweepAfterSeconds * 1_000 },
    {
      activities: sweepActivities(),
      judge: (command) => judge(money, command, Date.now()),
      now: () => Date.now(),
      onFailed: (names, error) => log.warn("a sweep failed and will be repeated", { names, error }),
      isEnding: () => isRollOverDue(settings),
      // Only an update's own task may end without a command.
      emitCommand: () => upsertSearchAttributes([{ key: projectIdKey, value: money.projectId }]),
    },
  );
}

function isRollOverDue({ rollOverAfterEvents }: LedgerSettings): boolean {
  const info = workflowInfo();
  return info.continueAsNewSuggested || info.historyLength >= rollOverAfterEvents;
}

/** Sweeps until this run ends. */
async function sweepUntilDone({ sweeps }: LedgerActor, settings: LedgerSettings): Promise<void> {
  const rollOver = (): boolean => isRollOverDue(settings);
  /** Waits until something is due. Resolves to whether the timer fired. */
  const somethingDue = async (): Promise<boolean> => {
    const waitUntil = sweeps.nextAt;
    const waitMs = waitUntil - Date.now();
    if (waitMs <= 0) return false;
    const isSooner = () => rollOver() || sweeps.nextAt < waitUntil;
    // Cancelling a timer costs nothing, but each start does.
    const isOver = () => isSooner() || sweeps.nextAt === Infinity;
    if (waitMs !== Infinity) return !(await condition(isOver, waitMs));
    await condition(isSooner);
    return false;
  };
  while (!rollOver()) {
    const isTimeUp = await somethingDue();
    // Pending updates are answered first, whatever the order of handlers and this function.
    await condition(allHandlersFinished);
    if (rollOver()) return;
    sweeps.sweep(Date.now());
    // If a next timer is started, that is a command too.
    if (isTimeUp && sweeps.nextAt === Infinity) sweeps.emitCommand();
  }
}
