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
import type { AgentCommand } from "../src/domain/agent/commands.ts";
import { budgetReport, owesReport } from "../src/domain/agent/caps.ts";
import { assess, handle } from "../src/domain/agent/decide.ts";
import type { Payment } from "../src/domain/agent/payment.ts";
import type { AgentState, OpenPayment } from "../src/domain/agent/state.ts";
import { initialAgentState, projectedThrough, summarize } from "../src/domain/agent/state.ts";
import { countToday, countWithinHour, spentToday } from "../src/domain/agent/usage.ts";
import { remainingOf } from "../src/domain/money.ts";
import type {
  AgentInput,
  AgentStateView,
  BudgetQueryInput,
  BudgetView,
  SubmitResult,
} from "../src/messages/agent.ts";
import { BUDGET_QUERY, confirmationOf, STATE_QUERY, SUBMIT_UPDATE } from "../src/messages/agent.ts";
import { isBudgetQueryInput } from "../src/messages/guards/agent-commands.ts";
import { agentRefusal } from "../src/messages/guards/refusals.ts";
import { agentStateKey } from "../src/messages/search-attributes.ts";
import { describeAgent } from "./agent-details.ts";
import { refuse, refuseUnless } from "./refusing.ts";

export const submit = defineUpdate<SubmitResult, [readonly AgentCommand[]]>(SUBMIT_UPDATE);
export const stateQuery = defineQuery<AgentStateView>(STATE_QUERY);
export const budgetQuery = defineQuery<BudgetView, [BudgetQueryInput]>(BUDGET_QUERY);

/** Among what is being swept: the wallet's limits, the window of the first key, the wallet of an archived agent. */
const LIMITS = "limits";
const WINDOW = "window";
const WALLET = "wallet";
/** And what the project's budget is to hear. */
const REPORT = "report";

/**
 * A task that gives no command is taken for a mere heartbeat where a worker meets the workflow anew, and runs together
 * with the next one: updates come before what came before them. A later replay keeps the two apart. So in a run with
 * this patch no task but an update's own ends without a command: the first has the patch's marker, and a sweep that
 * ended leaves one. And whatever the order in which handlers and the main function get their turns, the updates at hand
 * are answered before the main function gives commands. Without it an actor could not be replayed any more, and stood
 * still, when updates had waited for a worker that was killed.
 */
const ANSWERS_FIRST = "answers-first";

/** A wallet that can't be detached is tried at a slowing pace: the last one is 2^8 times the first. */
const DETACH_SLOWED_MAX = 8;

/** A paused agent's rails are asked at a slowing pace what they have of its payments; at least so often. */
const LOOK_AFTER_MAX_MS = 3_600_000;

/** Sweeps of one agent at the same time. */
const SWEEPS_MAX = 20;

/**
 * Expiry, and the sending of what was approved, are the approval's workflow's. So many times the usual pause later the actor
 * does it itself: that workflow may have been ended by hand, and is never started twice.
 */
const OVERDUE_SWEEPS = 2;

const {
  carryOutPayment,
  closeDeliveryWindow,
  detachWallet,
  mirrorLimits,
  reportToBudget,
  writeAgentSummary,
} = proxyActivities<Activities>({
  startToCloseTimeout: "20 seconds",
  // One that does not succeed by then makes room for the others, and is taken up again in its turn.
  scheduleToCloseTimeout: "2 minutes",
  retry: { initialInterval: "1 second", backoffCoefficient: 2, maximumInterval: "1 minute" },
});

/**
 * An agent's actor: owns its policy, counters and reservations for the agent's whole life. It decides in synchronous
 * updates, and what it decided it sees through: effects that no one confirms in time it carries out by activities.
 */
export async function agent(input: AgentInput): Promise<void> {
  const actor = new AgentActor(input, patched(ANSWERS_FIRST));
  setHandler(submit, (commands) => actor.submit(commands), {
    validator: (commands) => refuse(agentRefusal(commands)),
  });
  setHandler(stateQuery, () => actor.view());
  setHandler(budgetQuery, (query) => {
    refuseUnless(isBudgetQueryInput(query), "question about a budget");
    return actor.budget(query);
  });
  actor.describe();
  await actor.seeEffectsThrough();
  // Nobody was ever told of the agent, and its record can't be written any more.
  if (actor.isDiscarded) return;
  // The task that ends this run has answered its updates already, so nobody is caught between two runs.
  await continueAsNew<typeof agent>({
    start: { kind: "resume", state: actor.state },
    settings: input.settings,
  });
}

