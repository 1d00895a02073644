import { Context } from "@temporalio/activity";
import type { WorkflowHandle } from "@temporalio/client";
import { WorkflowUpdateFailedError } from "@temporalio/client";
import { ApplicationFailure } from "@temporalio/common";
import { expect } from "chai";
import { STATE_QUERY, SUBMIT_UPDATE } from "../../src/messages/agent.ts";
import {
  APPROVAL_WORKFLOW,
  type ApprovalResult,
  approvalWorkflowId,
  RESOLVED_SIGNAL,
} from "../../src/messages/approval.ts";
import { DELIVERY_WORKFLOW, DROPPED_SIGNAL } from "../../src/messages/delivery.ts";
import { REFUSED } from "../../src/messages/guards/refusals.ts";
import {
  ACCOUNT_QUERY,
  SNAPSHOT_QUERY,
  LEDGER_SUBMIT_UPDATE,
  NOTHING_KNOWN,
} from "../../src/messages/ledger.ts";
import { SETTLEMENT_WORKFLOW } from "../../src/messages/settlement.ts";
import { agentExamples } from "../domain/support/command-examples.ts";
import { StagedAgent } from "./support/agent.ts";
import { ledgerExamples } from "./support/command-examples.ts";
import { eventsOf } from "./support/history.ts";
import { human, KEY, withAccount } from "./support/ledger.ts";
import { useStage } from "./support/untimed.ts";

const HELD = 6_000;
const UNSWEPT_SECONDS = 3_600;
/** A refusal costs a task; what is refused for ever takes until the test's end. */
const REFUSED_MS = 20_000;

/** Updates of one workflow that the engine lets wait at once are ten. */
const AT_ONCE_MAX = 8;

/** Nothing happens by itself meanwhile. */
const WINDOW_OPEN = { keyId: KEY, lineageId: null, deliverableUntil: Date.UTC(2100, 0) };

/** Of an update. */
type Arguments = [unknown, ...unknown[]];

type Fields = Readonly<Record<string, unknown>>;

/** Made of a good command: a field is missing, has another type, is too large, or is not known. */
function spoilt(command: Fields): unknown[] {
  const { kind, ...fields } = command;
  const large = " x".repeat(50_000);
  const ofFields = Object.keys(fields).flatMap((name) => {
    const { [name]: _left, ...rest } = command;
    return [rest, { ...command, [name]: [large] }, { ...command, [name]: { more: 1 } }];
  });
  return [...ofFields, { ...command, more: large }, { kind: `${String(kind)}_by_nobody`, ...fields }];
}

/** What may be left out, so that it is no fault: of these examples there is one for each kind. */
const MAY_BE_LEFT_OUT = new Set(["pay without rules"]);

const isFaulty = (before: Fields, after: unknown): boolean => {
  const left = Object.keys(before).filter((name) => !Object.keys(Object(after)).includes(name));
  return !left.some((name) => MAY_BE_LEFT_OUT.has(`${String(before["kind"])} without ${name}`));
};

const faultsOf = (examples: object): [unknown][] => {
  const commands = Object.values(examples).flatMap((command: Fields) =>
    spoilt(command)
      .filter((one) => isFaulty(command, one))
      .map((one): [unknown] => [[one]]),
  );
  const batches: [unknown][] = [[undefined], [null], ["pause"], [{}], [[null]], [["pause"]], [[[]]]];
  return [...commands, ...batches];
};

/** Sends an update as an intruder may who reaches Temporal; how it was refused, or what it was answered. */
async function outcomeOf(handle: WorkflowHandle, update: string, args: Arguments): Promise<unknown> {
  const answer = handle
    .executeUpdate<unknown, Arguments>(update, { args: [...args] })
    .catch((error: unknown) => {
      const cause = error instanceof WorkflowUpdateFailedError ? error.cause : error;
      return cause instanceof ApplicationFailure ? cause.type : cause;
    });
  let timer: NodeJS.Timeout | undefined;
  const late = new Promise<string>((resolve) => {
    timer = setTimeout(() => resolve("no answer in time"), REFUSED_MS);
  });
  return Promise.race([answer, late]).finally(() => clearTimeout(timer));
}

