import { expect } from "chai";
import type { Activities, Delivered } from "../../activities/types.ts";
import { BUDGET_SETTINGS } from "../../src/messages/budget.ts";
import { confirmation, containers, StagedAgent } from "./support/agent.ts";
import { StagedBudget } from "./support/budget.ts";
import { activitiesOf, afterActivities, eventsOf } from "./support/history.ts";
import { agentIdOf, sceneOf, type Stage, type StageOptions } from "./support/stage.ts";
import { type TimedStage, useTimedStage } from "./support/timed.ts";
import { useStage } from "./support/untimed.ts";

const play = useTimedStage();

const SWEEP_MS = BUDGET_SETTINGS.sweepAfterSeconds * 1_000;
const MINUTE_MS = 60_000;
const { teamId } = containers;

const asking = (stage: Stage, number = 1): Promise<StagedAgent> =>
  StagedAgent.start(stage, {}, {}, undefined, { asksForCaps: true, number });

/** An agent that no cap is over: it has paid so much, was let off, and let go. */
async function exempted(
  stage: Stage,
  budget: StagedBudget,
  spentCents: number,
  number = 1,
): Promise<StagedAgent> {
  const agent = await asking(stage, number);
  await agent.payThrough(spentCents);
  expect((await agent.state()).caps?.exempt).to.equal(true);
  const report = await agent.report();
  if (report === null) throw new Error("it has nothing more to say");
  await budget.ask("reported", { kind: "report", report });
  await agent.submit({ kind: "confirm_report", revision: report.revision });
  return agent;
}

/** What the look-up in the records finds: the first agents of the scene. */
const finding = (count: number): StageOptions => ({
  activities: {
    agentsUnder: ({ projectId }) =>
      Promise.resolve(
        Array.from({ length: count }, (_none, index) => ({
          agentId: agentIdOf(sceneOf(projectId), index + 1),
          teamId,
        })),
      ),
  },
});

/** Lets the actor's time come, and waits for what it does then. */
async function swept(stage: TimedStage, budget: StagedBudget, activities: number): Promise<void> {
  await stage.skip(SWEEP_MS + 500);
  await afterActivities(budget.handle, activities);
}

