import { expect } from "chai";
import { Random } from "../../lab/random.ts";
import { historyOf } from "../../lab/what-if/history.ts";
import { simulated } from "../../lab/what-if/run.ts";
import { readyRules } from "../../src/domain/rules/rules.ts";
import { sideOf } from "../../src/domain/simulation/past-payment.ts";
import { NO_CAP } from "../../src/domain/ledger/state.ts";
import { Documents } from "../../src/simulations/documents.ts";
import { seed } from "../support/seed.ts";
import { shortOrSoak } from "../support/soak.ts";
import { NOON, openPolicy } from "./support/actor.ts";

const PAYMENTS = shortOrSoak(2_000, 50_000);

describe(`a change tried on past payments (TEST_SEED=${String(seed)})`, function () {
  this.timeout(shortOrSoak(30_000, 600_000));
  const history = historyOf(new Random(seed), PAYMENTS);

  it("what was in force reproduces every verdict", () => {
    const sides = new Set(history.payments.map(sideOf));
    expect([...sides].toSorted()).to.deep.equal(["approved", "denied", "held"]);
    const { examples, payments, unchanged } = simulated(history, () => true);
    expect(examples.slice(0, 5)).to.deep.equal([]);
    expect({ payments, unchanged }).to.deep.equal({
      payments: history.payments.length,
      unchanged: history.payments.length,
    });
  });

  it("it does so where only the last payments are judged, and others count as they were decided", () => {
    const [middle] = history.payments.slice(Math.floor(history.payments.length / 2));
    const since = middle?.createdAt ?? 0;
    const { examples, payments } = simulated(
      history,
      ({ agentId, createdAt }) => createdAt >= since && agentId !== "agent-1",
    );
    expect(payments).to.be.within(1, history.payments.length - 1);
    expect(examples.slice(0, 5)).to.deep.equal([]);
  });

  it("without rules nothing is held by them, and what was held is charged in full", () => {
    const rules = readyRules([]);
    const teams = new Map([...history.teams].map(([id, team]) => [id, { ...team, rules }]));
    const { moves } = simulated({ ...history, teams, project: { ...history.project, rules } }, () => true);
    const sides = moves.map(({ from, to }) => `${from} ${to}`);
    // A payment that was denied may be held by its agent's threshold.
    expect(sides).to.include("held approved").and.not.include("approved held");
  });

  it("limits that people have raised for a time count as they are set", () => {
    const increases = [{ id: "raise", limit: "daily_spend", cents: 100, endsAt: NOON + 1 }] as const;
    const documents = new Documents("", {});
    expect(documents.policyOf({ _id: "agent", policy: { ...openPolicy, increases } })).to.deep.equal(
      openPolicy,
    );
    expect(documents.capOf({ _id: "team", cap: { ...NO_CAP, increases } })).to.deep.equal(NO_CAP);
  });
});
