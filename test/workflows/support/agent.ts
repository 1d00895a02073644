import type { WorkflowHandle } from "@temporalio/client";
import type { FirstKey } from "../../../src/domain/agent/access.ts";
import type { BudgetReport } from "../../../src/domain/budget/report.ts";
import { type CarriedOut, confirmationOf } from "../../../src/messages/agent.ts";
import type { AgentCommand, AgentReply } from "../../../src/domain/agent/commands.ts";
import { decidedPayment } from "../../../src/domain/agent/commands.ts";
import type { Payment, PaymentRequest } from "../../../src/domain/agent/payment.ts";
import type { BudgetPolicy } from "../../../src/domain/agent/policy.ts";
import type { AgentProfile } from "../../../src/domain/agent/state.ts";
import type { AgentInput, AgentSettings, AgentStateView } from "../../../src/messages/agent.ts";
import { AGENT_SETTINGS, AGENT_WORKFLOW, agentWorkflowId, STATE_QUERY } from "../../../src/messages/agent.ts";
import { agentSearchAttributes } from "../../../src/messages/search-attributes.ts";
import { agentIdOf, projectIdOf, type Stage } from "./stage.ts";

const DAY_SECONDS = 86_400;

export const containers = {
  organizationId: "0199aa00-0000-7000-8000-000000000001",
  projectId: "0199aa00-0000-7000-8000-000000000002",
  teamId: "0199aa00-0000-7000-8000-000000000003",
};

export const policy: BudgetPolicy = {
  budgetCents: 10_000,
  autoApprovalThresholdCents: 5_000,
  perTransactionLimitCents: null,
  dailySpendLimitCents: null,
  hourlyVelocityLimit: null,
  dailyVelocityLimit: null,
};

export const human = { userId: "0199aa00-0000-7000-8000-000000000005", name: "Ada" };

type Of<K extends AgentReply["kind"]> = Extract<AgentReply, { kind: K }>;

export interface Part {
  /** Whether it asks its project's budget, as new agents do; by default it is from before there were caps. */
  readonly asksForCaps?: boolean;
  /** Which agent of the scene it is, from 1. */
  readonly number?: number;
}

/** An agent's actor, and what a server does for it. */
export class StagedAgent {
  readonly #stage: Stage;
  #numbered = 0;
  readonly profile: AgentProfile;
  readonly handle: WorkflowHandle;
  /** The key that it pays with. */
  keyId = "akey_1";

  private constructor(stage: Stage, number = 1) {
    this.#stage = stage;
    this.profile = {
      ...containers,
      projectId: projectIdOf(stage.scene),
      agentId: agentIdOf(stage.scene, number),
      name: "Agent",
    };
    this.handle = stage.client.workflow.getHandle(agentWorkflowId(this.profile.agentId));
  }

  /** Without a first key: an actor from before actors knew of keys. */
  static async start(
    stage: Stage,
    settings: Partial<AgentSettings> = {},
    change: Partial<BudgetPolicy> = {},
    firstKey?: FirstKey,
    { asksForCaps, number }: Part = {},
  ): Promise<StagedAgent> {
    const agent = new StagedAgent(stage, number);
    const { handle, profile } = agent;
    if (firstKey !== undefined) agent.keyId = firstKey.keyId;
    const input: AgentInput = {
      start: {
        kind: "create",
        profile,
        policy: { ...policy, ...change },
        ...(firstKey === undefined ? {} : { firstKey }),
        ...(asksForCaps === undefined ? {} : { asksForCaps }),
      },
      settings: { ...AGENT_SETTINGS, ...settings },
    };
    await stage.client.workflow.start(AGENT_WORKFLOW, {
      taskQueue: stage.taskQueue,
      workflowId: handle.workflowId,
      args: [input],
      typedSearchAttributes: agentSearchAttributes(profile, "active"),
    });
    return agent;
  }

  async submit(...commands: readonly AgentCommand[]): Promise<readonly AgentReply[]> {
    return (await this.#stage.actors.submit(this.profile.agentId, commands)).replies;
  }

  async ask<K extends AgentReply["kind"]>(kind: K, command: AgentCommand): Promise<Of<K>> {
    const [reply] = await this.submit(command);
    if (reply === undefined || !isOf(kind, reply)) throw new Error(`got ${JSON.stringify(reply)}`);
    return reply;
  }

  request(amountCents: number, change: Partial<PaymentRequest> = {}): PaymentRequest {
    this.#numbered += 1;
    const number = `${this.profile.agentId.slice("agent-".length)}-${String(this.#numbered).padStart(4, "0")}`;
    return {
      transactionId: `txn_${number}`,
      approvalId: `apr_${number}`,
      keyHash: `key-${number}`,
      payloadHash: `payload-${number}`,
      proof: "",
      rail: "card",
      amountCents,
      currency: "USD",
      recipient: "shop",
      merchantCategory: null,
      purpose: "a test",
      ...change,
    };
  }

  /** A payment that must be decided; nothing of it is carried out. */
  async pay(amountCents: number, approvalWindowSeconds = DAY_SECONDS): Promise<Payment> {
    const request = this.request(amountCents);
    const { decision } = await this.ask("decided", payCommand(request, approvalWindowSeconds, 0, this.keyId));
    return decidedPayment(request, decision);
  }

  /** What a server does with a payment at once. */
  async carryOut(payment: Payment): Promise<CarriedOut> {
    const report = (payment.ask ?? null) === null ? null : await this.report();
    const hints = { decidedSinceMs: performance.now() };
    return this.#stage.effects.carryOut(this.profile, payment, "server", report, hints);
  }

  /** What it has for its project's budget. */
  async report(): Promise<BudgetReport | null> {
    return (await this.ask("report", { kind: "read_report" })).report;
  }

  /** Pays as a server does, to the end; what became of it. */
  async payThrough(amountCents: number): Promise<Payment> {
    const done = await this.carryOut(await this.pay(amountCents));
    await this.submit(confirmation(done));
    return done.payment;
  }

  async resolve(kind: "approve" | "deny" | "cancel", { request }: Payment): Promise<Of<"payment">> {
    const { transactionId } = request;
    if (kind === "cancel") return this.ask("payment", { kind, transactionId });
    if (kind === "approve") return this.ask("payment", { kind, transactionId, by: human, proof: "" });
    return this.ask("payment", { kind, transactionId, by: human, feedback: "Too dear.", proof: "" });
  }

  state(): Promise<AgentStateView> {
    return this.handle.query<AgentStateView>(STATE_QUERY);
  }

  /** Spent, reserved, and how many payments are open. */
  async totals(): Promise<{ spent: number; reserved: number; open: number }> {
    const { usage, open } = await this.state();
    return { spent: usage.spentCents, reserved: usage.reservedCents, open: Object.keys(open).length };
  }
}

export const payCommand = (
  request: PaymentRequest,
  approvalWindowSeconds = DAY_SECONDS,
  lookedUpThrough = 0,
  keyId = "akey_1",
): AgentCommand => ({ kind: "pay", keyId, request, approvalWindowSeconds, lookedUpThrough });

export const confirmation = (done: CarriedOut): AgentCommand => confirmationOf(done);

const isOf = <K extends AgentReply["kind"]>(kind: K, reply: AgentReply): reply is Of<K> =>
  reply.kind === kind;
