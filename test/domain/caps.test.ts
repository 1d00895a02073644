import { expect } from "chai";
import type { AgentCommand } from "../../src/domain/agent/commands.ts";
import { budgetReport } from "../../src/domain/agent/caps.ts";
import { decide, handle } from "../../src/domain/agent/decide.ts";
import { type AgentState, initialAgentState } from "../../src/domain/agent/state.ts";
import { handleBudget, previewCaps } from "../../src/domain/budget/budget.ts";
import { checkCaps } from "../../src/domain/budget/caps.ts";
import type { BudgetCommand, BudgetReply } from "../../src/domain/budget/commands.ts";
import type { Ask, BudgetReport } from "../../src/domain/budget/report.ts";
import {
  type BudgetState,
  GONE_FORGOTTEN_EVERY,
  GONE_KEPT_MS,
  initialBudgetState,
} from "../../src/domain/budget/state.ts";
import { policy } from "../workflows/support/agent.ts";

const NOW = Date.UTC(2026, 1, 28, 23, 59, 59, 999);
const MAX_CENTS = 1_000_000_000_000;
const TEAM = "team";

type Of<K extends BudgetReply["kind"]> = Extract<BudgetReply, { kind: K }>;

/** A project's budget with a cap at each level; null: none. */
function budget(projectCents: number | null, teamCents: number | null = null): BudgetState {
  const state = initialBudgetState("organization", "project");
  const teams = [{ teamId: TEAM, capCents: teamCents }];
  send(state, { kind: "replace_project", version: 1, capCents: projectCents, teams, complete: true });
  return state;
}

function send(state: BudgetState, command: BudgetCommand, now = NOW): BudgetReply {
  return handleBudget(state, command, now);
}

function hear(state: BudgetState, report: Partial<BudgetReport>, now = NOW): Of<"reported"> {
  const whole = {
    agentId: "a",
    teamId: TEAM,
    revision: 1,
    spentCents: 0,
    reservedCents: 0,
    asks: [],
    ...report,
  };
  const reply = send(state, { kind: "report", report: whole }, now);
  if (reply.kind !== "reported") throw new Error(`answered ${reply.kind}`);
  return reply;
}

const ask = (amountCents: number, transactionId = "txn", kind: Ask["kind"] = "reserve"): Ask => ({
  transactionId,
  kind,
  amountCents,
});

const bytesOf = (state: BudgetState): number => JSON.stringify(state).length;

const idOf = (index: number): string => `0199aa00-0000-7000-8000-${String(index).padStart(12, "0")}`;

const agentState = (): AgentState =>
  initialAgentState(
    { organizationId: "o", projectId: "p", teamId: TEAM, agentId: "a", name: "Agent" },
    policy,
    NOW,
    undefined,
    true,
  );

const demand = (epoch: number, budgetCents: number | null = null, budgetEpoch = epoch): AgentCommand => ({
  kind: "heed_budget",
  epoch,
  asks: true,
  budgetCents,
  budgetEpoch,
});
const exempt = (epoch: number): AgentCommand => ({
  kind: "confirm",
  transactionId: "nobody's",
  revision: 1,
  outcome: null,
  caps: {
    kind: "reserve",
    answer: { granted: true },
    reportRevision: 0,
    exemptEpoch: epoch,
  },
});
const budgeted = (epoch: number, budgetCents: number): AgentCommand => ({
  kind: "heed_budget",
  epoch,
  asks: false,
  budgetCents,
});

function* orders<T>(all: readonly T[]): Generator<readonly T[]> {
  if (all.length === 0) yield [];
  for (const [index, first] of all.entries()) {
    for (const rest of orders(all.toSpliced(index, 1))) yield [first, ...rest];
  }
}

