import { randomUUID } from "node:crypto";
import { expect } from "chai";
import { type ApprovalDocument, COLLECTIONS, type TransactionDocument } from "../../src/store/documents.ts";
import { CommandsRefused, refusalIn } from "../../src/actors/commands-refused.ts";
import type { CommandOf, LedgerCommand } from "../../src/domain/ledger/commands.ts";
import { hasTexts, type Payment, type PaymentRequest, withTexts } from "../../src/domain/ledger/payment.ts";
import type { AgentProfile } from "../../src/domain/agent/state.ts";
import {
  type KnownRevisions,
  LEDGER_SUBMIT_UPDATE,
  ledgerWorkflowId,
  NOTHING_KNOWN,
} from "../../src/messages/ledger.ts";
import { APPROVAL_WORKFLOW, approvalWorkflowId, RESOLVED_SIGNAL } from "../../src/messages/approval.ts";
import { SETTLEMENT_WORKFLOW } from "../../src/messages/settlement.ts";
import { expectBooksAgree } from "../support/books.ts";
import { accountSnapshot } from "../support/ledger.ts";
import { sideBySide } from "../support/side-by-side.ts";
import { newWorld, type TestAgent, until, type World } from "../support/world.ts";
import { send } from "../support/wire.ts";

const WINDOW_SECONDS = 3_600;

const requestOf = (fields: Partial<PaymentRequest> = {}): PaymentRequest => ({
  transactionId: `txn_forged_${randomUUID()}`,
  approvalId: `apr_forged_${randomUUID()}`,
  keyHash: randomUUID(),
  payloadHash: "payload",
  fingerprint: "fingerprint",
  rail: "card",
  amountCents: 700,
  currency: "USD",
  recipient: "thief",
  merchantCategory: null,
  purpose: "none",
  proof: "A".repeat(43),
  ...fields,
});

const payCommand = (agentId: string, keyId: string, request: PaymentRequest): CommandOf<"pay"> => ({
  kind: "pay",
  agentId,
  keyId,
  request,
  approvalWindowSeconds: WINDOW_SECONDS,
  recordsCheckedThrough: 0,
});

