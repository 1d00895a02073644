import { expect } from "chai";
import { ContractApi } from "../../support/contract-api.ts";
import type { ServiceProcess } from "../../support/process.ts";
import { Stage } from "../support/stage.ts";

/** A ledger does itself what no server has done 10 s after it was decided; an activity that died with its worker, later. */
const SWEPT_MS = 120_000;

const BEFORE_CENTS = 300;
const CAP_CENTS = 1_000;
const BUDGET_CENTS = 5_000;

type Agent = Awaited<ReturnType<Stage["tenant"]["createAgent"]>>;

interface Place {
  readonly projectId: string;
  readonly teamId: string;
  readonly agents: readonly Agent[];
}

/** Payments and replacements of budgets under caps, at hand when the service is killed. */
export function capsAtHand() {
  let stage: Stage;
  /** A project for each point at which a replacement is held, and one whose payments are. */
  let decided: Place;
  let capRecorded: Place;
  let allRecorded: Place;
  let paying: Place;
  let lost: { readonly granted: string; readonly refused: string };

  const api = () => new ContractApi(stage.service.runtime.baseUrl);
  const as = (id: string) => ({ token: stage.tenant.token, id });

  async function newPlace(): Promise<Place> {
    const { token } = stage.tenant;
    const { project } = await api().ok("createProject", 201, { token, body: { name: "Project" } });
    const body = { name: "Team", projectId: project.id };
    const { team } = await api().ok("createTeam", 201, { token, body });
    const newAgent = () => stage.tenant.api.createAgent(token, team.id, { budgetCents: 9_000 });
    return { projectId: project.id, teamId: team.id, agents: [await newAgent(), await newAgent()] };
  }

  /** Replaces the budget of a place's team: a cap, and another budget for every agent. */
  async function cap({ agents, teamId }: Place): Promise<unknown> {
    const budgets = agents.map(({ agent }) => ({ agentId: agent.id, budgetCents: BUDGET_CENTS }));
    const body = { capCents: CAP_CENTS, agents: budgets, version: 1 };
    return api().ok("setTeamBudget", 200, { ...as(teamId), body });
  }

  async function pay({ apiKey }: Agent, amountCents: number): Promise<string> {
    const { transaction } = await stage.tenant.api.pay(apiKey, { amountCents });
    return transaction.denialCode ?? transaction.status;
  }

  const agentOf = ({ agents }: Place, index: number): Agent => {
    const agent = agents[index];
    if (agent === undefined) throw new Error("there is no such agent");
    return agent;
  };

  async function begin(service: ServiceProcess): Promise<void> {
    stage = await Stage.on(service);
    [decided, capRecorded, allRecorded, paying] = [
      await newPlace(),
      await newPlace(),
      await newPlace(),
      await newPlace(),
    ];
    for (const place of [decided, capRecorded, allRecorded]) {
      expect(await pay(agentOf(place, 0), BEFORE_CENTS)).to.equal("approved");
    }
    await cap(paying);
    await stage.arm("before-rail", "after-projection");
    lost = {
      granted: (await stage.payAndHold(agentOf(paying, 0).apiKey, "before-rail", 600)).transactionId,
      refused: (await stage.payAndHold(agentOf(paying, 1).apiKey, "after-projection", 401)).transactionId,
    };
  }

  /** What holds the records of all agents' accounts, so that it comes last. */
  async function replace(): Promise<void> {
    await stage.holdBudget("after-agents-recorded", allRecorded.projectId, () => cap(allRecorded));
    await stage.holdBudget("after-caps-recorded", capRecorded.projectId, () => cap(capRecorded));
    await stage.holdBudget("after-replacement", decided.projectId, () => cap(decided));
  }

  const tests = () =>
    describe("with caps", () => {
      const points: readonly (readonly [string, () => Place])[] = [
        ["only decided", () => decided],
        ["recorded in the team alone", () => capRecorded],
        ["recorded and not answered", () => allRecorded],
      ];
      for (const [how, place] of points) {
        it(`a replacement ${how} is whole: each budget once, past spending counted`, async () => {
          const here = place();
          const expected = here.agents.map(({ agent }) => ({ agentId: agent.id, budgetCents: BUDGET_CENTS }));
          const budget = await api().ok("getTeamBudget", 200, as(here.teamId));
          expect(budget).to.include({ capCents: CAP_CENTS, version: 2 });
          expect(budget.agents).to.have.deep.members(expected);
          // What is shown is in force, whether its records have come to it or not.
          for (const { agent } of here.agents) {
            const policy = await api().ok("getAgentBudgetPolicy", 200, as(agent.id));
            expect(policy).to.include({ budgetCents: BUDGET_CENTS, version: 2 });
          }
          expect(await pay(agentOf(here, 1), CAP_CENTS - BEFORE_CENTS + 1)).to.equal("TEAM_CAP_EXCEEDED");
          expect(await pay(agentOf(here, 1), CAP_CENTS - BEFORE_CENTS)).to.equal("approved");
          expect(await pay(agentOf(here, 0), 1)).to.equal("TEAM_CAP_EXCEEDED");
          const after = await api().ok("getTeamBudget", 200, as(here.teamId));
          expect(after.agents).to.have.deep.members(expected);
          expect(after.usage.remainingCents).to.equal(0);
          const body = { capCents: null, agents: expected, version: 2 };
          await api().ok("setTeamBudget", 200, { ...as(here.teamId), body });
          expect(await pay(agentOf(here, 0), 1)).to.equal("approved");
        });
      }

      it("a granted payment that no rail knew is made once; a refused one stays refused", async () => {
        const [payer, refused] = [agentOf(paying, 0), agentOf(paying, 1)];
        expect((await stage.payAgain(payer.apiKey, "before-rail", 600)).transactionId).to.equal(lost.granted);
        await stage.tenant.expectTotals(payer.agent.id, { spentCents: 600, reservedCents: 0 }, SWEPT_MS);
        const { transaction } = await stage.tenant.api.payment(refused.apiKey, lost.refused);
        expect([transaction.status, transaction.denialCode]).to.deep.equal(["denied", "TEAM_CAP_EXCEEDED"]);
        await stage.tenant.expectTotals(refused.agent.id, { spentCents: 0, reservedCents: 0 }, SWEPT_MS);
        expect(await pay(refused, 401)).to.equal("TEAM_CAP_EXCEEDED");
        expect(await pay(refused, 400)).to.equal("approved");
        const { usage } = await api().ok("getTeamBudget", 200, as(paying.teamId));
        expect(usage).to.deep.equal({
          spentCents: CAP_CENTS,
          reservedCents: 0,
          remainingCents: 0,
          increases: [],
        });
      });

      it("the books agree", () => stage.tenant.expectBooksToAgree(SWEPT_MS));
    });

  return { begin, replace, meet: () => stage.meet(), tests };
}
