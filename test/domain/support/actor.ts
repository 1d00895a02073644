import type { FirstKey } from "../../../src/domain/agent/access.ts";
import type { AgentCommand, AgentReply } from "../../../src/domain/agent/commands.ts";
import { handle } from "../../../src/domain/agent/decide.ts";
import type { Payment, PaymentRequest, RailOutcome } from "../../../src/domain/agent/payment.ts";
import { settle } from "../../../src/domain/agent/payment.ts";
import type { BudgetPolicy, BudgetPolicyPatch } from "../../../src/domain/agent/policy.ts";
import type { AgentProfile, AgentState } from "../../../src/domain/agent/state.ts";
import type { PaymentRules } from "../../../src/domain/rules/checks.ts";
import { initialAgentState } from "../../../src/domain/agent/state.ts";

export const SECOND = 1_000;
export const MINUTE = 60 * SECOND;
export const HOUR = 60 * MINUTE;
export const DAY = 24 * HOUR;

/** Noon of an ordinary day, in UTC. */
export const NOON = Date.UTC(2026, 4, 13, 12);
export const APPROVAL_WINDOW_SECONDS = 86_400;

export const profile: AgentProfile = {
  organizationId: "org-1",
  projectId: "project-1",
  teamId: "team-1",
  agentId: "agent-1",
  name: "Agent",
};

export const human = { userId: "user-1", name: "Ada" };

/** A policy that denies nothing and holds nothing below its budget. */
export const openPolicy: BudgetPolicy = {
  budgetCents: 100_000,
  autoApprovalThresholdCents: null,
  perTransactionLimitCents: null,
  dailySpendLimitCents: null,
  hourlyVelocityLimit: null,
  dailyVelocityLimit: null,
};

type Of<K extends AgentReply["kind"]> = Extract<AgentReply, { kind: K }>;
type HeldCommand = Extract<AgentCommand["kind"], "approve" | "deny" | "cancel" | "expire">;

/** An agent's state with a clock: puts commands to the domain in a test's words. */
export class TestActor {
  readonly state: AgentState;
  now: number;
  #numbered = 0;

  /** Without a first key: an actor from before actors knew of keys. */
  constructor(policy: BudgetPolicyPatch = {}, now = NOON, firstKey?: FirstKey) {
    this.now = now;
    this.state = initialAgentState(profile, { ...openPolicy, ...policy }, now, firstKey);
  }

  do(command: AgentCommand): AgentReply {
    return handle(this.state, command, this.now);
  }

  request(amountCents: number, change: Partial<PaymentRequest> = {}): PaymentRequest {
    this.#numbered += 1;
    const number = this.#numbered;
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

  payReply(request: PaymentRequest, lookedUpThrough = 0, rules?: PaymentRules): AgentReply {
    const keyId = this.state.access?.activeKeyId ?? "akey_1";
    const pay = { kind: "pay", keyId, request, lookedUpThrough } as const;
    const approvalWindowSeconds = APPROVAL_WINDOW_SECONDS;
    return this.do({ ...pay, approvalWindowSeconds, ...(rules === undefined ? {} : { rules }) });
  }

  /** A payment, its key just looked up, that must be decided: as the actor has it afterwards. */
  pay(amountCents: number, change: Partial<PaymentRequest> = {}, rules?: PaymentRules): Payment {
    const request = this.request(amountCents, change);
    this.as("decided", this.payReply(request, this.state.closed, rules));
    return this.payment(request.transactionId);
  }

  payment(transactionId: string): Payment {
    const open = this.state.open[transactionId];
    if (open === undefined) throw new Error(`${transactionId} is not open`);
    return open.payment;
  }

  resolve(kind: HeldCommand, transactionId: string): Of<"payment"> {
    return this.as("payment", this.do(heldCommand(kind, transactionId)));
  }

  /** The rail has answered, and whoever asked it tells the actor. */
  settle(transactionId: string, result: RailOutcome = { status: "settled", final: true }): void {
    const { revision } = settle(this.payment(transactionId), result, this.now);
    this.do({ kind: "confirm", transactionId, revision, outcome: { result, at: this.now } });
  }

  /** A payment made and settled, or, with an outcome, whatever its rail answered. */
  paid(amountCents: number, result?: RailOutcome): Payment {
    const payment = this.pay(amountCents);
    this.settle(payment.request.transactionId, result);
    return payment;
  }

  change(patch: BudgetPolicyPatch): void {
    this.as("policy", this.do({ kind: "change_policy", patch, version: this.state.policyVersion }));
  }

  /** Spent, reserved, counted on the newest day. */
  totals(): { spent: number; reserved: number; today: number; count: number } {
    const { spentCents, reservedCents, day } = this.state.usage;
    return { spent: spentCents, reserved: reservedCents, today: day.amountCents, count: day.count };
  }

  as<K extends AgentReply["kind"]>(kind: K, reply: AgentReply): Of<K> {
    if (!isOf(kind, reply)) throw new Error(`expected ${kind}, got ${JSON.stringify(reply)}`);
    return reply;
  }
}

const isOf = <K extends AgentReply["kind"]>(kind: K, reply: AgentReply): reply is Of<K> =>
  reply.kind === kind;

export function heldCommand(kind: HeldCommand, transactionId: string): AgentCommand {
  switch (kind) {
    case "approve":
      return { kind, transactionId, by: human, proof: "" };
    case "deny":
      return { kind, transactionId, by: human, feedback: "Too dear.", proof: "" };
    case "cancel":
    case "expire":
      return { kind, transactionId };
  }
}
