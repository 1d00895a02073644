import { expect } from "chai";
import { Load, replay, type Sent } from "../support/load.ts";
import type { ServiceProcess } from "../../support/process.ts";
import { Stage } from "../support/stage.ts";

/** The actor does itself what is not confirmed 10 s after it was decided; the rest is the work. */
const SWEPT_MS = 120_000;
const SOON_MS = 120_000;

/** So late the machine may be. */
const EXPIRY_LATE_MS = 20_000;

interface HeldPayment {
  readonly approvalId: string;
  readonly expiresAt: number;
}

type Agent = Awaited<ReturnType<Stage["tenant"]["createAgent"]>>;

/** Payments, approvals and settlements, at hand when a service is killed twice: alone, and with all its engines. */
export function paymentsAtHand() {
  let stage: Stage;
  let load: Load;
  let sent: readonly Sent[];

  const createAgent = (fields: Readonly<Record<string, unknown>> = {}): Promise<Agent> =>
    stage.tenant.createAgent({ autoApprovalThresholdCents: 1_000, ...fields });

  /** Clients in the midst of paying, two agents of whom one runs out of its budget. */
  async function pay(name: string): Promise<void> {
    const agents = await Promise.all([
      createAgent({ budgetCents: 100_000 }),
      createAgent({ budgetCents: 2_000 }),
    ]);
    const apiKeys = agents.map(({ apiKey }) => apiKey);
    load = new Load({ apiKeys, apis: [stage.tenant.api], clients: 6, name, comeAgain: true });
    await load.untilPaid(30);
  }

  /** Once the service is back. */
  async function meet(): Promise<void> {
    sent = await load.stop();
    await stage.meet();
  }

  async function expectReplaysToSettle(): Promise<void> {
    expect(sent.filter(({ status }) => status === null)).to.have.lengthOf(6);
    expect(sent.filter(({ status }) => status !== null && status !== 201)).to.deep.equal([]);
    await replay(stage.tenant.api, sent);
  }

  async function hold({ apiKey }: Agent, amountCents: number): Promise<HeldPayment> {
    const { approval } = await stage.tenant.api.pay(apiKey, { amountCents });
    if (approval === null) throw new Error("the payment was not held");
    return { approvalId: approval.id, expiresAt: Date.parse(approval.expiresAt) };
  }

  let holding: Agent;
  let heldForLong: HeldPayment;

  let agent: Agent;
  let onHold: string;

  /** The next approval window is one that no restart outlasts. */
  async function beginAlone(service: ServiceProcess): Promise<void> {
    stage = await Stage.on(service);
    holding = await createAgent();
    heldForLong = await hold(holding, 2_000);
    agent = await createAgent();
    const { apiKey } = agent;
    const { tenant } = stage;
    await stage.arm(
      "before-rail",
      "after-rail",
      "after-projection",
      "before-approval-starts",
      "before-approval-is-told",
    );
    const { approval } = await tenant.api.pay(apiKey, {
      merchant: "before-approval-is-told",
      amountCents: 3_000,
    });
    void tenant.approve(approval?.id ?? "").catch(() => null);
    await stage.payAndHold(apiKey, "before-rail", 100);
    await stage.payAndHold(apiKey, "after-rail", 200);
    await stage.payAndHold(apiKey, "after-projection", 400);
    onHold = (await stage.payAndHold(apiKey, "before-approval-starts", 4_000)).transactionId;
    await stage.heldAt("before-approval-is-told");
  }

  const testsAlone = () =>
    describe("with payments", () => {
      it("between any two steps of a payment or an approval: the actor finishes each in time, once", async () => {
        const { tenant } = stage;
        await tenant.expectTotals(agent.agent.id, { spentCents: 3_700, reservedCents: 4_000 }, SWEPT_MS);
        const approvalId = await tenant.approvalOf(agent.apiKey, onHold, SWEPT_MS);
        expect(await tenant.approve(approvalId)).to.equal("approved");
        await tenant.expectTotals(agent.agent.id, { spentCents: 7_700, reservedCents: 0 }, SOON_MS);
      });

      it("under load: a replay finds what was answered, makes what was not, and the books agree", async () => {
        await expectReplaysToSettle();
        await stage.tenant.expectBooksToAgree(SWEPT_MS);
      });
    });

  let paying: Agent;
  let following: Agent;
  let lost: { readonly beforeRail: string; readonly afterRail: string };
  let heldForShort: HeldPayment;

  /** The next approval window is one that ends about when the service is back. */
  async function beginTogether(): Promise<void> {
    [paying, following] = await Promise.all([createAgent(), createAgent()]);
    const { tenant } = stage;
    await stage.arm("before-rail", "after-rail", "after-approved-rail");
    const executing = await tenant.api.pay(following.apiKey, {
      merchant: "after-approved-rail",
      amountCents: 1_001,
    });
    void tenant.approve(executing.approval?.id ?? "").catch(() => null);
    await stage.heldAt("after-approved-rail");
    await tenant.api.pay(following.apiKey, { merchant: "sandbox-slow", amountCents: 10 });
    await tenant.api.pay(following.apiKey, { merchant: "sandbox-reverse", amountCents: 20 });
    lost = {
      beforeRail: (await stage.payAndHold(paying.apiKey, "before-rail", 100)).transactionId,
      afterRail: (await stage.payAndHold(paying.apiKey, "after-rail", 200)).transactionId,
    };
    heldForShort = await hold(holding, 3_000);
  }

  const testsTogether = () =>
    describe("with payments", () => {
      it("while the rail is called: the lost payment is made once, and the next not confused with it", async () => {
        const { tenant } = stage;
        const [next, again] = await Promise.all([
          tenant.api.pay(paying.apiKey, { merchant: "the next one", amountCents: 300 }),
          stage.payAgain(paying.apiKey, "before-rail", 100),
        ]);
        expect(next.transaction).to.include({
          merchant: "the next one",
          amountCents: 300,
          status: "approved",
        });
        expect(next.transaction.id).not.to.be.oneOf([lost.beforeRail, lost.afterRail]);
        // 200: it was decided before the kill, durably, and not anew.
        expect(again).to.include({ status: 200, transactionId: lost.beforeRail });

        await tenant.expectTotals(paying.agent.id, { spentCents: 600, reservedCents: 0 }, SWEPT_MS);
        const late = await stage.payAgain(paying.apiKey, "after-rail", 200);
        expect(late).to.include({ status: 200, transactionId: lost.afterRail });
      });

      it("with payments on hold: one is still approved, the other expires on time", async () => {
        const { tenant } = stage;
        const { expiresAt } = heldForShort;
        const { id } = holding.agent;
        // On a busy machine the answer may come before the payment is made; the totals say that it was.
        expect(await tenant.approve(heldForLong.approvalId)).to.be.oneOf(["approved", "executing"]);
        const onTime = Math.max(expiresAt, Date.now()) + EXPIRY_LATE_MS - Date.now();
        await tenant.expectTotals(id, { spentCents: 2_000, reservedCents: 0 }, onTime);
        expect(Date.now()).to.be.at.least(expiresAt);
      });

      it("under load: a replay finds what was answered, makes what was not", async () => {
        await expectReplaysToSettle();
      });

      it("while approved and other payments settle: each ends as it should, and the books agree", async () => {
        const { tenant } = stage;
        await tenant.expectTotals(following.agent.id, { spentCents: 1_011, reservedCents: 0 }, SWEPT_MS);
        await tenant.expectBooksToAgree(SWEPT_MS);
      });
    });

  return { beginAlone, beginTogether, meet, meetAgain: () => stage.meet(), pay, testsAlone, testsTogether };
}