describe("caps: the exact limits", () => {
  /** [cap, used, asked, own reservation, whether it fits] */
  const rows: readonly (readonly [number, number, number, number, boolean])[] = [
    [0, 0, 1, 0, false],
    [1, 0, 1, 0, true],
    [1, 0, 2, 0, false],
    [1_000, 600, 399, 0, true],
    [1_000, 600, 400, 0, true],
    [1_000, 600, 401, 0, false],
    [1_000, 1_000, 1, 0, false],
    [1_000, 1_500, 1, 0, false],
    [1_000, 1_000, 400, 400, true],
    [999, 1_000, 400, 400, false],
    [400, 400, 400, 400, true],
    [399, 400, 400, 400, false],
    [MAX_CENTS, 0, MAX_CENTS, 0, true],
    [MAX_CENTS, 1, MAX_CENTS, 0, false],
    [MAX_CENTS, 1, MAX_CENTS - 1, 0, true],
  ];
  for (const level of ["team", "project"] as const) {
    for (const [cap, used, cents, own, fits] of rows) {
      const what = `${cents} of ${cap} with ${used} used${own > 0 ? ", its own among them" : ""}`;
      it(`a ${level}'s cap: ${what} ${fits ? "fits" : "does not fit"}`, () => {
        const state = level === "team" ? budget(null, cap) : budget(cap);
        hear(state, { spentCents: used - own, reservedCents: own });
        const denial = checkCaps(state, TEAM, cents, own);
        expect(denial === null).to.equal(fits);
        if (denial === null) return;
        expect(denial.code).to.equal(level === "team" ? "TEAM_CAP_EXCEEDED" : "PROJECT_CAP_EXCEEDED");
        const remaining = Math.max(0, cap - (used - own));
        expect(denial.details).to.deep.equal({ limit: cap, remaining, resetsAt: null });
      });
    }
  }

  it("both exceeded: the team's is named; another team's use counts for the project only", () => {
    const state = budget(100, 100);
    hear(state, { agentId: "b", teamId: "elsewhere", spentCents: 60 });
    expect(checkCaps(state, TEAM, 101, 0)?.code).to.equal("TEAM_CAP_EXCEEDED");
    expect(checkCaps(state, TEAM, 41, 0)?.code).to.equal("PROJECT_CAP_EXCEEDED");
    expect(checkCaps(state, TEAM, 40, 0)).to.equal(null);
  });

  it("a preview is what an ask with the agent's newest totals would get, and changes nothing", () => {
    const state = budget(1_000, 500);
    hear(state, { spentCents: 100 });
    const report = {
      agentId: "a",
      teamId: TEAM,
      revision: 2,
      spentCents: 100,
      reservedCents: 50,
      asks: [ask(50, "other")],
    };
    const before = structuredClone(state);
    const left = { teamRemainingCents: 300, projectRemainingCents: 800 };
    expect(previewCaps(state, report, 300)).to.deep.equal({ ...left, denial: null });
    expect(previewCaps(state, report, 301).denial?.code).to.equal("TEAM_CAP_EXCEEDED");
    expect(previewCaps(state, report, null)).to.deep.equal({ ...left, denial: null });
    expect(state).to.deep.equal(before);
  });
});

describe("caps: reports are totals", () => {
  it("older and repeated reports change nothing: what was granted stays until a newer one has it", () => {
    const state = budget(1_000);
    const first = { revision: 2, spentCents: 100, asks: [ask(300)] };
    const granted = { transactionId: "txn", kind: "reserve", granted: true };
    expect(hear(state, first).answers).to.deep.equal([granted]);
    expect(hear(state, first).answers).to.deep.equal([granted]);
    expect(hear(state, { revision: 1, spentCents: 999 }).answers).to.deep.equal([]);
    expect(state.used.project).to.deep.equal({ spentCents: 100, reservedCents: 300 });
    hear(state, { revision: 3, spentCents: 400 });
    expect(state.used.project).to.deep.equal({ spentCents: 400, reservedCents: 0 });
    // Too late: the agent knows.
    expect(hear(state, first).answers).to.deep.equal([]);
  });

  it("a refusal stays one, also where there is room by the time it is asked again", () => {
    const state = budget(100);
    hear(state, { agentId: "b", spentCents: 100 });
    const asks = [ask(1)];
    const [refused] = hear(state, { revision: 2, asks }).answers;
    expect(refused?.granted).to.equal(false);
    hear(state, { agentId: "b", revision: 2 });
    expect(hear(state, { revision: 2, asks }).answers).to.deep.equal([refused]);
    expect(hear(state, { revision: 3, asks }, NOW + 1).answers).to.deep.equal([refused]);
    expect(hear(state, { revision: 4, asks: [ask(1, "next")] }).answers[0]?.granted).to.equal(true);
  });

  it("several asks of one report are judged in their order, each on what those before it took", () => {
    const state = budget(100);
    const asks = [ask(60, "one"), ask(60, "two"), ask(40, "three"), ask(1, "four")];
    const granted = hear(state, { asks }).answers.map((answer) => answer.granted);
    expect(granted).to.deep.equal([true, false, true, false]);
  });

  it("let go, an agent's older reports are answered by nobody, for an hour", () => {
    const state = budget(null);
    const asks = [ask(5)];
    expect(hear(state, { revision: 1, asks })).to.deep.include({ exemptEpoch: 2 });
    expect(hear(state, { revision: 3 }).exemptEpoch).to.equal(2);
    expect(state.members).to.deep.equal({});
    expect(hear(state, { revision: 1, asks })).to.deep.equal({
      kind: "reported",
      answers: [],
      exemptEpoch: null,
    });
    expect(state.used.project).to.deep.equal({ spentCents: 0, reservedCents: 0 });
    for (let index = 0; index < GONE_FORGOTTEN_EVERY; index += 1) {
      hear(state, { agentId: `b${index}`, revision: 1 }, NOW + GONE_KEPT_MS + 1);
    }
    expect(state.gone).not.to.have.property("a");
    expect(state.gone).to.have.property("b0");
  });
});

