import { randomUUID } from "node:crypto";
import { Context } from "@temporalio/activity";
import type { WorkflowHandle } from "@temporalio/client";
import { WorkflowUpdateFailedError } from "@temporalio/client";
import { ApplicationFailure, defaultPayloadConverter } from "@temporalio/common";
import proto, { type temporal } from "@temporalio/proto";
import { expect } from "chai";
import { STATE_QUERY, SUBMIT_UPDATE } from "../../src/messages/agent.ts";
import { APPROVAL_WORKFLOW, approvalWorkflowId, RESOLVED_SIGNAL } from "../../src/messages/approval.ts";
import type { Payment } from "../../src/domain/ledger/payment.ts";
import { DELIVERY_WORKFLOW, DROPPED_SIGNAL } from "../../src/messages/delivery.ts";
import { enveloped, forSignal, forStart } from "../../src/messages/envelope.ts";
import { REFUSED } from "../../src/messages/guards/batch-refusals.ts";
import { ACCOUNT_QUERY, LEDGER_SUBMIT_UPDATE, NOTHING_KNOWN } from "../../src/messages/ledger.ts";
import { SETTLEMENT_WORKFLOW } from "../../src/messages/settlement.ts";
import { agentExamples, ledgerExamples } from "../domain/support/command-examples.ts";
import { StagedAgent } from "./support/agent.ts";
import { activitiesOf, eventsOf, eventsUntil, type HistoryEvent } from "./support/history.ts";
import { human, KEY, type StagedAccount, withAccount } from "./support/ledger.ts";
import type { Stage } from "./support/stage.ts";
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

/** Batches of another version: of commands that are unknown, or have a field too many or too few, and of none. */
const batchesBeyond = (command: { readonly kind: string }): readonly unknown[] => {
  const { kind, ...fields } = command;
  const lacking = Object.keys(fields).map((name) => ({ ...command, [name]: undefined }));
  const others = [{ ...command, more: 1 }, { ...command, kind: `${kind}_by_nobody` }, null, "pause", []];
  return [...[...lacking, ...others].map((each) => [each]), undefined, null, {}, ["pause"], [[null]]];
};

/** Sends an update; how it was refused, or what it was answered. */
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

const COMPLETED =
  proto.temporal.api.enums.v1.UpdateWorkflowExecutionLifecycleStage
    .UPDATE_WORKFLOW_EXECUTION_LIFECYCLE_STAGE_COMPLETED;

/** Sends an update past the service; the type of its failure, which alone is readable to everybody. */
async function forgedEnd({ client }: Stage, workflowId: string, input: temporal.api.update.v1.IInput) {
  const { outcome } = await client.workflowService.updateWorkflowExecution({
    namespace: client.options.namespace,
    workflowExecution: { workflowId },
    waitPolicy: { lifecycleStage: COMPLETED },
    request: { meta: { updateId: randomUUID(), identity: "intruder" }, input },
  });
  return outcome?.failure?.applicationFailureInfo?.type;
}

const isTaskCompleted = (event: HistoryEvent): boolean =>
  (event.workflowTaskCompletedEventAttributes ?? null) !== null;

/** A person still approves what is on hold, and it is paid. */
async function expectApproves(stage: Stage, account: StagedAccount, held: Payment): Promise<void> {
  const { payment } = await account.resolve("approve", held);
  await account.execute(payment);
  const approval = stage.client.workflow.getHandle(approvalWorkflowId(held.request.approvalId));
  expect(await approval.result()).to.equal("approved");
  expect(stage.rail.sent).to.include(held.request.transactionId);
}