describe("workflow budget: what a replacement began, the actor carries through", () => {
  it("server gone after the decision: 10 s later the actor has agents ask and report past use", () =>
    play(async (stage) => {
      const budget = await StagedBudget.start(stage);
      const [first, second] = [await exempted(stage, budget, 100), await exempted(stage, budget, 200, 2)];
      await budget.capProject(1, 1_000);
      expect(await budget.used(), "before").to.deep.equal({ spent: 0, reserved: 0, members: 0 });
      await stage.skip(SWEEP_MS - 2_000);
      expect(activitiesOf(await eventsOf(budget.handle)), "before the bound").to.deep.equal([]);
      await swept(stage, budget, 2);
      expect(await budget.used()).to.deep.equal({ spent: 300, reserved: 0, members: 2 });
      expect(await budget.state()).to.include({ deliveryCount: 0, enrolling: false });
      expect((await first.payThrough(701)).denial?.code).to.equal("PROJECT_CAP_EXCEEDED");
      expect((await second.payThrough(700)).status).to.equal("approved");
      await stage.skip(MINUTE_MS);
      expect(activitiesOf(await eventsOf(budget.handle))).to.deep.equal(["agentsUnder", "tellAgents"]);
    }, finding(2)));

  it("agents that can't be told do not keep the actor from telling those after them", () => {
    const told: string[] = [];
    const tellAgents: Activities["tellAgents"] = ({ deliveries }) => {
      told.push(...deliveries.map(({ agentId }) => agentId));
      // The first fifty are out of reach.
      return Promise.resolve(
        deliveries
          .filter(({ agentId }) => Number(agentId) >= 50)
          .map(({ agentId, asks, epoch }) => ({ agentId, epoch, asks, report: null })),
      );
    };
    return play(
      async (stage) => {
        const budget = await StagedBudget.start(stage);
        const names = Array.from({ length: 60 }, (_none, index) =>
          String(index + 1_000 * Number(index >= 50)),
        );
        await budget.replaceTeam(
          teamId,
          1,
          null,
          names.map((agentId) => ({ agentId, budgetCents: 1 })),
        );
        await swept(stage, budget, 2);
        expect(told).to.deep.equal(names);
        expect(await budget.state()).to.include({ deliveryCount: 50 });
      },
      { activities: { tellAgents } },
    );
  });

  it("server gone after the enrolment: the actor tells those not told yet, and no others again", () =>
    play(async (stage) => {
      const budget = await StagedBudget.start(stage);
      const [first, second] = [await exempted(stage, budget, 100), await exempted(stage, budget, 200, 2)];
      const { epoch } = await budget.capProject(1, 1_000);
      const enrolled = await budget.enrol(epoch, [first, second]);
      await budget.tell(first, enrolled);
      const { revision } = (await first.state()).caps ?? {};
      await swept(stage, budget, 1);
      expect(activitiesOf(await eventsOf(budget.handle))).to.deep.equal(["tellAgents"]);
      expect((await first.state()).caps?.revision).to.equal(revision);
      expect(await budget.used()).to.deep.equal({ spent: 300, reserved: 0, members: 2 });
    }));

  it("an agent that can't be told now is told later", () => {
    const told: string[][] = [];
    const tellAgents: Activities["tellAgents"] = ({ deliveries }) => {
      told.push(deliveries.map(({ agentId }) => agentId));
      const reached = told.length === 1 ? deliveries.slice(1) : deliveries;
      return Promise.resolve(
        reached.map(({ agentId, asks, epoch }): Delivered => ({ agentId, epoch, asks, report: null })),
      );
    };
    return play(
      async (stage) => {
        const budget = await StagedBudget.start(stage);
        const budgets = ["away", "here"].map((agentId) => ({ agentId, budgetCents: 5_000 }));
        await budget.replaceTeam(teamId, 1, null, budgets);
        await swept(stage, budget, 1);
        expect((await budget.state()).budgets).to.deep.equal({ away: 5_000 });
        await swept(stage, budget, 2);
        expect(told).to.deep.equal([["away", "here"], ["away"]]);
        expect((await budget.state()).deliveryCount).to.equal(0);
      },
      { activities: { tellAgents } },
    );
  });

  it("an agent whose actor is gone is not told for ever; the others are, and nothing is left", () =>
    play(async (stage) => {
      const budget = await StagedBudget.start(stage);
      const [here, gone] = [await exempted(stage, budget, 100), await exempted(stage, budget, 200, 2)];
      await gone.handle.terminate("by an operator");
      const budgets = [here, gone].map(({ profile: { agentId } }) => ({ agentId, budgetCents: 5_000 }));
      await budget.replaceTeam(teamId, 1, null, budgets);
      await swept(stage, budget, 1);
      expect((await here.state()).policy.budgetCents).to.equal(5_000);
      expect((await budget.state()).deliveryCount).to.equal(0);
    }));

  it("a look-up that fails is done again; meanwhile the cap holds for whoever asks", () => {
    let looked = 0;
    const agentsUnder: Activities["agentsUnder"] = async ({ projectId }) => {
      looked += 1;
      if (looked <= 2) throw new Error("no database");
      return [{ agentId: agentIdOf(sceneOf(projectId)), teamId }];
    };
    return play(
      async (stage) => {
        const budget = await StagedBudget.start(stage);
        const silent = await exempted(stage, budget, 600);
        await budget.capProject(1, 1_000);
        const loud = await asking(stage, 2);
        expect((await loud.payThrough(1_001)).denial?.code).to.equal("PROJECT_CAP_EXCEEDED");
        await swept(stage, budget, 2);
        expect(looked).to.equal(3);
        expect((await silent.payThrough(401)).denial?.code).to.equal("PROJECT_CAP_EXCEEDED");
        expect((await loud.payThrough(400)).status).to.equal("approved");
      },
      { activities: { agentsUnder } },
    );
  });

  it("more agents than are told at once are all told, one batch after another", () => {
    const many = Array.from({ length: 120 }, (_none, index) => `0199aa00-0000-7000-8000-${index}`);
    const told: number[] = [];
    const tellAgents: NonNullable<StageOptions["activities"]>["tellAgents"] = ({ deliveries }) => {
      told.push(deliveries.length);
      return Promise.resolve(
        deliveries.map(({ agentId, asks, epoch }): Delivered => ({ agentId, epoch, asks, report: null })),
      );
    };
    return play(
      async (stage) => {
        const budget = await StagedBudget.start(stage);
        await budget.replaceTeam(
          teamId,
          1,
          null,
          many.map((agentId) => ({ agentId, budgetCents: 1 })),
        );
        await swept(stage, budget, 3);
        expect(told).to.deep.equal([50, 50, 20]);
        expect((await budget.state()).deliveryCount).to.equal(0);
      },
      { activities: { tellAgents } },
    );
  });
});

