import { expect } from "chai";
import type { AgentCommand, AgentReply } from "../../src/domain/agent/commands.ts";
import { decidedPayment } from "../../src/domain/agent/commands.ts";
import { ActorUnavailable } from "../../server/actors/mailbox.ts";
import type { Payment, PaymentRequest } from "../../src/domain/agent/payment.ts";
import type { BudgetQueryInput, BudgetView } from "../../src/messages/agent.ts";
import { BUDGET_QUERY } from "../../src/messages/agent.ts";
import { confirmation, payCommand, StagedAgent } from "./support/agent.ts";
import type { HistoryEvent } from "./support/history.ts";
import type { Stage } from "./support/stage.ts";
import { useStage } from "./support/untimed.ts";

const again = (request: PaymentRequest): PaymentRequest => ({
  ...request,
  transactionId: `${request.transactionId}-again`,
});

const nextRunId = (last: HistoryEvent | undefined): string | undefined =>
  last?.workflowExecutionContinuedAsNewEventAttributes?.newExecutionRunId ?? undefined;

/** Runs of the actor so far: each is named by the one before. */
async function runsOf(stage: Stage, agent: StagedAgent): Promise<number> {
  const { workflowId } = agent.handle;
  let runs = 0;
  let runId: string | undefined = (await agent.handle.describe()).raw.workflowExecutionInfo?.firstRunId ?? "";
  while (runId !== undefined && runId !== "") {
    runs += 1;
    const { events } = await stage.client.workflow.getHandle(workflowId, runId).fetchHistory();
    runId = nextRunId(events?.at(-1));
  }
  return runs;
}

/** Pays one after another, each confirmed with the next, as a server does. */
async function payInTurn(agent: StagedAgent, requests: readonly PaymentRequest[]): Promise<void> {
  const done: AgentCommand[] = [];
  for (const request of requests) {
    const [reply] = (await agent.submit(payCommand(request), ...done.splice(0))).slice(0, 1);
    done.push(confirmation(await agent.carryOut(decidedPayment(request, decisionOf(reply)))));
  }
  await agent.submit(...done);
}

type Decision = Pick<Payment, "sequence" | "denial">;

/** Times that a payment is asked for which was caught between two runs and not answered in time. */
const ASKS_MAX = 5;

/** Pays as a client does: no answer in time tells it nothing, so it asks again under the same key. */
async function payInsisting(agent: StagedAgent, request: PaymentRequest): Promise<Decision> {
  for (let asks = 1; ; asks += 1) {
    try {
      const [reply] = await agent.submit(payCommand(request));
      if (reply?.kind === "replayed" && reply.payment !== null) return reply.payment;
      return decisionOf(reply);
    } catch (error) {
      if (!(error instanceof ActorUnavailable) || asks >= ASKS_MAX) throw error;
    }
  }
}

function decisionOf(reply: AgentReply | undefined) {
  if (reply?.kind !== "decided") throw new Error(`got ${JSON.stringify(reply)}`);
  return reply.decision;
}

