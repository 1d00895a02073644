import type { PaymentActivities } from "../../activities/payments.ts";
import type { Placed } from "../../activities/budgets.ts";
import { budgetReport, owesReport } from "../../src/domain/agent/caps.ts";
import type { AgentCommand, AgentReply } from "../../src/domain/agent/commands.ts";
import type { AgentState, AgentSummary, OpenPayment } from "../../src/domain/agent/state.ts";
import { projectedThrough, summarize } from "../../src/domain/agent/state.ts";
import { outstanding } from "../../src/domain/budget/budget.ts";
import type { BudgetCommand, BudgetReply } from "../../src/domain/budget/commands.ts";
import { type BudgetState, cappedTeams } from "../../src/domain/budget/state.ts";
import { confirmationOf, type SubmitResult } from "../../src/messages/agent.ts";
import type { Observer } from "./audit/observer.ts";
import type { Domain } from "./domain.ts";
import type { Timeline } from "./timeline.ts";

/** What is not confirmed after this long, an actor does itself. */
const SWEEP_AFTER_MS = 10_000;

/** What actors have done outside of themselves. */
export interface Outside {
  /** Runs an activity in some process, again after a failure, and gives up after a while. */
  readonly activity: <T>(work: (activities: PaymentActivities) => Promise<T>) => Promise<T>;
  readonly agentsUnder: (teams: "all" | readonly string[]) => Promise<Placed[]>;
  readonly writeSummary: (agentId: string, summary: AgentSummary) => Promise<void>;
}

export interface ActorDependencies {
  readonly domain: Domain;
  readonly timeline: Timeline;
  readonly observer: Observer;
  readonly outside: Outside;
}

/** Looks after an actor's timer: armed while something is left to do, and it sweeps when it fires. */
abstract class Actor {
  protected readonly dependencies: ActorDependencies;
  /** Raised by continue-as-new: what an earlier run waited for is nothing to this one. */
  protected run = 0;
  #isArmed = false;
  sweeps = 0;

  constructor(dependencies: ActorDependencies) {
    this.dependencies = dependencies;
  }

  protected abstract hasToSweep(): boolean;
  protected abstract sweepDue(now: number): void;

  protected arm(): void {
    if (this.#isArmed || !this.hasToSweep()) return;
    this.#isArmed = true;
    const { run } = this;
    this.dependencies.timeline.after(SWEEP_AFTER_MS, () => {
      if (run !== this.run) return;
      this.#isArmed = false;
      this.sweepDue(this.dependencies.timeline.now);
      this.arm();
    });
  }

  protected rollOver(): void {
    this.run += 1;
    this.#isArmed = false;
    this.arm();
  }
}

/** An agent's actor as workflows/agent.ts runs it: decides batches, and sees through what nobody confirms. */
export class AgentActor extends Actor {
  state: AgentState;
  readonly #sweeping = new Set<string>();

  constructor(dependencies: ActorDependencies, state: AgentState) {
    super(dependencies);
    this.state = state;
  }

  submit(commands: readonly AgentCommand[]): SubmitResult {
    const replies = commands.map((command) => this.#handle(command));
    this.arm();
    const report = budgetReport(this.state);
    const { caps, profile } = this.state;
    const { organizationId, projectId } = profile;
    const owedRevision = owesReport(this.state) ? (caps?.owedRevision ?? null) : null;
    return {
      replies,
      summary: summarize(this.state),
      forgottenThrough: this.state.forgottenThrough,
      projectedThrough: projectedThrough(this.state),
      ...(report === null ? {} : { budget: { place: { organizationId, projectId }, report, owedRevision } }),
    };
  }

  /** The state goes on as JSON, and the sweeps of the run before are nobody's. */
  continueAsNew(): void {
    const before = this.state;
    this.state = this.dependencies.domain.rollOverAgent(before);
    this.dependencies.observer.rolledOver(this.state.profile.agentId, before, this.state);
    this.#sweeping.clear();
    this.rollOver();
  }

  #handle(command: AgentCommand): AgentReply {
    const { domain, observer, timeline } = this.dependencies;
    const { agentId } = this.state.profile;
    try {
      const reply = domain.handle(this.state, command, timeline.now);
      observer.agentAnswered(agentId, command, reply, summarize(this.state), timeline.now);
      return reply;
    } catch (error) {
      observer.broke(`${command.kind} to ${agentId}`, error);
      throw error;
    }
  }

  #unswept(): OpenPayment[] {
    return Object.values(this.state.open).filter(
      (open) =>
        (open.confirmedRevision < open.payment.revision || open.dueAt !== undefined) &&
        !this.#sweeping.has(open.payment.request.transactionId),
    );
  }

  #isSummaryUnswept = (): boolean =>
    this.state.confirmedRevision < this.state.revision && !this.#sweeping.has("summary");
  #isReportUnswept = (): boolean => owesReport(this.state) && !this.#sweeping.has("report");

  protected hasToSweep(): boolean {
    return this.#isSummaryUnswept() || this.#isReportUnswept() || this.#unswept().length > 0;
  }