describe("workflow budget: the next run goes on where the last one was", () => {
  const playNow = useStage();

  it("rolls over with members, unheard answers and untold agents: all holds in the next run", () =>
    playNow(async (stage) => {
      const budget = await StagedBudget.start(stage, { rollOverAfterEvents: 60, sweepAfterSeconds: 3_600 });
      const [asked, told] = [await asking(stage), await exempted(stage, budget, 100, 2)];
      const { epoch } = await budget.capProject(1, 1_000);
      await budget.enrol(epoch, [told]);
      const [granted, refused] = [await asked.pay(900), await asked.pay(101)];
      const asks = await asked.report();
      if (asks === null) throw new Error("it asks nothing");
      const answers = async () => (await budget.ask("reported", { kind: "report", report: asks })).answers;
      const before = await answers();
      expect(before.map(({ granted: isGranted }) => isGranted)).to.deep.equal([true, false]);
      const runId = async () => (await budget.handle.describe()).runId;
      const first = await runId();
      while ((await runId()) === first) await budget.enrol(epoch, []);
      expect(await budget.used()).to.deep.equal({ spent: 0, reserved: 900, members: 1 });
      expect((await budget.state()).deliveryCount).to.equal(1);
      // Whoever asks again is told the same.
      expect(await answers()).to.deep.equal(before);
      const done = [await asked.carryOut(granted), await asked.carryOut(refused)];
      expect([...stage.rail.taken.values()]).to.deep.equal([100, 900]);
      await asked.submit(...done.map(confirmation));
      await budget.tell(told, await budget.enrol(epoch, [told]));
      const report = await asked.report();
      if (report === null) throw new Error("it has nothing to report");
      await budget.ask("reported", { kind: "report", report });
      expect(await budget.used()).to.deep.equal({ spent: 1_000, reserved: 0, members: 2 });
    }));

  it("an answer stays until the agent knows it; afterwards an old report tells nobody anything", () =>
    playNow(async (stage) => {
      const budget = await StagedBudget.start(stage);
      await budget.capProject(1, 1_000);
      const agent = await asking(stage);
      const payment = await agent.pay(600);
      const report = await agent.report();
      if (report === null) throw new Error("it asks nothing");
      const ask = () => budget.ask("reported", { kind: "report", report });
      const [one, two] = await Promise.all([ask(), ask()]);
      expect(one.answers).to.deep.equal(two.answers);
      expect(one.answers).to.have.length(1);
      expect((await budget.used()).reserved).to.equal(600);
      await agent.submit(confirmation(await agent.carryOut(payment)));
      await agent.payThrough(100);
      expect((await ask()).answers).to.deep.equal([]);
      expect(await budget.used()).to.deep.equal({ spent: 600, reserved: 100, members: 1 });
    }));
});