class AgentActor {
  readonly state: AgentState;
  readonly #settings: AgentInput["settings"];
  /** See `ANSWERS_FIRST`; false in runs from before it. */
  readonly #answersFirst: boolean;
  /** What is being swept in this run: transaction ids, "" for the agent's own record, and what has a name above. */
  readonly #sweeping = new Set<string>();
  /** When, and how often in this run, the wallet of the archived agent was tried. */
  #detachTriedAt = 0;
  #detachTries = 0;
  #reportTriedAt = 0;
  /** Whether the create was given up, and the agent with it. */
  isDiscarded = false;

  constructor(input: AgentInput, answersFirst: boolean) {
    this.#settings = input.settings;
    this.#answersFirst = answersFirst;
    this.state =
      input.start.kind === "resume"
        ? input.start.state
        : initialAgentState(
            input.start.profile,
            input.start.policy,
            Date.now(),
            input.start.firstKey,
            input.start.asksForCaps,
          );
  }

  /** Decides a batch. Synchronous: nothing interleaves, and the answer is sent with the decision's history. */
  submit(commands: readonly AgentCommand[]): SubmitResult {
    const before = this.state.lifecycle;
    const replies = commands.map((command) => handle(this.state, command, Date.now()));
    if (this.state.lifecycle !== before) {
      upsertSearchAttributes([{ key: agentStateKey, value: this.state.lifecycle }]);
    }
    this.describe();
    return {
      replies,
      summary: summarize(this.state),
      forgottenThrough: this.state.forgottenThrough,
      projectedThrough: projectedThrough(this.state),
      ...this.#budgetShare(),
    };
  }

