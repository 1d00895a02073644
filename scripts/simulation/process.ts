import { heeded, type Placed } from "../../activities/budgets.ts";
import {
  type CarryOutHints,
  createPaymentEffects,
  type PaymentEffects,
  Superseded,
} from "../../activities/effects.ts";
import { createPaymentActivities, type PaymentActivities } from "../../activities/payments.ts";
import type { AgentGateway, Caps, Heard, PaymentWorkflows, RailPort, Rails } from "../../activities/ports.ts";
import type { AgentCommand } from "../../src/domain/agent/commands.ts";
import type { Payment, PaymentRequest } from "../../src/domain/agent/payment.ts";
import type { AgentProfile, AgentSummary } from "../../src/domain/agent/state.ts";
import type { Addressed, BudgetCommand, BudgetReply } from "../../src/domain/budget/commands.ts";
import { confirmationOf } from "../../src/messages/agent.ts";
import type { AgentActor, BudgetActor } from "./actors.ts";
import type { Observer } from "./audit/observer.ts";
import type { Processor, Records } from "./counterparts.ts";
import type { Domain } from "./domain.ts";
import { AgentMailbox, type Answered, Mailbox } from "./mailboxes.ts";
import { Host, type Network, Unavailable } from "./network.ts";
import type { Timeline } from "./timeline.ts";

/** What all processes of the service share. */
export interface Surroundings {
  readonly domain: Domain;
  readonly timeline: Timeline;
  readonly network: Network;
  readonly observer: Observer;
  readonly processor: Processor;
  readonly records: Records;
  readonly agents: ReadonlyMap<string, AgentActor>;
  readonly budget: BudgetActor;
  readonly workflows: PaymentWorkflows;
  readonly approvalWindowSeconds: number;
}

type Replacement = Extract<BudgetCommand, { kind: "replace_project" | "replace_team" }>;

/** How many payments an answer may wait for. */
const PAY_MS = 3_400;

/** The payment as a client is answered it; null: nothing was decided. */
export type PaidAnswer = Payment | null;

/**
 * One process of the service, server and worker at once: mailboxes of its own, the effects and activities that the
 * service has, over a network that fails. What it has in hand dies with it.
 */
export class ServiceProcess {
  readonly host: Host;
  readonly activities: PaymentActivities;
  readonly #agents: AgentGateway;
  readonly #effects: PaymentEffects;
  readonly #surroundings: Surroundings;
  readonly #mailboxes = new Map<string, AgentMailbox>();
  readonly #budget: Mailbox<BudgetCommand, BudgetReply>;