async function expectAllRefused(
  handle: WorkflowHandle,
  update: string,
  faults: readonly Arguments[],
): Promise<void> {
  const others: unknown[] = [];
  for (let from = 0; from < faults.length; from += AT_ONCE_MAX) {
    const some = faults.slice(from, from + AT_ONCE_MAX);
    const outcomes = await Promise.all(some.map((args) => outcomeOf(handle, update, args)));
    for (const [index, outcome] of outcomes.entries()) {
      if (outcome !== REFUSED) others.push([outcome, JSON.stringify(some[index])?.slice(0, 200)]);
    }
  }
  expect(others).to.deep.equal([]);
}

/** Updates that a workflow has taken. */
const acceptedBy = async (handle: WorkflowHandle): Promise<number> =>
  (await eventsOf(handle)).filter((event) => event.workflowExecutionUpdateAcceptedEventAttributes).length;

/** No task of it ever failed: else it would be tried again until an operator ends the workflow. */
async function expectNoFailedTask(handle: WorkflowHandle): Promise<void> {
  const events = await eventsOf(handle);
  expect(events.filter((event) => event.workflowTaskFailedEventAttributes)).to.deep.equal([]);
}

describe("workflows: what this service never made is refused in bounded time, and they go on", () => {
  const play = useStage();

  it("an agent's actor refuses every update with a fault, which leaves no trace, and goes on", () =>
    play(async (stage) => {
      const agent = await StagedAgent.start(stage, { firstKey: WINDOW_OPEN });
      const before = await agent.state();
      const faults = faultsOf(agentExamples);
      expect(faults.length).to.be.above(30);
      await expectAllRefused(agent.handle, SUBMIT_UPDATE, faults);
      expect(await agent.state()).to.deep.equal(before);
      expect(await acceptedBy(agent.handle)).to.equal(0);
      expect(await agent.submit({ kind: "rename", name: "Another" })).to.deep.equal([{ kind: "renamed" }]);
      await expectNoFailedTask(agent.handle);
    }));

  it("a ledger refuses every update with a fault, which leaves no trace, and judges on", () =>
    play(async (stage) => {
      // It sweeps by real time, which so many refusals take; what it swept meanwhile would be a trace in its books.
      const { account, ledger } = await withAccount(stage, {}, { sweepAfterSeconds: UNSWEPT_SECONDS });
      const held = await account.pay(HELD);
      await account.finish(held);
      const before = [await ledger.state(), await ledger.books()];
      const examples = ledgerExamples(account.agentId, held.request.transactionId);
      const good = [{ kind: "pause", agentId: account.agentId }];
      const faults: Arguments[] = [
        ...faultsOf(examples).map(([batch]): Arguments => [batch, NOTHING_KNOWN]),
        ...spoilt({ ...NOTHING_KNOWN }).map((known): Arguments => [good, known]),
        [good],
      ];
      expect(faults.length).to.be.above(100);
      await expectAllRefused(ledger.handle, LEDGER_SUBMIT_UPDATE, faults);
      expect([await ledger.state(), await ledger.books()]).to.deep.equal(before);
      expect(await acceptedBy(ledger.handle), "account, payment and confirmation").to.equal(3);
      expect((await account.payThrough(100)).status).to.equal("approved");
      await expectNoFailedTask(ledger.handle);
    }));

  it("what is as it should be is taken, each of the kinds by its ledger or its agent's actor", () =>
    play(async (stage) => {
      const { account, ledger } = await withAccount(stage);
      const agent = await StagedAgent.start(stage, { firstKey: WINDOW_OPEN });
      const ofLedger = Object.values(ledgerExamples(account.agentId, "txn_of_nobody"));
      const judged = await ledger.submit(...ofLedger);
      expect(judged.map(({ kind }) => kind)).to.not.include("failed");
      const answered = await agent.submit(...Object.values(agentExamples));
      expect([judged.length, answered.length]).to.deep.equal([
        ofLedger.length,
        Object.keys(agentExamples).length,
      ]);
    }));

  it("questions with a fault are refused, and good ones answered after them", () =>
    play(async (stage) => {
      const { account, ledger } = await withAccount(stage);
      const { agentId } = account;
      const faults: [string, unknown[]][] = [
        ...[
          [],
          [null],
          [{ agentId, now: "noon" }],
          [{ now: 1 }],
          [{ agentId, now: 1, payment: { amountCents: 1 } }],
        ].map((args): [string, unknown[]] => [ACCOUNT_QUERY, args]),
        ...[[], [{ after: null }], [{ after: null, limit: 1_001 }], [{ after: 1, limit: 1 }]].map(
          (args): [string, unknown[]] => [SNAPSHOT_QUERY, args],
        ),
      ];
      for (const [query, args] of faults) {
        const asked = ledger.handle.query<unknown, unknown[]>(query, ...args);
        const end = await asked.then(
          () => "answered",
          () => REFUSED,
        );
        expect(end, `${query} ${JSON.stringify(args)}`).to.equal(REFUSED);
      }
      expect(await account.view(Date.now())).to.include({ spentCents: 0, status: "active" });
      expect(await ledger.books()).to.have.length(1);
    }));

  it("an approval passes over what says nothing of its payment, and heeds its ledger", () =>
    play(async (stage) => {
      const { account } = await withAccount(stage, { budgetCents: 3 * HELD });
      const [held, other] = [await account.pay(HELD), await account.pay(HELD)];
      for (const payment of [held, other]) await account.finish(payment);
      const approval = stage.client.workflow.getHandle<() => Promise<ApprovalResult | null>>(
        approvalWorkflowId(held.request.approvalId),
      );
      const { payment: denied } = await account.resolve("deny", other);
      const ended = { ...denied, request: held.request };
      for (const told of [
        undefined,
        null,
        "approved",
        {},
        { phase: "sending" },
        held,
        denied,
        { ...ended, approval: null },
        { ...ended, request: { ...held.request, purpose: " x".repeat(50_000) } },
      ]) {
        await approval.signal<unknown[]>(RESOLVED_SIGNAL, told);
      }
      await approval.signal("made-up", {});
      expect(await approval.query(STATE_QUERY)).to.include({ state: "pending" });
      const { payment: approved } = await account.resolve("approve", held);
      await account.execute(approved);
      expect(await approval.result()).to.include({ status: "approved" });
      expect(stage.rail.sent).to.deep.equal([held.request.transactionId]);
      await expectNoFailedTask(approval);
    }));

  it("a delivery that is told to end by whatever signal with whatever text ends, or goes on", () =>
    play(
      async (stage) => {
        const input = {
          deliveryId: `dlv_${stage.scene}`,
          organizationId: human.userId,
          endpointId: "whe_1",
          eventType: "agent.created",
          isTest: false,
          run: 1,
        };
        const handle = await stage.client.workflow.start(DELIVERY_WORKFLOW, {
          workflowId: `delivery/${stage.scene}`,
          taskQueue: stage.taskQueue,
          args: [input],
        });
        await handle.signal("made-up", { more: 1 });
        await handle.signal<unknown[]>(DROPPED_SIGNAL, { more: " x".repeat(50_000) });
        expect(await handle.result()).to.equal("dropped");
        await expectNoFailedTask(handle);
      },
      { activities: { deliverWebhook: () => Context.current().cancelled } },
    ));

  it("approvals and settlements of nothing fail at their start, and are not tried for ever", () =>
    play(async (stage) => {
      for (const type of [APPROVAL_WORKFLOW, SETTLEMENT_WORKFLOW]) {
        for (const [index, args] of [[], [null], [{}], [{ profile: {}, payment: {}, polls: 0 }]].entries()) {
          const handle = await stage.client.workflow.start(type, {
            workflowId: `${type}/${stage.scene}/${String(index)}`,
            taskQueue: stage.taskQueue,
            args,
          });
          const end = await handle.result().then(
            () => "completed",
            () => "failed",
          );
          expect(end, `${type} ${JSON.stringify(args)}`).to.equal("failed");
          await expectNoFailedTask(handle);
        }
      }
    }));
});
