import { expect } from "chai";
import { asksForCaps, budgetReport, initialCaps } from "../../src/domain/agent/caps.ts";
import { handleBudget } from "../../src/domain/budget/budget.ts";
import type { BudgetCommand } from "../../src/domain/budget/commands.ts";
import type { BudgetReport } from "../../src/domain/budget/report.ts";
import { type BudgetState, initialBudgetState } from "../../src/domain/budget/state.ts";
import { NOON, TestActor } from "./support/actor.ts";

/** Orders of messages that the simulation has found to break the caps, each as short as it can be. */

const agentId = "agent-1";
const teamId = "team-1";
const report = (revision: number, spentCents: number): BudgetReport => ({
  agentId,
  teamId,
  revision,
  spentCents,
  reservedCents: 0,
  asks: [],
});

class TestBudget {
  readonly state: BudgetState = initialBudgetState("org-1", "project-1");

  do(command: BudgetCommand): ReturnType<typeof handleBudget> {
    return handleBudget(this.state, command, NOON);
  }

  hear(revision: number, spentCents: number): void {
    this.do({ kind: "report", report: report(revision, spentCents) });
  }

  cap(capCents: number | null): void {
    const { version } = this.state.project;
    this.do({ kind: "replace_project", version, capCents, teams: [], complete: true });
  }

  setTeam(budgetCents: number): void {
    const version = this.state.teams[teamId]?.version ?? 1;
    const budgets = [{ agentId, budgetCents }];
    this.do({ kind: "replace_team", teamId, version, capCents: null, budgets, complete: true });
  }

  enrol(): void {
    const { epoch } = this.state;
    this.do({ kind: "enrol", epoch, agents: [{ agentId, teamId }], last: true });
  }

  delivered(asks: boolean, heard: BudgetReport | null, epoch = this.state.epoch): void {
    this.do({ kind: "delivered", agentId, epoch, asks, report: heard });
  }
}

describe("an agent under a cap that comes later", () => {
  it("is told to ask, also when its last report comes once more after the cap was set", () => {
    const budget = new TestBudget();
    budget.hear(3, 40);
    budget.cap(100);
    budget.hear(3, 40);
    budget.enrol();
    expect(budget.state.deliveries[agentId]?.asks).to.equal(true);
  });

  it("is told to ask, also when a later report from before comes only after the cap was set", () => {
    const budget = new TestBudget();
    budget.hear(3, 40);
    budget.cap(100);
    budget.hear(4, 50);
    budget.enrol();
    expect(budget.state.deliveries[agentId]?.asks).to.equal(true);
  });

  it("is not taken for one that asks when the same replacement told it of its budget alone", () => {
    const budget = new TestBudget();
    budget.cap(100);
    budget.setTeam(70);
    budget.enrol();
    budget.delivered(false, null);
    expect(budget.state.deliveries[agentId]?.asks).to.equal(true);
    budget.delivered(true, report(5, 40));
    expect(budget.state.deliveries).to.deep.equal({});
    expect(budget.state.used.project.spentCents).to.equal(40);
  });

  it("counts once it has said what it used, also while a later replacement is to be told", () => {
    const budget = new TestBudget();
    budget.cap(100);
    budget.enrol();
    const told = budget.state.epoch;
    budget.cap(90);
    budget.enrol();
    budget.delivered(true, report(5, 40), told);
    expect(budget.state.used.project.spentCents).to.equal(40);
    expect(budget.state.deliveries[agentId]?.asks).to.equal(true);
  });
});

const asking = (policy = {}): TestActor => {
  const actor = new TestActor(policy);
  actor.state.caps = initialCaps();
  return actor;
};
const granted = { granted: true } as const;
const hear = (actor: TestActor, transactionId: string, exemptEpoch: number | null): void => {
  const caps = { kind: "reserve", answer: granted, reportRevision: 1, exemptEpoch } as const;
  actor.do({ kind: "confirm", transactionId, revision: 2, outcome: null, caps });
};

describe("a payment that asks for the caps", () => {
  it("is still asked about after the agent was let pay without asking", () => {
    const actor = asking();
    const [first, second] = [actor.pay(10), actor.pay(20)];
    hear(actor, first.request.transactionId, 1);
    actor.do({ kind: "confirm_report", revision: actor.state.caps?.revision ?? 0 });
    expect(asksForCaps(actor.state)).to.equal(false);
    const asks = budgetReport(actor.state)?.asks.map(({ transactionId }) => transactionId);
    expect(asks).to.deep.equal([second.request.transactionId]);
  });

  it("is settled by its rail's outcome, also when that is heard before the caps' word", () => {
    const actor = asking();
    const { transactionId } = actor.pay(10).request;
    const result = { status: "settled", final: true } as const;
    actor.do({ kind: "confirm", transactionId, revision: 5, outcome: { result, at: actor.now } });
    hear(actor, transactionId, null);
    expect(actor.totals()).to.include({ spent: 10, reserved: 0 });
  });

  it("is left to the caps by an archive, and ends when they have taken it", () => {
    const actor = asking({ autoApprovalThresholdCents: 0 });
    const { transactionId } = actor.pay(10).request;
    expect(actor.do({ kind: "archive", by: { type: "user" } })).to.deep.equal({
      kind: "archive",
      changed: true,
    });
    expect(actor.payment(transactionId).status).to.equal("pending");
    hear(actor, transactionId, null);
    const { denial, revision, status } = actor.payment(transactionId);
    expect([status, denial?.code, revision]).to.deep.equal(["denied", "AGENT_ARCHIVED", 3]);
    expect(actor.totals().reserved).to.equal(0);
  });

  it("that an archive left, and the caps refuse, was never on hold", () => {
    const actor = asking({ autoApprovalThresholdCents: 0 });
    const { transactionId } = actor.pay(10).request;
    actor.do({ kind: "archive", by: { type: "user" } });
    const details = { limit: 5, remaining: 5, resetsAt: null };
    const denial = { code: "TEAM_CAP_EXCEEDED", reason: "The cap.", details } as const;
    const answer = { granted: false, denial, at: actor.now } as const;
    const caps = { kind: "reserve", answer, reportRevision: 1, exemptEpoch: null } as const;
    actor.do({ kind: "confirm", transactionId, revision: 2, outcome: null, caps });
    expect(actor.totals()).to.include({ reserved: 0, count: 0 });
  });
});