describe("workflows: what this service never made is refused in bounded time, and they go on", () => {
  const play = useStage({ isEncrypted: true });

  it("an agent's actor refuses what another version may send, without a trace, and goes on", () =>
    play(async (stage) => {
      const agent = await StagedAgent.start(stage, { firstKey: WINDOW_OPEN });
      const before = await agent.state();
      const faults = batchesBeyond(agentExamples.mint_key).map((batch): Arguments => [batch]);
      await expectAllRefused(agent.handle, SUBMIT_UPDATE, faults);
      expect(await agent.state()).to.deep.equal(before);
      expect(await acceptedBy(agent.handle)).to.equal(0);
      expect(await agent.submit({ kind: "rename", name: "Another" })).to.deep.equal([{ kind: "renamed" }]);
      await expectNoFailedTask(agent.handle);
    }));

  it("a ledger refuses what another version may send, without a trace, and judges on", () =>
    play(async (stage) => {
      // What it swept meanwhile would be a trace in its books.
      const { account, ledger } = await withAccount(stage, {}, { sweepAfterSeconds: UNSWEPT_SECONDS });
      const held = await account.pay(HELD);
      await account.finish(held);
      const before = [await ledger.state(), await ledger.books()];
      const { requestId: _optional, ...deny } = ledgerExamples(held.request.transactionId).deny;
      const faults = batchesBeyond(deny).map((batch): Arguments => [batch, NOTHING_KNOWN]);
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
      const ofLedger = Object.values(ledgerExamples("txn_of_nobody", account.profile));
      const judged = await ledger.submit(...ofLedger);
      expect(judged.map(({ kind }) => kind)).to.not.include("failed");
      const answered = await agent.submit(...Object.values(agentExamples));
      expect([judged.length, answered.length]).to.deep.equal([
        ofLedger.length,
        Object.keys(agentExamples).length,
      ]);
    }));

  it("plain updates, queries, signals and starts are refused, and the workflows go on", () =>
    play(async (stage) => {
      const { account, ledger } = await withAccount(stage);
      const held = await account.pay(HELD);
      await account.finish(held);
      const intruder = stage.intruder.workflow;
      const forged = intruder.getHandle(ledger.handle.workflowId);
      const batch = [{ kind: "pause", agentId: account.agentId }];
      for (const args of [[batch, NOTHING_KNOWN], enveloped("update submit x", [batch, NOTHING_KNOWN])]) {
        const payloads = args.map((each) => defaultPayloadConverter.toPayload(each));
        const input = { name: LEDGER_SUBMIT_UPDATE, args: { payloads } };
        expect(await forgedEnd(stage, ledger.handle.workflowId, input)).to.equal(REFUSED);
      }
      const asked = forged.query(ACCOUNT_QUERY, { agentId: account.agentId, now: 1 });
      expect(await asked.then(String, () => REFUSED)).to.equal(REFUSED);
      const approvalId = approvalWorkflowId(held.request.approvalId);
      for (const args of [[], [held], enveloped(forSignal(RESOLVED_SIGNAL), [held])]) {
        await intruder.getHandle(approvalId).signal<unknown[]>(RESOLVED_SIGNAL, ...args);
      }
      await intruder.getHandle(approvalId).signal("made-up", {});
      for (const type of [APPROVAL_WORKFLOW, SETTLEMENT_WORKFLOW]) {
        const started = await intruder.start(type, {
          workflowId: `${type}/${stage.scene}`,
          taskQueue: stage.taskQueue,
          args: enveloped(forStart(type), [{}]),
        });
        expect(await started.result().then(String, () => "failed"), type).to.equal("failed");
      }
      expect(await account.view(Date.now())).to.include({ status: "active" });
      await expectApproves(stage, account, held);
      await expectNoFailedTask(ledger.handle);
    }));

  it("an authentic payload is refused in another workflow, as another message, and a second time", () =>
    play(async (stage) => {
      const { account, ledger } = await withAccount(stage, { budgetCents: 3 * HELD });
      const [held, other] = [await account.pay(HELD), await account.pay(HELD)];
      for (const payment of [held, other]) await account.finish(payment);
      await account.execute((await account.resolve("approve", other)).payment);
      const [approval, resolved] = [held, other].map(({ request }) =>
        stage.client.workflow.getHandle(approvalWorkflowId(request.approvalId)),
      );
      if (approval === undefined || resolved === undefined) throw new Error("there are two approvals");
      await resolved.result();
      const signalled = (await eventsOf(resolved)).flatMap(
        ({ workflowExecutionSignaledEventAttributes: signal }) => signal?.input?.payloads ?? [],
      );
      const started =
        (await eventsOf(approval))[0]?.workflowExecutionStartedEventAttributes?.input?.payloads ?? [];
      expect([signalled.length, started.length]).to.deep.equal([1, 1]);
      const { workflowService } = stage.client;
      const { namespace } = stage.client.options;
      for (const payloads of [signalled, started]) {
        await workflowService.signalWorkflowExecution({
          namespace,
          workflowExecution: { workflowId: approval.workflowId },
          signalName: RESOLVED_SIGNAL,
          input: { payloads },
        });
      }
      const update = (await eventsOf(ledger.handle)).flatMap(
        ({ workflowExecutionUpdateAcceptedEventAttributes: taken }) => taken?.acceptedRequest?.input ?? [],
      )[0];
      expect(await forgedEnd(stage, ledger.handle.workflowId, update ?? {})).to.equal(REFUSED);
      expect(await approval.query(STATE_QUERY)).to.include({ state: "pending" });
      await expectApproves(stage, account, held);
      await expectNoFailedTask(approval);
    }));

  it("a delivery is dropped by this service alone", () =>
    play(
      async (stage) => {
        const workflowId = `delivery/${stage.scene}`;
        const handle = await stage.client.workflow.start(DELIVERY_WORKFLOW, {
          workflowId,
          taskQueue: stage.taskQueue,
          args: [
            {
              deliveryId: `dlv_${stage.scene}`,
              organizationId: human.userId,
              endpointId: "whe_1",
              eventType: "agent.created",
              isTest: false,
              run: 1,
            },
          ],
        });
        await eventsUntil(handle, (events) => events.some(isTaskCompleted));
        await stage.intruder.workflow.getHandle(workflowId).signal(DROPPED_SIGNAL);
        await eventsUntil(handle, (events) => events.filter(isTaskCompleted).length >= 2);
        expect((await handle.describe()).status.name).to.equal("RUNNING");
        await handle.signal(DROPPED_SIGNAL);
        expect(await handle.result()).to.equal("dropped");
        await expectNoFailedTask(handle);
      },
      { activities: { deliverWebhook: () => Context.current().cancelled } },
    ));

  it("a result that no activity gave is not taken for one", () =>
    play(
      async (stage) => {
        const { account, ledger } = await withAccount(stage);
        const held = await account.pay(HELD, 1);
        await account.finish(held);
        const approval = stage.client.workflow.getHandle(approvalWorkflowId(held.request.approvalId));
        await eventsUntil(approval, (events) => activitiesOf(events).length === 1);
        const { workflowId } = approval;
        await stage.client.workflowService.respondActivityTaskCompletedById({
          namespace: stage.client.options.namespace,
          workflowId,
          activityId: "1",
          result: { payloads: [defaultPayloadConverter.toPayload("approved")] },
        });
        expect(await approval.result().then(String, () => "failed")).to.equal("failed");
        expect((await ledger.books()).length).to.equal(1);
      },
      { activities: { expireApproval: () => Context.current().cancelled } },
    ));
});
