import { expect } from "chai";
import { budgetReport } from "../../src/domain/agent/caps.ts";
import type { AgentCommand, AgentReply, CapsHeard } from "../../src/domain/agent/commands.ts";
import { decidedPayment } from "../../src/domain/agent/commands.ts";
import { handle } from "../../src/domain/agent/decide.ts";
import type { Payment } from "../../src/domain/agent/payment.ts";
import { type AgentState, initialAgentState } from "../../src/domain/agent/state.ts";
import { handleBudget } from "../../src/domain/budget/budget.ts";
import type { BudgetCommand, BudgetReply } from "../../src/domain/budget/commands.ts";
import type { BudgetReport } from "../../src/domain/budget/report.ts";
import { type BudgetState, initialBudgetState } from "../../src/domain/budget/state.ts";
import { NOON, openPolicy, profile } from "./support/actor.ts";

const { agentId, organizationId, projectId, teamId } = profile;

/** An agent and its project's budget, and messages between them that a test delivers when it likes. */
class Pair {
  readonly agent: AgentState = initialAgentState(profile, openPolicy, NOON, undefined, true);
  readonly budget: BudgetState = initialBudgetState(organizationId, projectId);
  #payments = 0;

  tell(command: AgentCommand): AgentReply {
    return handle(this.agent, command, NOON);
  }

  ask<K extends BudgetReply["kind"]>(kind: K, command: BudgetCommand): Extract<BudgetReply, { kind: K }> {
    const reply = handleBudget(this.budget, command, NOON);
    if (!isOf(kind, reply)) throw new Error(`got ${JSON.stringify(reply)}`);
    return reply;
  }

  pay(amountCents: number): Payment {
    this.#payments += 1;
    const number = this.#payments;
    const request = {
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
    } as const;
    const reply = this.tell({
      kind: "pay",
      keyId: "akey_1",
      request,
      approvalWindowSeconds: 60,
      lookedUpThrough: 0,
    });
    if (reply.kind !== "decided") throw new Error(`got ${reply.kind}`);
    return decidedPayment(request, reply.decision);
  }

  report(): BudgetReport {
    const report = budgetReport(this.agent);
    if (report === null) throw new Error("the agent has nothing to report");
    return report;
  }

  /** What an executor of the payment takes home from the budget, and has not told the agent yet. */
  heard(payment: Payment, report: BudgetReport): CapsHeard {
    const { answers, exemptEpoch } = this.ask("reported", { kind: "report", report });
    const { transactionId } = payment.request;
    const answer = answers.find((one) => one.transactionId === transactionId);
    if (answer === undefined) throw new Error("the budget has no answer");
    return { kind: "reserve", answer, reportRevision: report.revision, exemptEpoch };
  }

  capTeam(version: number, capCents: number | null, budgetCents: number | null = null) {
    const budgets = budgetCents === null ? [] : [{ agentId, budgetCents }];
    return this.ask("replaced", {
      kind: "replace_team",
      teamId,
      version,
      capCents,
      budgets,
      complete: true,
    });
  }

  /** Looks the agent up and tells it, as whoever carries a replacement through. */
  carryThrough(epoch: number): void {
    this.ask("enrolled", { kind: "enrol", epoch, agents: [{ agentId, teamId }], last: true });
    this.deliver();
  }

  deliver(): void {
    const delivery = this.budget.deliveries[agentId];
    if (delivery === undefined) return;
    const reply = this.tell({ kind: "heed_budget", ...delivery });
    const report = reply.kind === "report" ? reply.report : null;
    const { asks, epoch } = delivery;
    this.ask("confirmed", { kind: "delivered", agentId, epoch, asks, report });
  }
}

const isOf = <K extends BudgetReply["kind"]>(
  kind: K,
  reply: BudgetReply,
): reply is Extract<BudgetReply, { kind: K }> => reply.kind === kind;

describe("a late exemption", () => {
  it("heeded after an old demand came under no cap, it ends with the next cap: no payment passes", () => {
    const pair = new Pair();
    const { epoch: first } = pair.capTeam(1, 100);
    pair.ask("enrolled", { kind: "enrol", epoch: first, agents: [{ agentId, teamId }], last: true });
    // Its server dies before it tells anyone; the cap goes, and the old demand is still on its way.
    const payment = pair.pay(10);
    pair.heard(payment, pair.report());
    pair.capTeam(2, null, 500);
    const exempted = pair.heard(payment, pair.report());
    expect(exempted.exemptEpoch).not.to.equal(null);
    pair.deliver();
    const { transactionId } = payment.request;
    pair.tell({ kind: "confirm", transactionId, revision: 2, outcome: null, caps: exempted });
    // The agent pays without asking now, and the budget has not heard so yet.
    const { epoch } = pair.capTeam(3, 10, 500);
    pair.carryThrough(epoch);
    expect(pair.pay(40).ask, "the agent is under a cap").to.equal("reserve");
  });
});
