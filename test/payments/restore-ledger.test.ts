import { mcOf } from "../../src/domain/money.ts";
import { randomUUID } from "node:crypto";
import { expect } from "chai";
import { reconcileOn } from "../../server/admin/reconcile/reconcile.ts";
import { reconciledText } from "../../server/admin/reconcile/text.ts";
import { type Restored, restoreLedgerOn } from "../../server/admin/restore-ledger/restore-ledger.ts";
import { restoredText } from "../../server/admin/restore-ledger/text.ts";
import { collectionsOf } from "../../src/store/collections.ts";
import type { OperationId } from "../../src/contract/registry.ts";
import { ledgerWorkflowId } from "../../src/messages/ledger.ts";
import { entriesOf } from "../audit/support.ts";
import { outcomeOf, TestBudgets } from "../support/budgets.ts";
import { codeOf } from "../support/contract-api.ts";
import { proven } from "../support/payments-in-place.ts";
import { Child, cleanEnvironment } from "../support/process.ts";
import {
  cardPayment,
  elevate,
  type Fields,
  newWorld,
  type TestAgent,
  times,
  until,
  type World,
} from "../support/world.ts";

/** Longer than anything is under way while nothing is killed. */
const LONG_MS = 30_000;
const REST_MS = 120_000;

const terminate = ({ organization, service }: World): Promise<unknown> =>
  service.connections.temporal.workflow.getHandle(ledgerWorkflowId(organization.projectId)).terminate();

const restore = ({ organization, service }: World, isConfirmed: boolean): Promise<Restored> =>
  restoreLedgerOn(service.connections, service.env, {
    projectId: organization.projectId,
    isConfirmed,
    patienceMs: LONG_MS,
    onProgress: () => undefined,
  });

const refusalOf = async (promise: Promise<unknown>): Promise<string> => {
  try {
    await promise;
  } catch (error) {
    return error instanceof Error ? error.message : String(error);
  }
  return "";
};

/** A payment with a key that is told again later. */
interface Kept {
  readonly body: Fields;
  readonly id: string;
}

async function payKept(agent: TestAgent, world: World, fields: Fields): Promise<Kept> {
  const body = cardPayment(fields);
  const { transaction } = await world.api.ok("createPayment", 201, { token: agent.key, body });
  return { body, id: transaction.id };
}

async function answerOf({ api }: World, operation: OperationId, request: object): Promise<string> {
  const answer = await api.call(operation, request);
  return `${String(answer.status)} ${codeOf(answer) ?? ""}`.trim();
}

/** How often each payment was captured, by its id. */
async function capturesOf({ organization, service }: World): Promise<ReadonlyMap<string, number>> {
  const { organizationId } = organization;
  const found = await collectionsOf(service.db)
    .cardLedger.find({ organizationId, status: "captured" })
    .toArray();
  const captures = new Map<string, number>();
  for (const { transactionId } of found) captures.set(transactionId, (captures.get(transactionId) ?? 0) + 1);
  return captures;
}

/** A client that says a payment with one key until it is answered. */
async function insist({ api }: World, agent: TestAgent, fields: Fields) {
  const body = cardPayment(fields);
  return until("an answer that is no 503", async () => {
    const answer = await api.call("createPayment", { token: agent.key, body });
    if (answer.status === 503) return null;
    const { transaction } = await api.ok("createPayment", 200, { token: agent.key, body });
    return { status: answer.status, id: transaction.id };
  });
}

/** With an organization of its own. */
async function expectCommand(): Promise<void> {
  const world = await newWorld();
  const agent = await world.agent();
  const body = cardPayment({ idempotencyKey: randomUUID() });
  const first = await world.api.ok("createPayment", 201, { token: agent.key, body });
  await terminate(world);
  const { organizationId } = world.organization;
  const looking = { organizationId, repair: false, patienceMs: 1, onProgress: () => undefined };
  const { differences } = await reconcileOn(world.service.connections, world.service.env, looking);
  expect(differences.map(({ kind }) => kind)).to.deep.equal(["ledger_lost"]);
  const env = { ...cleanEnvironment(), ...world.service.env };
  const command = async (...options: readonly string[]) => {
    const args = ["admin", "restore-ledger", "--project", world.organization.projectId, ...options];
    const child = Child.node("server/main.ts", args, env);
    const { code } = await child.exit(REST_MS);
    return { code, text: child.stdout, said: child.stderr };
  };
  const planned = restoredText(await restore(world, false));
  expect(planned).to.match(/1 account, 0 archived agents without one, 0 caps\n {2}1\.00 USD spent/);
  const done = await command("--yes", "--json");
  expect(done.code, done.text + done.said).to.equal(0);
  expect(JSON.parse(done.text)).to.deep.include({ isDone: true, accounts: 1, differences: [] });
  const again = await world.api.ok("createPayment", 200, { token: agent.key, body });
  expect(again.transaction.id).to.equal(first.transaction.id);
  const refused = await command("--yes");
  expect(refused.code).to.equal(1);
  expect(refused.said).to.match(/runs\. Nothing was done\./);
}