describe("caps: how much fits", function () {
  this.timeout(300_000);
  const AGENTS = 10_000;
  const CONTINUED_BYTES_MAX = 2 * 1_024 * 1_024;
  const agents = Array.from({ length: AGENTS }, (_none, index) => ({
    agentId: idOf(index),
    teamId: idOf(0),
  }));

  it("10,000 agents under a cap, with long figures, go through continue-as-new", () => {
    const state = budget(MAX_CENTS);
    for (const place of agents) {
      hear(state, { ...place, revision: 10_000_000, spentCents: 99_999_999, reservedCents: 9_999_999 });
    }
    expect(bytesOf(state)).to.be.below(CONTINUED_BYTES_MAX);
  });

  it("so do 10,000 that are still to be told of it, and as many that were let go", () => {
    const told = budget(MAX_CENTS);
    const reply = send(told, { kind: "enrol", epoch: told.epoch, agents, last: true });
    expect(bytesOf(told)).to.be.below(CONTINUED_BYTES_MAX);
    expect(JSON.stringify(reply).length).to.be.below(CONTINUED_BYTES_MAX);
    const gone = budget(null);
    for (let index = 0; index < 2 * AGENTS; index += 1) {
      hear(gone, { agentId: idOf(index), revision: 10_000_000 });
      expect(Object.hasOwn(gone.gone, idOf(index))).to.equal(true);
    }
    const kept = Object.keys(gone.gone).length;
    expect(kept).to.be.within(AGENTS, AGENTS + GONE_FORGOTTEN_EVERY);
    expect(bytesOf(gone)).to.be.below(CONTINUED_BYTES_MAX);
  });
});

describe("caps: what an agent is told by replacements, in every order", () => {
  for (const [name, newest, asks] of [
    ["a demand", demand(5), true],
    ["an exemption", exempt(5), false],
  ] as const) {
    it(`whatever the order, and however often: the newest, ${name}, decides whether it asks`, () => {
      for (const order of orders([demand(2), exempt(3), demand(4), newest, newest])) {
        const state = agentState();
        for (const command of order) handle(state, command, NOW);
        expect(state.caps?.exempt).to.equal(!asks);
        expect(state.caps?.epoch).to.equal(5);
      }
    });
  }

  it("of several budgets the newest stands, and the version rises with each change", () => {
    for (const order of orders([budgeted(2, 700), budgeted(3, 800), budgeted(4, 900), budgeted(4, 900)])) {
      const state = agentState();
      for (const command of order) handle(state, command, NOW);
      expect(state.policy.budgetCents).to.equal(900);
      expect(state.policyVersion).to.be.within(2, 4);
    }
  });

  it("a later demand does not repeat a budget that it has heard of: one set by hand since stays", () => {
    const state = agentState();
    handle(state, budgeted(2, 700), NOW);
    handle(state, { kind: "change_policy", version: 2, patch: { budgetCents: 50 } }, NOW);
    handle(state, demand(3, 700, 2), NOW);
    expect([state.policy.budgetCents, state.policyVersion, state.caps?.exempt]).to.deep.equal([50, 3, false]);
  });

  it("a budget on its way keeps its epoch through an enrolment, and gives way to a newer budget", () => {
    const state = budget(null);
    const replace = (version: number, budgetCents: number, capCents: number | null) =>
      send(state, {
        kind: "replace_team",
        teamId: TEAM,
        version,
        capCents,
        budgets: [{ agentId: "a", budgetCents }],
        complete: true,
      });
    replace(1, 700, null);
    send(state, { kind: "replace_project", version: 2, capCents: 10, teams: [], complete: true });
    const agents = [{ agentId: "a", teamId: TEAM }];
    send(state, { kind: "enrol", epoch: state.epoch, agents, last: true });
    expect(state.deliveries["a"]).to.deep.equal({ epoch: 4, asks: true, budgetCents: 700, budgetEpoch: 3 });
    replace(2, 800, null);
    expect(state.deliveries["a"]).to.deep.equal({ epoch: 5, asks: true, budgetCents: 800 });
    // An old confirmation confirms nothing.
    send(state, { kind: "delivered", agentId: "a", epoch: 4, asks: true, report: null });
    expect(state.deliveries).to.have.property("a");
    send(state, { kind: "delivered", agentId: "a", epoch: 5, asks: true, report: null });
    expect(state.deliveries).to.deep.equal({});
  });

  it("an archived agent reports, and its budget is not changed any more", () => {
    const state = agentState();
    handle(state, { kind: "archive", by: { type: "user" } }, NOW);
    handle(state, demand(3, 1), NOW);
    expect(state.policy.budgetCents).to.equal(policy.budgetCents);
    expect(budgetReport(state)).to.include({ agentId: "a", spentCents: 0 });
  });

  it("told nothing new, it decides nothing", () => {
    const state = agentState();
    handle(state, budgeted(4, 900), NOW);
    expect(decide(state, budgeted(4, 800), NOW).events).to.deep.equal([]);
    expect(decide(state, budgeted(3, 800), NOW).events).to.deep.equal([]);
  });
});