  #budgetShare(): Pick<SubmitResult, "budget"> {
    const report = budgetReport(this.state);
    if (report === null) return {};
    const { organizationId, projectId } = this.state.profile;
    const owedRevision = owesReport(this.state) ? (this.state.caps?.owedRevision ?? null) : null;
    return { budget: { place: { organizationId, projectId }, report, owedRevision } };
  }

  view(): AgentStateView {
    const { keys, keyOrder: _keyOrder, ...view } = this.state;
    return { ...view, rememberedKeyCount: Object.keys(keys).length };
  }

  budget({ now, payment = null }: BudgetQueryInput): BudgetView {
    const { policy, policyVersion, usage } = this.state;
    const at = Math.max(now, Date.now());
    return {
      policy,
      policyVersion,
      spentCents: usage.spentCents,
      reservedCents: usage.reservedCents,
      remainingCents: remainingOf(policy.budgetCents, usage.spentCents + usage.reservedCents),
      todayCents: spentToday(usage, at).amountCents,
      lastHourCount: countWithinHour(usage, at),
      todayCount: countToday(usage, at),
      assessment: payment === null ? null : assess(this.state, payment, at),
      report: budgetReport(this.state),
    };
  }

  /** What an operator reads in the Temporal UI. */
  describe(): void {
    setCurrentDetails(describeAgent(this.state));
  }

  /** Sweeps until this run should end. */
  async seeEffectsThrough(): Promise<void> {
    const rollOver = () => this.isDiscarded || this.#rollOverDue();
    while (!rollOver()) {
      await condition(() => rollOver() || this.#limitsUnmirrored() || this.#nextDueAt() < Infinity);
      await this.#answered();
      if (rollOver()) return;
      if (this.#limitsUnmirrored()) {
        this.#sweep(LIMITS, () => this.#mirrorLimits());
        continue;
      }
      const dueAt = this.#nextDueAt();
      // What was due before and could not be swept yet does not wait for the timer of something newer.
      const sooner = () => this.#limitsUnmirrored() || this.#nextDueAt() < dueAt;
      await condition(() => rollOver() || sooner(), Math.max(1, dueAt - Date.now()));
      await this.#answered();
      if (!rollOver()) this.#sweepDue(Date.now());
    }
  }

  /** The updates at hand have their answers. */
  async #answered(): Promise<void> {
    if (this.#answersFirst) await condition(allHandlersFinished);
  }

  #rollOverDue(): boolean {
    const info = workflowInfo();
    return info.continueAsNewSuggested || info.historyLength >= this.#settings.rollOverAfterEvents;
  }

  /** What is left to sweep; nothing while as many sweeps run as may, so that the loop waits instead of spinning. */
  #unswept(): OpenPayment[] {
    if (this.#sweeping.size >= SWEEPS_MAX) return [];
    return Object.values(this.state.open).filter(
      (open) => this.#dueAtOf(open) < Infinity && !this.#sweeping.has(open.payment.request.transactionId),
    );
  }

  /** When a payment is to be seen to, if nobody has by then. */
  #dueAtOf({ changedAt, confirmedRevision, dueAt, isWithdrawn, payment }: OpenPayment): number {
    const pauseMs = this.#settings.sweepAfterSeconds * 1_000;
    const { pausedAt } = this.state;
    if (dueAt !== undefined) return dueAt;
    if (isWithdrawn !== true && pausedAt !== undefined && payment.phase === "sending") {
      // Whoever began to send it before the pause may have left it to its rail, and died; ever less likely.
      const lookAfterMs = Math.min(Math.max(pauseMs, changedAt - pausedAt), LOOK_AFTER_MAX_MS);
      return changedAt + lookAfterMs;
    }
    if (confirmedRevision < payment.revision) return changedAt + pauseMs;
    if (isWithItsApproval(payment)) return changedAt + OVERDUE_SWEEPS * pauseMs;
    const expiresAt = payment.phase === "held" ? payment.approval?.expiresAt : undefined;
    return expiresAt === undefined ? Infinity : Math.max(expiresAt, changedAt) + OVERDUE_SWEEPS * pauseMs;
  }

  #summaryUnswept(): boolean {
    return this.state.confirmedRevision < this.state.revision && !this.#sweeping.has("");
  }

  /** A changed policy is mirrored at once, and beside the payments: none of them waits for it. */
  #limitsUnmirrored(): boolean {
    const { mirroredPolicyVersion = 0, policyVersion } = this.state;
    const mirrors = this.#settings.mirrorsLimits === true;
    return mirrors && mirroredPolicyVersion < policyVersion && !this.#sweeping.has(LIMITS);
  }

  /** When the window of the first key is to be closed; never, where that was done or is under way. */
  #windowDueAt(): number {
    const bundled = this.state.access?.bundled ?? null;
    if (bundled === null || bundled.erased || this.#sweeping.has(WINDOW)) return Infinity;
    return bundled.deliverableUntil;
  }

  /** When the service's right to spend from an archived agent's wallet is to be given up, if nobody has by then. */
  #walletDueAt(): number {
    const { archivedAt, walletDetached = false } = this.state;
    if (archivedAt === undefined || walletDetached || this.#sweeping.has(WALLET)) return Infinity;
    const pauseSeconds =
      this.#settings.sweepAfterSeconds * 2 ** Math.min(this.#detachTries, DETACH_SLOWED_MAX);
    return Math.max(archivedAt, this.#detachTriedAt) + pauseSeconds * 1_000;
  }

  /** When the budget is to hear what was released, if nobody has told it by then. */
  #reportDueAt(): number {
    const { caps } = this.state;
    if (caps === undefined || !owesReport(this.state) || this.#sweeping.has(REPORT)) return Infinity;
    return Math.max(caps.owedSince, this.#reportTriedAt) + this.#settings.sweepAfterSeconds * 1_000;
  }

  /** When the next thing is due: one timer for the whole actor, whatever the load. */
  #nextDueAt(): number {
    const payments = this.#unswept().map((open) => this.#dueAtOf(open));
    const summaryDueAt = this.#summaryUnswept()
      ? this.state.updatedAt + this.#settings.sweepAfterSeconds * 1_000
      : Infinity;
    const others = [summaryDueAt, this.#windowDueAt(), this.#walletDueAt(), this.#reportDueAt()];
    return Math.min(...payments, ...others);
  }

  #sweepDue(now: number): void {
    const dueBefore = now - this.#settings.sweepAfterSeconds * 1_000;
    for (const open of this.#unswept()) {
      if (this.#sweeping.size >= SWEEPS_MAX) break;
      if (this.#dueAtOf(open) <= now)
        this.#sweep(open.payment.request.transactionId, () => this.#finish(open));
    }
    if (this.#summaryUnswept() && this.state.updatedAt <= dueBefore) {
      this.#sweep("", () => this.#writeSummary());
    }
    if (this.#windowDueAt() <= now) this.#sweep(WINDOW, () => this.#closeWindow());
    if (this.#walletDueAt() <= now) this.#sweep(WALLET, () => this.#detachWallet());
    if (this.#reportDueAt() <= now) this.#sweep(REPORT, () => this.#report());
  }

  /** A command without an effect. */
  #leaveCommand(): void {
    upsertSearchAttributes([{ key: agentStateKey, value: this.state.lifecycle }]);
  }

  /** Sweeps run beside the loop, so that one rail that is down does not hold up the others or the roll-over. */
  #sweep(id: string, work: () => Promise<void>): void {
    this.#sweeping.add(id);
    void work()
      .catch((error: unknown) => log.warn("a sweep failed and will be repeated", { id, error }))
      .finally(() => {
        this.#sweeping.delete(id);
        if (this.#answersFirst) this.#leaveCommand();
      });
  }

  async #finish(open: OpenPayment): Promise<void> {
    const { profile } = this.state;
    const isOverdue = open.confirmedRevision >= open.payment.revision;
    const { transactionId } = open.payment.request;
    if (isOverdue && open.payment.phase === "held") {
      handle(this.state, { kind: "expire", transactionId }, Date.now());
    }
    const isTakenOver = isOverdue && isWithItsApproval(open.payment);
    delete open.dueAt;
    const report = budgetReport(this.state);
    const done = await carryOutPayment({
      profile,
      payment: open.payment,
      ...(report === null ? {} : { report }),
      ...(isTakenOver ? { executor: "approval" } : {}),
    }).catch((error: unknown) => {
      // What cannot be carried out now comes again after the others.
      open.changedAt = Date.now();
      throw error;
    });
    // Somebody else has seen to it meanwhile; if not, it comes again after the others.
    if (done.revision === 0) open.changedAt = Date.now();
    handle(this.state, confirmationOf(done), Date.now());
  }

  async #report(): Promise<void> {
    this.#reportTriedAt = Date.now();
    const report = budgetReport(this.state);
    if (report === null) return;
    await reportToBudget({ profile: this.state.profile, report });
    handle(this.state, { kind: "confirm_report", revision: report.revision }, Date.now());
  }

  async #mirrorLimits(): Promise<void> {
    const { policy, policyVersion, profile } = this.state;
    await mirrorLimits({ agentId: profile.agentId, policy, policyVersion });
    handle(this.state, { kind: "confirm_limits", policyVersion }, Date.now());
  }

  async #closeWindow(): Promise<void> {
    const end = await closeDeliveryWindow({ agentId: this.state.profile.agentId });
    this.isDiscarded = end === "discarded";
    handle(this.state, { kind: "confirm_erased" }, Date.now());
    this.describe();
  }

  async #detachWallet(): Promise<void> {
    this.#detachTriedAt = Date.now();
    this.#detachTries += 1;
    await detachWallet({ profile: this.state.profile });
    handle(this.state, { kind: "confirm_detached" }, Date.now());
  }

  async #writeSummary(): Promise<void> {
    const summary = summarize(this.state);
    await writeAgentSummary({ agentId: this.state.profile.agentId, summary });
    handle(this.state, { kind: "confirm_summary", revision: summary.revision }, Date.now());
  }
}

/** Approved, and to be sent by its approval's workflow. */
const isWithItsApproval = ({ executor, phase }: Payment): boolean =>
  executor === "approval" && phase === "sending";