/** What an intruder may do who reaches Temporal and has no credential of this service. */
describe("what is written to Temporal past this service", () => {
  let world: World;
  before(async () => {
    world = await newWorld();
  });

  const asksAlways = (): Promise<TestAgent> => world.agent({ autoApprovalThresholdCents: 0 });
  const temporal = () => world.service.connections.temporal.workflow;
  const ledger = () => temporal().getHandle(ledgerWorkflowId(world.organization.projectId));
  const tell = (command: LedgerCommand) =>
    ledger().executeUpdate(LEDGER_SUBMIT_UPDATE, { args: [[command], NOTHING_KNOWN] });
  const accountOf = (agent: TestAgent) => accountSnapshot(world, agent.id);
  const owner = () => ({ userId: world.organization.userId, name: "Owner" });
  const paymentOf = (agent: TestAgent, id: string) =>
    world.api.ok("getPayment", 200, { token: agent.key, id });
  const effectsOn = (transactionId: string) =>
    world.service.db.collection(COLLECTIONS.sandboxCardLedger).countDocuments({ transactionId });

  async function heldBy(
    agent: TestAgent,
  ): Promise<{ readonly profile: AgentProfile; readonly payment: Payment }> {
    const { transactionId } = await agent.hold();
    const { agentId, name, open, teamId } = await accountOf(agent);
    const found = open.find(({ payment }) => payment.request.transactionId === transactionId);
    if (found === undefined) throw new Error("what is on hold is open");
    const { organizationId, projectId } = world.organization;
    const recorded = await records().findOne({ _id: transactionId });
    if (recorded === null) throw new Error("what is on hold is recorded");
    const profile = { organizationId, projectId, teamId, agentId, name };
    return { profile, payment: withTexts(found.payment, recorded) };
  }

  const decidedBy = async (transactionId: string, action: string) => {
    const query = { action, resource: transactionId };
    const { entries } = await world.api.ok("listAuditLog", 200, { token: world.token, query });
    return entries.map(({ actor }) => actor);
  };

  const records = () => world.service.db.collection<TransactionDocument>(COLLECTIONS.transactions);
  const textsAreDropped = (agent: TestAgent) =>
    until("the ledger has dropped its texts", async () =>
      (await accountOf(agent)).open.every((open) => !hasTexts(open.payment)) ? true : null,
    );

  /** All are done with, which the ledger sees to by itself. */
  const nothingIsOpen = (agent: TestAgent) =>
    until("its ledger has nothing left to do", async () =>
      (await accountOf(agent)).open.length === 0 ? true : null,
    );

  // What is forged is undone when the ledger next looks after its payments, 10 s later.
  sideBySide({
    "an approval in the owner's name pays nothing and names no resolver; the agent pays on": async () => {
      const agent = await asksAlways();
      const { payment } = await heldBy(agent);
      const { transactionId, approvalId, proof } = payment.request;
      const other = await heldBy(agent);
      await world.api.ok("approveApproval", 200, {
        token: world.token,
        id: other.payment.request.approvalId,
      });
      // The proof of the payment itself is genuine, and one of nothing that a person has said.
      await tell({ kind: "approve", agentId: agent.id, transactionId, by: owner(), proof });
      await nothingIsOpen(agent);
      const { approval, transaction } = await paymentOf(agent, transactionId);
      expect([transaction.status, transaction.denialCode]).to.deep.equal(["failed", "RAIL_UNAVAILABLE"]);
      expect(approval).to.deep.include({ resolution: "failed", resolvedBy: null, feedback: null });
      expect(await effectsOn(transactionId)).to.equal(0);
      expect(await decidedBy(transactionId, "resolvePayment")).to.deep.equal([
        { type: "system", id: "verification" },
      ]);
      const events = await world.service.db
        .collection(COLLECTIONS.events)
        .countDocuments({ "data.transaction._id": transactionId, type: "approval.completed" });
      expect(events).to.equal(0);
      await expectBooksAgree(world, agent);
      // Nothing waits with it any more.
      await temporal().getHandle(approvalWorkflowId(approvalId)).result();
      expect((await agent.pay()).transaction.status).to.equal("pending");
      const { body } = await send(world.service.baseUrl, "/metrics");
      expect(String(body)).to.match(/^spending_control_forged_total\{what="decision"\} [1-9]/m);
    },

    "a payment whose record was changed is paid as it was accepted, and recorded so": async () => {
      const agent = await asksAlways();
      const { payment } = await heldBy(agent);
      const { approvalId, purpose, transactionId } = payment.request;
      await textsAreDropped(agent);
      await records().updateOne({ _id: transactionId }, { $set: { purpose: "Another" } });
      await world.api.ok("approveApproval", 200, { token: world.token, id: approvalId });
      await nothingIsOpen(agent);
      const { transaction } = await paymentOf(agent, transactionId);
      expect([transaction.status, transaction.purpose]).to.deep.equal(["approved", purpose]);
      expect(await effectsOn(transactionId)).to.equal(1);
      await expectBooksAgree(world, agent);
    },

    "a payment is not paid whose purpose was another one where a person approved it": async () => {
      const agent = await asksAlways();
      const { payment } = await heldBy(agent);
      const { approvalId, transactionId } = payment.request;
      const approvals = world.service.db.collection<ApprovalDocument>(COLLECTIONS.approvals);
      await approvals.updateOne({ _id: approvalId }, { $set: { purpose: "Another" } });
      await world.api.call("approveApproval", { token: world.token, id: approvalId });
      await nothingIsOpen(agent);
      expect((await paymentOf(agent, transactionId)).transaction.status).to.equal("failed");
      expect(await effectsOn(transactionId)).to.equal(0);
    },

    "a payment whose texts nothing has any more ends without being paid": async () => {
      const agent = await asksAlways();
      const { payment } = await heldBy(agent);
      const { approvalId, transactionId } = payment.request;
      await textsAreDropped(agent);
      await temporal().getHandle(approvalWorkflowId(approvalId)).terminate("forged");
      await records().deleteOne({ _id: transactionId });
      await tell({
        kind: "approve",
        agentId: agent.id,
        transactionId,
        by: owner(),
        proof: payment.request.proof,
      });
      await nothingIsOpen(agent);
      expect((await accountOf(agent)).reservedCents).to.equal(0);
      expect(await effectsOn(transactionId)).to.equal(0);
    },

    "an approval without a name is refused by the ledger, and a person decides after it": async () => {
      const agent = await asksAlways();
      const { payment } = await heldBy(agent);
      const { approvalId, proof, transactionId } = payment.request;
      for (const name of [{ by: null }, {}, { by: "Owner" }, { by: {} }]) {
        const command = { kind: "approve", agentId: agent.id, transactionId, proof, ...name };
        const told = ledger().executeUpdate<unknown, [unknown[], KnownRevisions]>(LEDGER_SUBMIT_UPDATE, {
          args: [[command], NOTHING_KNOWN],
        });
        const error = await told.then(
          () => null,
          (failed: unknown) => refusalIn(failed),
        );
        expect(error, JSON.stringify(name)).to.be.instanceOf(CommandsRefused);
      }
      expect((await paymentOf(agent, transactionId)).transaction.status).to.equal("pending");
      expect(await effectsOn(transactionId)).to.equal(0);
      await world.api.ok("approveApproval", 200, { token: world.token, id: approvalId });
      await nothingIsOpen(agent);
      const { approval } = await paymentOf(agent, transactionId);
      expect([approval?.resolution, approval?.resolvedBy?.userId]).to.deep.equal([
        "approved",
        owner().userId,
      ]);
      expect(await effectsOn(transactionId)).to.equal(1);
      await expectBooksAgree(world, agent);
    },

    "a denial in the owner's name is written down without a name": async () => {
      const agent = await asksAlways();
      const { payment } = await heldBy(agent);
      const { proof, transactionId } = payment.request;
      const feedback = "I am the owner.";
      await tell({ kind: "deny", agentId: agent.id, transactionId, by: owner(), feedback, proof });
      await nothingIsOpen(agent);
      const { approval, transaction } = await paymentOf(agent, transactionId);
      expect(transaction).to.deep.include({ status: "denied" });
      expect(approval).to.deep.include({ resolvedBy: null, feedback: null });
      expect(await decidedBy(transactionId, "resolvePayment")).to.deep.equal([
        { type: "system", id: "verification" },
      ]);
      await expectBooksAgree(world, agent);
    },

    "what a person has denied is not paid when its request is sent anew under another key": async () => {
      const agent = await asksAlways();
      const { payment } = await heldBy(agent);
      const { approvalId, transactionId } = payment.request;
      const denying = { token: world.token, id: approvalId, body: { feedback: "No." } };
      await world.api.ok("denyApproval", 200, denying);
      await nothingIsOpen(agent);
      const { policyVersion: version } = await accountOf(agent);
      const patch = { autoApprovalThresholdCents: null };
      await tell({ kind: "change_policy", agentId: agent.id, patch, version });
      const { keyId, sequence } = await accountOf(agent);
      const again = { ...payment.request, keyHash: randomUUID() };
      await tell(payCommand(agent.id, keyId ?? "", again));
      expect((await accountOf(agent)).sequence, "the ledger has taken it in").to.equal(sequence + 1);
      await nothingIsOpen(agent);
      expect(await effectsOn(transactionId)).to.equal(0);
      const { approval, transaction } = await paymentOf(agent, transactionId);
      expect([transaction.status, transaction.denialCode]).to.deep.equal(["denied", "APPROVAL_DENIED"]);
      expect([approval?.resolution, approval?.resolvedBy?.userId]).to.deep.equal(["denied", owner().userId]);
    },

    "payments that no agent asked for are not made, and leave no reservation and no record": async () => {
      const [agent, asker] = [await world.agent(), await asksAlways()];
      const { payment } = await heldBy(asker);
      const [sent, held, altered] = [
        requestOf(),
        requestOf(),
        // Genuine, but for where the money goes.
        requestOf({ ...payment.request, keyHash: randomUUID(), recipient: "thief" }),
      ];
      // Whose key it is stands in the ledger's state, for everybody to read who reaches Temporal.
      const before = await accountOf(agent);
      const [keyId, askersKeyId] = [before.keyId, (await accountOf(asker)).keyId];
      await tell(payCommand(agent.id, keyId ?? "", sent));
      await tell(payCommand(agent.id, keyId ?? "", altered));
      await tell(payCommand(asker.id, askersKeyId ?? "", held));
      expect((await accountOf(agent)).sequence, "the ledger has taken them in").to.equal(before.sequence + 2);
      await nothingIsOpen(agent);
      await until("only what is genuine is on hold", async () =>
        (await accountOf(asker)).open.length === 1 ? true : null,
      );
      for (const { transactionId } of [sent, held]) {
        expect(await effectsOn(transactionId)).to.equal(0);
        expect(
          await world.service.db
            .collection<{ _id: string }>(COLLECTIONS.transactions)
            .findOne({ _id: transactionId }),
        ).to.equal(null);
      }
      expect(await effectsOn(altered.transactionId)).to.equal(0);
      const { reservedCents, spentCents } = await accountOf(agent);
      expect([spentCents, reservedCents]).to.deep.equal([0, 0]);
      expect((await agent.pay()).transaction.status).to.equal("approved");
    },

    "workflows that were started with made-up payments pay nothing and write nothing down": async () => {
      const agent = await asksAlways();
      const { payment, profile } = await heldBy(agent);
      const { request } = payment;
      const { taskQueue } = world.service.connections.addresses;
      const input = {
        profile,
        approvalId: request.approvalId,
        transactionId: request.transactionId,
        amountCents: 1,
        texts: { recipient: "shop", purpose: "a test" },
        flaggedByRuleTypes: [],
        expiresAt: Date.now() + 60_000,
      };
      const made: Payment = {
        ...payment,
        request: { ...request, transactionId: `txn_forged_${randomUUID()}` },
      };
      const ends = await Promise.all(
        [payment, made].map(async (told) => {
          const handle = await temporal().signalWithStart(APPROVAL_WORKFLOW, {
            workflowId: `forged/${randomUUID()}`,
            taskQueue,
            args: [{ ...input, transactionId: told.request.transactionId }],
            signal: RESOLVED_SIGNAL,
            signalArgs: ["approved"],
          });
          return handle.result();
        }),
      );
      expect(ends).to.deep.equal(["approved", "approved"]);
      const altered: Payment = {
        ...payment,
        request: { ...request, amountCents: 1 },
        phase: "following",
        revision: 9,
      };
      const retold: Payment = { ...altered, request: { ...request, purpose: "The rent." }, revision: 10 };
      for (const told of [altered, retold]) {
        const following = await temporal().start(SETTLEMENT_WORKFLOW, {
          workflowId: `forged/${randomUUID()}`,
          taskQueue,
          args: [{ profile, payment: told, polls: 0 }],
        });
        await following.result();
      }
      for (const told of [payment, made]) expect(await effectsOn(told.request.transactionId)).to.equal(0);
      const { approval, transaction } = await paymentOf(agent, request.transactionId);
      expect(approval?.resolvedBy ?? null).to.equal(null);
      expect([transaction.status, transaction.amountCents]).to.deep.equal(["pending", request.amountCents]);
      expect(transaction.purpose, "what a person decides by").to.equal(request.purpose);
      expect(await decidedBy(request.transactionId, "resolvePayment")).not.to.deep.include({ type: "user" });
    },
  });
});