describe("npm run admin -- restore-ledger", () => {
  /** Goes on beside the others, since both mostly wait until nothing is under way. */
  let commanded: Promise<void>;
  before(() => {
    commanded = expectCommand();
    // What it fails with is told by its own test.
    commanded.catch(() => undefined);
  });

  describe("of a project with payments of all kinds under caps", () => {
    const TEAM_CAP = 2_000;
    const PROJECT_CAP = 2_100;
    /** What has been spent or is held in the end: paid, held, slow, sent, unsent; twice; archived; paused. */
    const USED = 300 + 600 + 150 + 110 + 120 + 200 + 250 + 50;

    let world: World;
    let payer: TestAgent;
    let hasty: TestAgent;
    let archived: TestAgent;
    let paused: TestAgent;
    let outside: TestAgent;
    let held: { readonly transactionId: string; readonly approvalId: string };
    const kept = new Map<string, Kept>();
    const meanwhile: Record<string, string> = {};
    let plan: Restored;
    let restored: Restored;
    /** Payments under keys that clients say again and again while there is no ledger. */
    const insistent: { status: number; id: string }[] = [];

    before(async () => {
      world = await newWorld();
      await elevate(world);
      const budgets = new TestBudgets(world);
      const { projectId, teamId } = world.organization;
      const other = await budgets.newTeam();
      payer = await world.agent({ autoApprovalThresholdCents: 500 });
      hasty = await world.agent({ hourlyVelocityLimit: 2 });
      archived = await world.agent();
      paused = await world.agent();
      outside = await world.agent({ teamId: other });
      await budgets.setTeam({ capCents: TEAM_CAP });
      await budgets.setProject({ capCents: PROJECT_CAP });
      await arrange(world);
      const { token } = world;
      expect(await refusalOf(restore(world, true))).to.match(/runs\. Nothing was done/);
      await terminate(world);
      await forgetEnds(world);
      const body = { capCents: 1, agents: [], version: 1 };
      for (const [operation, request] of [
        ["createPayment", { token: payer.key, body: cardPayment() }],
        ["approveApproval", { token, id: held.approvalId }],
        ["cancelPayment", { token: payer.key, id: held.transactionId }],
        ["updateAgentBudgetPolicy", { token, id: payer.id, body: { version: 1, budgetCents: 1 } }],
        ["pauseAgent", { token, id: payer.id }],
        ["setTeamBudget", { token, id: teamId, body }],
        ["getProjectBudget", { token, id: projectId }],
      ] as const)
        meanwhile[operation] = await answerOf(world, operation, request);
      plan = await restore(world, false);
      meanwhile["createPayment after the plan"] = await answerOf(world, "createPayment", {
        token: payer.key,
        body: cardPayment(),
      });
      const clients = times(4, () => insist(world, outside, { amountCents: 1 }));
      restored = await restore(world, true);
      insistent.push(...(await Promise.all(clients)));
    });

    async function arrange(on: World): Promise<void> {
      const { api, token } = on;
      kept.set("paid", await payKept(payer, on, { amountCents: 300 }));
      kept.set("reversed", await payKept(payer, on, { amountCents: 200, merchant: "sandbox-reverse" }));
      kept.set("sent", await payKept(payer, on, { amountCents: 110 }));
      kept.set("unsent", await payKept(payer, on, { amountCents: 120 }));
      kept.set("denied", await payKept(payer, on, { amountCents: 9_000 }));
      held = await payer.hold({ amountCents: 600 });
      const refused = await payer.hold({ amountCents: 550 });
      await api.ok("denyApproval", 200, { token, id: refused.approvalId, body: { feedback: "No." } });
      for (const amountCents of [100, 100]) await hasty.pay({ amountCents });
      await archived.pay({ amountCents: 250 });
      await api.ok("archiveAgent", 200, { token, id: archived.id });
      await paused.pay({ amountCents: 50 });
      await api.ok("pauseAgent", 200, { token, id: paused.id });
      const { transactions } = collectionsOf(on.service.db);
      await until("the reversal came", () =>
        transactions.findOne({ _id: kept.get("reversed")?.id ?? "", status: "reversed" }),
      );
      kept.set("slow", await payKept(payer, on, { amountCents: 150, merchant: "sandbox-slow" }));
    }

    /** As if the server had died after the decision: of one payment the processor has a capture, of the other it has not. */
    async function forgetEnds({ service }: World): Promise<void> {
      const { cardLedger, transactions } = collectionsOf(service.db);
      const [sent, unsent] = [kept.get("sent")?.id ?? "", kept.get("unsent")?.id ?? ""];
      const undone = {
        status: "pending",
        revision: 1,
        "ledgerState.phase": "sending",
        "ledgerState.books": null,
      } as const;
      await transactions.updateMany({ _id: { $in: [sent, unsent] } }, { $set: undone });
      for (const record of await transactions.find({ _id: { $in: [sent, unsent] } }).toArray())
        await transactions.replaceOne({ _id: record._id }, proven(record));
      await cardLedger.deleteOne({ transactionId: unsent });
    }

    it("is refused while the ledger runs, and without it everything about money is 503", () => {
      for (const [operation, answer] of Object.entries(meanwhile))
        expect(answer, operation).to.equal("503 SERVICE_UNAVAILABLE");
    });

    it("without --yes says what it would start, and does nothing", () => {
      expect(plan).to.deep.include({ isDone: false, differences: null, lost: "terminated", caps: 2 });
      expect(restoredText(plan)).to.match(/Nothing was done\. With --yes/);
      expect(plan.totals.spentMc + plan.totals.reservedMc).to.equal(mcOf(USED));
    });

    it("leaves no difference, and an entry in the audit log", async () => {
      const { organizationId, projectId } = world.organization;
      expect(restored.differences, restoredText(restored)).to.deep.equal([]);
      expect(restored.open).to.include({ held: 1 });
      expect(restored.accounts + restored.droppedAccounts).to.equal(5);
      const entries = await entriesOf(world.service.db, organizationId);
      const own = entries.filter(({ action }) => action === "restoreLedger");
      expect(own.map(({ resource }) => resource)).to.deep.equal([{ type: "project", id: projectId }]);
    });

    it("answers keys of before with their payments, and other payloads with 422", async () => {
      for (const [what, { body, id }] of kept) {
        const again = await world.api.ok("createPayment", 200, { token: payer.key, body });
        expect(again.transaction.id, what).to.equal(id);
        const other = { token: payer.key, body: { ...body, amountCents: 7 } };
        expect(await answerOf(world, "createPayment", other), what).to.equal("422 IDEMPOTENCY_KEY_REUSED");
      }
    });

    it("pays once what was decided and not known to be paid, and what clients insisted on", async () => {
      const { transactions } = collectionsOf(world.service.db);
      for (const what of ["sent", "unsent", "slow"]) {
        const _id = kept.get(what)?.id ?? "";
        await until(`${what} is paid`, () => transactions.findOne({ _id, status: "approved" }));
      }
      const captures = await capturesOf(world);
      for (const [id, count] of captures) expect(count, id).to.equal(1);
      for (const what of ["sent", "unsent", "slow"])
        expect(captures.get(kept.get(what)?.id ?? "")).to.equal(1);
      expect(new Set(insistent.map(({ id }) => id)).size).to.equal(insistent.length);
      expect(insistent.map(({ status }) => status)).to.deep.equal([201, 201, 201, 201]);
    });

    it("holds the limits to the cent: hourly, of the team, of the project; a pause goes on", async () => {
      expect(await outcomeOf(hasty, 1)).to.equal("HOURLY_VELOCITY_EXCEEDED");
      const left = TEAM_CAP - USED;
      expect(await outcomeOf(payer, left + 1)).to.equal("TEAM_CAP_EXCEEDED");
      expect(await outcomeOf(payer, left)).to.equal("approved");
      const leftOfProject = PROJECT_CAP - TEAM_CAP - insistent.length;
      expect(await outcomeOf(outside, leftOfProject + 1)).to.equal("PROJECT_CAP_EXCEEDED");
      expect(await outcomeOf(outside, leftOfProject)).to.equal("approved");
      const asPaused = { token: paused.key, body: cardPayment({ amountCents: 1 }) };
      expect(await answerOf(world, "createPayment", asPaused)).to.not.match(/^20/);
      const { agent } = await world.api.ok("getAgent", 200, { token: world.token, id: paused.id });
      expect(agent.state).to.equal("paused");
    });

    it("lets a person approve what was on hold, which is paid once; nothing differs in the end", async () => {
      await world.api.ok("approveApproval", 200, { token: world.token, id: held.approvalId });
      const { transactions } = collectionsOf(world.service.db);
      const _id = held.transactionId;
      await until("what was held is paid", () => transactions.findOne({ _id, status: "approved" }));
      expect((await capturesOf(world)).get(_id)).to.equal(1);
      const { organizationId } = world.organization;
      const options = { organizationId, repair: false, patienceMs: LONG_MS, onProgress: () => undefined };
      const result = await reconcileOn(world.service.connections, world.service.env, options);
      expect(result.differences, reconciledText(result)).to.deep.equal([]);
    });
  });

  describe("as a command", () => {
    it("does with --yes what it says without, and then refuses", () => commanded);
  });
});