describe("workflow agent: roll-over by continue-as-new", () => {
  const play = useStage();

  it("payments one after another over several runs: none lost, none doubled, old keys known", () =>
    play(async (stage) => {
      const agent = await StagedAgent.start(stage, { rollOverAfterEvents: 60 });
      const requests = Array.from({ length: 40 }, () => agent.request(10));
      await payInTurn(agent, requests);
      expect(await runsOf(stage, agent)).to.be.at.least(3);
      expect(stage.rail.sent).to.deep.equal(requests.map((request) => request.transactionId));
      expect(await agent.totals()).to.deep.equal({ spent: 400, reserved: 0, open: 0 });
      const { sequence, usage } = await agent.state();
      expect([sequence, usage.day.count]).to.deep.equal([40, 40]);
      const replays = await agent.submit(...requests.map((request) => payCommand(again(request))));
      const known = requests.map(({ transactionId }) => ({
        kind: "replayed",
        transactionId,
        samePayload: true,
        payment: null,
      }));
      expect(replays).to.deep.equal(known);
      expect((await agent.state()).sequence).to.equal(40);
    }));

  it("100 payments of 1.00 on 50.00 over a roll-over: exactly 50 accepted, each decided once", () =>
    play(async (stage) => {
      const policy = { budgetCents: 5_000, autoApprovalThresholdCents: null };
      const agent = await StagedAgent.start(stage, { rollOverAfterEvents: 50 }, policy);
      const requests = Array.from({ length: 100 }, () => agent.request(100));
      const lanes = Array.from({ length: 5 }, (_, lane) =>
        requests.filter((_request, at) => at % 5 === lane),
      );
      const decisions: Decision[] = [];
      const payLane = async (lane: readonly PaymentRequest[]): Promise<void> => {
        for (const request of lane) decisions.push(await payInsisting(agent, request));
      };
      await Promise.all(lanes.map(payLane));
      const denials = decisions.flatMap(({ denial }) => (denial === null ? [] : [denial.code]));
      expect(denials).to.deep.equal(Array<string>(50).fill("BUDGET_EXCEEDED"));
      expect(new Set(decisions.map((decision) => decision.sequence)).size).to.equal(100);
      // On a busy machine this takes longer than the actor waits before it carries payments out itself.
      const { open, reserved, spent } = await agent.totals();
      expect(spent + reserved).to.equal(5_000);
      expect(open + spent / 100).to.be.within(50, 100);
      expect(await runsOf(stage, agent)).to.be.at.least(3);
    }));

  it("a hold and its policy come through: it is approved in a later run than it was made in", () =>
    play(async (stage) => {
      const agent = await StagedAgent.start(stage, { rollOverAfterEvents: 40 });
      const held = await agent.pay(6_000);
      await agent.submit(confirmation(await agent.carryOut(held)));
      await agent.ask("policy", { kind: "change_policy", patch: { dailyVelocityLimit: 30 }, version: 1 });
      await payInTurn(
        agent,
        Array.from({ length: 20 }, () => agent.request(1)),
      );
      expect(await runsOf(stage, agent)).to.be.at.least(2);
      const { policyVersion, policy } = await agent.state();
      expect([policyVersion, policy.dailyVelocityLimit]).to.deep.equal([2, 30]);
      const { payment } = await agent.resolve("approve", held);
      await agent.submit(confirmation(await agent.carryOut(payment)));
      const approval = stage.client.workflow.getHandle(`approval/${held.request.approvalId}`);
      expect(await approval.result()).to.include({ status: "approved" });
      expect(await agent.totals()).to.deep.equal({ spent: 6_020, reserved: 0, open: 0 });
    }));
});

describe("workflow agent: what an operator and a caller see", () => {
  const play = useStage();

  it("its search attribute follows a pause and a resumption", () =>
    play(async (stage) => {
      const agent = await StagedAgent.start(stage);
      const shown = async () => (await agent.handle.describe()).searchAttributes;
      await agent.submit({ kind: "pause" });
      expect(await shown()).to.deep.include({ AgentState: ["paused"], AgentId: [agent.profile.agentId] });
      await agent.submit({ kind: "resume" });
      expect(await shown()).to.deep.include({ AgentState: ["active"] });
    }));

  it("its state query shows policy, totals and open payments, and leaves the table of keys out", () =>
    play(async (stage) => {
      const agent = await StagedAgent.start(stage);
      const { request } = await agent.pay(100);
      const state = await agent.state();
      expect(state).to.not.have.any.keys("keys", "keyOrder");
      expect(state).to.include({ lifecycle: "active", policyVersion: 1, rememberedKeyCount: 1 });
      expect(Object.keys(state.open)).to.deep.equal([request.transactionId]);
    }));

  it("its budget query says what a payment would get, by the caller's time, and changes nothing", () =>
    play(async (stage) => {
      const agent = await StagedAgent.start(stage, {}, { dailySpendLimitCents: 150 });
      const payment = await agent.pay(100);
      await agent.submit(confirmation(await agent.carryOut(payment)));
      const budget = (now: number, amountCents: number | null) =>
        agent.handle.query<BudgetView, [BudgetQueryInput]>(BUDGET_QUERY, {
          now,
          payment: amountCents === null ? null : { rail: "card", recipient: "shop", amountCents },
        });
      const today = await budget(payment.createdAt, 51);
      expect(today).to.include({ spentCents: 100, reservedCents: 0, todayCents: 100, todayCount: 1 });
      expect(today.assessment?.denial?.code).to.equal("DAILY_SPEND_LIMIT_EXCEEDED");
      const tomorrow = await budget(payment.createdAt + 86_400_000, 51);
      expect(tomorrow).to.include({ todayCents: 0, todayCount: 0, lastHourCount: 0, remainingCents: 9_900 });
      expect(tomorrow.assessment).to.deep.equal({ denial: null, flaggedByRuleTypes: [] });
      const held = await budget(payment.createdAt + 86_400_000, 5_001);
      expect(held.assessment?.denial?.code).to.equal("DAILY_SPEND_LIMIT_EXCEEDED");
      expect((await budget(payment.createdAt, null)).assessment).to.equal(null);
      expect((await agent.state()).sequence).to.equal(1);
    }));
});