  protected sweepDue(now: number): void {
    const dueBefore = now - SWEEP_AFTER_MS;
    for (const open of this.#unswept()) {
      if (open.dueAt !== undefined || open.changedAt <= dueBefore)
        this.#sweep(open.payment.request.transactionId, () => this.#finish(open));
    }
    if (this.#isSummaryUnswept() && this.state.updatedAt <= dueBefore) {
      this.#sweep("summary", () => this.#writeSummary());
    }
    const owedSince = this.state.caps?.owedSince ?? 0;
    if (this.#isReportUnswept() && owedSince <= dueBefore) this.#sweep("report", () => this.#report());
  }

  #sweep(name: string, work: () => Promise<AgentCommand | null>): void {
    const { run } = this;
    this.sweeps += 1;
    this.#sweeping.add(name);
    void this.#swept(run, name, work);
  }

  async #swept(run: number, name: string, work: () => Promise<AgentCommand | null>): Promise<void> {
    try {
      const told = await work();
      if (run === this.run && told !== null) this.#handle(told);
    } catch {
      // It comes again; what the actor itself threw, the auditor has been told of.
    }
    if (run !== this.run) return;
    this.#sweeping.delete(name);
    this.arm();
  }

  async #finish(open: OpenPayment): Promise<AgentCommand> {
    const { payment } = open;
    const { profile } = this.state;
    delete open.dueAt;
    const report = budgetReport(this.state);
    const isOverdue = open.confirmedRevision >= payment.revision;
    const isTakenOver = isOverdue && payment.executor === "approval" && payment.phase === "sending";
    const input = {
      profile,
      payment,
      ...(report === null ? {} : { report }),
      ...(isTakenOver ? { executor: "approval" as const } : {}),
    };
    try {
      const done = await this.dependencies.outside.activity((activities) =>
        activities.carryOutPayment(input),
      );
      if (done.revision === 0) open.changedAt = this.dependencies.timeline.now;
      return confirmationOf(done);
    } catch (error) {
      open.changedAt = this.dependencies.timeline.now;
      throw error;
    }
  }

  async #writeSummary(): Promise<AgentCommand> {
    const summary = summarize(this.state);
    await this.dependencies.outside.writeSummary(this.state.profile.agentId, summary);
    return { kind: "confirm_summary", revision: summary.revision };
  }

  async #report(): Promise<AgentCommand | null> {
    const { profile } = this.state;
    const report = budgetReport(this.state);
    if (report === null) return null;
    await this.dependencies.outside.activity((activities) => activities.reportToBudget({ profile, report }));
    return { kind: "confirm_report", revision: report.revision };
  }
}

/** A project's budget as workflows/budget.ts runs it. */
export class BudgetActor extends Actor {
  state: BudgetState;
  #isSweeping = false;

  constructor(dependencies: ActorDependencies, state: BudgetState) {
    super(dependencies);
    this.state = state;
  }

  submit(commands: readonly BudgetCommand[]): BudgetReply[] {
    const replies = commands.map((command) => this.#handle(command));
    this.arm();
    return replies;
  }

  continueAsNew(): void {
    const before = this.state;
    this.state = this.dependencies.domain.rollOverBudget(before);
    this.dependencies.observer.rolledOver("the budget", before, this.state);
    this.#isSweeping = false;
    this.rollOver();
  }

  #handle(command: BudgetCommand): BudgetReply {
    const { domain, observer, timeline } = this.dependencies;
    try {
      const reply = domain.handleBudget(this.state, command, timeline.now);
      observer.budgetAnswered(command, reply);
      // Decided with the rest, and told to who asks the next time.
      if (command.kind === "delivered")
        observer.budgetDecided(this.state.members[command.agentId]?.answers ?? []);
      return reply;
    } catch (error) {
      observer.broke(`${command.kind} to the budget`, error);
      throw error;
    }
  }

  protected hasToSweep(): boolean {
    const { deliveries, enrolling } = this.state;
    return !this.#isSweeping && (enrolling || Object.keys(deliveries).length > 0);
  }

  protected sweepDue(now: number): void {
    if (!this.hasToSweep() || this.state.toldSince > now - SWEEP_AFTER_MS) return;
    const { run } = this;
    this.#isSweeping = true;
    this.sweeps += 1;
    void this.#tell(run)
      .catch(() => null)
      .finally(() => {
        if (run !== this.run) return;
        this.#isSweeping = false;
        this.arm();
      });
  }

  async #tell(run: number): Promise<void> {
    const { outside } = this.dependencies;
    const { epoch, enrolling } = this.state;
    if (enrolling) {
      const agents = await outside.agentsUnder(cappedTeams(this.state));
      if (run !== this.run) return;
      this.#handle({ kind: "enrol", epoch, agents, last: true });
    }
    const deliveries = outstanding(this.state);
    const told = await outside.activity((activities) => activities.tellAgents({ deliveries }));
    if (run !== this.run) return;
    for (const delivered of told) this.#handle({ kind: "delivered", ...delivered });
  }
}