  constructor(name: string, surroundings: Surroundings) {
    this.host = new Host(name);
    this.#surroundings = surroundings;
    const { timeline } = surroundings;
    this.#budget = new Mailbox((commands) => this.#call(() => surroundings.budget.submit(commands)));
    const dependencies = {
      rails: this.#rails(),
      projections: {
        writePayment: (profile: AgentProfile, payment: Payment) =>
          this.#call(() => surroundings.records.writePayment(profile, payment)),
        writeAgentSummary: () => Promise.resolve(),
      },
      workflows: this.#workflows(),
      // Who is told of payments has no part in what becomes of them.
      telling: { tell: () => Promise.resolve(), hurry: () => undefined },
      caps: this.#caps(),
      // Nobody forges anything here.
      proofs: { isAccepted: () => true, isResolvedAsNamed: () => true, onForged: () => undefined },
      clock: () => new Date(timeline.now),
      monotonicMs: () => timeline.now,
    };
    const submit = (agentId: string, command: AgentCommand) => this.of(agentId).submit(command);
    // Records of agents follow by themselves here.
    this.#agents = { submit, submitAndRecord: submit };
    const withAgents = { ...dependencies, agents: this.#agents };
    this.#effects = createPaymentEffects(withAgents);
    this.activities = createPaymentActivities(withAgents);
  }

  /** The mailbox of an agent, made when it is first needed. */
  of(agentId: string): AgentMailbox {
    const known = this.#mailboxes.get(agentId);
    if (known !== undefined) return known;
    const actor = this.#surroundings.agents.get(agentId);
    if (actor === undefined) throw new Error(`no actor of ${agentId}`);
    const mailbox = new AgentMailbox({
      submit: (commands) => this.#call(() => actor.submit(commands)),
      hear: (report) => this.#caps().hear(actor.state.profile, report),
      writeSummary: (summary) => this.writeSummary(agentId, summary),
      sleep: (ms) => this.#surroundings.network.sleep(this.host, ms),
    });
    this.#mailboxes.set(agentId, mailbox);
    return mailbox;
  }

  writeSummary(agentId: string, summary: AgentSummary): Promise<void> {
    return this.#call(() => this.#surroundings.records.writeAgent(agentId, summary));
  }

  /** As server/payments.ts makes a payment: decides, carries out, and leaves to the actor what can't be had in time. */
  async pay(profile: AgentProfile, request: PaymentRequest): Promise<PaidAnswer> {
    const { agents, approvalWindowSeconds, domain, timeline } = this.#surroundings;
    const decidedSinceMs = timeline.now;
    const { reply, report } = await this.of(profile.agentId).answered({
      kind: "pay",
      keyId: agents.get(profile.agentId)?.state.access?.activeKeyId ?? "akey_none",
      request,
      approvalWindowSeconds,
      lookedUpThrough: 0,
    });
    switch (reply.kind) {
      case "decided":
        return this.#carryOut(profile, domain.decidedPayment(request, reply.decision), report, {
          decidedSinceMs,
        });
      case "replayed":
        if (!reply.samePayload) return null;
        if (reply.payment !== null) await this.#carryOut(profile, reply.payment, report);
        return this.#recorded(reply.transactionId);
      default:
        return null;
    }
  }

  /** Puts a person's or the agent's decision on a payment on hold to its actor, and tells its workflow. */
  async resolve(profile: AgentProfile, command: AgentCommand): Promise<void> {
    const reply = await this.of(profile.agentId).submit(command);
    if (reply.kind !== "payment") return;
    if (reply.changed || reply.payment.status === "expired") {
      await this.#carryOut(profile, reply.payment, null);
    }
  }

  async archive(profile: AgentProfile): Promise<void> {
    const { agentId } = profile;
    const reply = await this.of(agentId).submit({ kind: "archive", by: { type: "user" } });
    if (reply.kind !== "archive") return;
    for (const transactionId of reply.ended ?? []) {
      const read = await this.of(agentId).submit({ kind: "read_payment", transactionId });
      if (read.kind === "payment") await this.#carryOut(profile, read.payment, null);
    }
  }

  /** As server/budgets/container-budgets.ts replaces a budget: decides, and carries through. True once that is done. */
  async replace(command: Replacement): Promise<boolean> {
    const reply = await this.#budget.submit(command);
    if (reply.kind !== "replaced") return false;
    const { deliveries, enrols, epoch } = reply;
    await this.#tell(enrols === null ? deliveries : await this.#enrol(epoch, enrols));
    return true;
  }

  agentsUnder(teams: "all" | readonly string[]): Promise<Placed[]> {
    const { agents } = this.#surroundings.records;
    return this.#call(() =>
      [...agents]
        .map(([agentId, { teamId }]) => ({ agentId, teamId }))
        .filter(({ teamId }) => teams === "all" || teams.includes(teamId)),
    );
  }

  async #enrol(epoch: number, teams: "all" | readonly string[]): Promise<readonly Addressed[]> {
    const agents = await this.agentsUnder(teams);
    const reply = await this.#budget.submit({ kind: "enrol", epoch, agents, last: true });
    if (reply.kind !== "enrolled") throw new Error(`a budget answered ${reply.kind} to an enrolment`);
    return reply.deliveries;
  }

  async #tell(deliveries: readonly Addressed[]): Promise<void> {
    const tellOne = async (delivery: Addressed): Promise<void> => {
      const { agentId, asks, epoch } = delivery;
      const report = await heeded(this.#agents, delivery);
      await this.#budget.submit({ kind: "delivered", agentId, epoch, asks, report });
    };
    await Promise.all(deliveries.map(tellOne));
  }

  async #carryOut(
    profile: AgentProfile,
    payment: Payment,
    report: Answered["report"],
    hints?: CarryOutHints,
  ): Promise<PaidAnswer> {
    const { network } = this.#surroundings;
    try {
      const late = network.sleep(this.host, PAY_MS).then((): never => {
        throw new Unavailable("not in time");
      });
      return await Promise.race([this.#confirmed(profile, payment, report, hints), late]);
    } catch (error) {
      if (error instanceof Superseded) return this.#recorded(payment.request.transactionId);
      await this.#effects.record(profile, payment);
      if (payment.phase === "held" || (payment.ask ?? null) !== null) throw error;
      return payment;
    }
  }

  async #confirmed(
    profile: AgentProfile,
    payment: Payment,
    report: Answered["report"],
    hints?: CarryOutHints,
  ): Promise<Payment> {
    const done = await this.#effects.carryOut(profile, payment, "server", report, hints);
    this.of(profile.agentId).confirmLater(confirmationOf(done));
    return done.payment;
  }

  #recorded(transactionId: string): Promise<PaidAnswer> {
    return this.#call(() => this.#surroundings.records.payments.get(transactionId) ?? null);
  }

  #call<T>(work: () => T): Promise<T> {
    return this.#surroundings.network.call(this.host, work);
  }

  #caps(): Caps {
    return {
      hear: async (_place, report): Promise<Heard> => {
        const reply = await this.#budget.submit({ kind: "report", report });
        if (reply.kind !== "reported") throw new Error(`a budget answered ${reply.kind} to a report`);
        return reply;
      },
    };
  }

  #rails(): Rails {
    const { observer, processor, timeline } = this.#surroundings;
    const query = (payment: Payment) => this.#call(() => processor.query(payment.request.transactionId));
    const rail: RailPort = {
      capabilities: { finality: "instant", reversible: true },
      send: (_profile, payment) => {
        observer.begins(payment.request.transactionId, timeline.now);
        return this.#call(() => processor.charge(payment));
      },
      withhold: (_profile, payment) => this.#call(() => processor.withhold(payment)),
      query,
      settle: (_profile, payment) => query(payment),
      reverse: () => Promise.resolve("not_reversible"),
      balance: () => Promise.resolve({ kind: "none" }),
      detach: () => Promise.resolve("detached"),
    };
    return { card: rail, wallet: rail };
  }

  /** Starting and telling a workflow are messages, too. */
  #workflows(): PaymentWorkflows {
    const { workflows } = this.#surroundings;
    const sent = async (work: () => Promise<void>): Promise<void> =>
      await (
        await this.#call(() => ({ done: work() }))
      ).done;
    return {
      startApproval: (profile, payment) => sent(() => workflows.startApproval(profile, payment)),
      tellApproval: (profile, payment) => sent(() => workflows.tellApproval(profile, payment)),
      startSettlement: (profile, payment) => sent(() => workflows.startSettlement(profile, payment)),
    };
  }
}
