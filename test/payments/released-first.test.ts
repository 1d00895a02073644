import { expect } from "chai";
import type { Payment } from "../../src/domain/ledger/payment.ts";
import { startTestService, type TestService } from "../support/service.ts";
import { outcomeOf, TestBudgets } from "../support/budgets.ts";
import { cardPayment, newWorld, type TestAgent, until, type World } from "../support/world.ts";

const CAP = 1_000;
/** A ledger does itself what no server has done so long after it was decided. */
const SWEEP_SECONDS = 1;
const SWEPT_MS = 120_000;

describe("effects of payments, in their order", () => {
  let service: TestService;
  let world: World;
  let budgets: TestBudgets;
  /** Called when the end of a payment is about to be written down for the first time. */
  let onEnd: ((payment: Payment) => Promise<void>) | null = null;
  /** Called when a card payment is about to be sent. */
  let onSend: (() => Promise<void>) | null = null;
  before(async () => {
    service = await startTestService({
      sweepAfterSeconds: SWEEP_SECONDS,
      decorateEffects: (plain) => ({
        ...plain,
        projections: {
          endOf: (transactionId) => plain.projections.endOf(transactionId),
          paymentOf: (transactionId) => plain.projections.paymentOf(transactionId),
          closedAgent: (...of) => plain.projections.closedAgent(...of),
          textsOf: (transactionId) => plain.projections.textsOf(transactionId),
          writeAgent: (summary) => plain.projections.writeAgent(summary),
          writeAccount: (summary) => plain.projections.writeAccount(summary),
          writeCaps: (projectId, caps) => plain.projections.writeCaps(projectId, caps),
          async writePayment(profile, payment) {
            const noticed = onEnd;
            if (noticed !== null && ["failed", "reversed"].includes(payment.status)) {
              onEnd = null;
              await noticed(payment);
            }
            await plain.projections.writePayment(profile, payment);
          },
        },
        rails: {
          ...plain.rails,
          card: {
            capabilities: plain.rails.card.capabilities,
            network: plain.rails.card.network,
            async send(profile, payment, permit) {
              await onSend?.();
              return plain.rails.card.send(profile, payment, permit);
            },
            fence: (places) => plain.rails.card.fence(places),
            query: (payment) => plain.rails.card.query(payment),
            settle: (...asked) => plain.rails.card.settle(...asked),
            withhold: (profile, payment) => plain.rails.card.withhold(profile, payment),
            balance: (profile) => plain.rails.card.balance(profile),
            detach: (profile) => plain.rails.card.detach(profile),
          },
        },
      }),
    });
  });
  after(() => service?.stop());
  beforeEach(async () => {
    world = await newWorld(service);
    budgets = new TestBudgets(world);
    onEnd = null;
    onSend = null;
  });

  interface Row {
    readonly name: string;
    readonly merchant: string;
    /** What the payer's threshold is, and what is done after the payment. */
    readonly autoApprovalThresholdCents?: number;
    readonly unansweredCalls?: number;
    readonly afterwards?: (payer: TestAgent, approvalId: string | null) => Promise<unknown>;
  }

  const approve = (_payer: TestAgent, id: string | null) =>
    world.api.ok("approveApproval", 200, { token: world.token, id: id ?? "none" });
  const lowerTheCapAndApprove = async (payer: TestAgent, id: string | null) => {
    await budgets.setTeam({ capCents: CAP - 1 });
    await approve(payer, id);
  };

  const rows: readonly Row[] = [
    { name: "a declined card", merchant: "sandbox-decline" },
    { name: "a reversal that is followed", merchant: "sandbox-reverse" },
    {
      name: "an approved payment that its card declines",
      merchant: "sandbox-decline",
      autoApprovalThresholdCents: 0,
      afterwards: approve,
    },
    {
      name: "an approved payment that the caps take no more",
      merchant: "shop",
      autoApprovalThresholdCents: 0,
      afterwards: lowerTheCapAndApprove,
    },
    {
      name: "a declined card, found by the ledger that sees to what its server left",
      merchant: "sandbox-decline",
      unansweredCalls: 2,
    },
  ];
  describe("what is given back under caps is there for others before anyone can read that it ended", () => {
    for (const {
      autoApprovalThresholdCents = null,
      merchant,
      name,
      afterwards,
      unansweredCalls = 0,
    } of rows) {
      it(name, async () => {
        const [payer, other] = [await world.agent({ autoApprovalThresholdCents }), await world.agent()];
        await budgets.setTeam({ capCents: CAP });
        await budgets.setProject({ capCents: CAP });
        let found: string | null = null;
        onEnd = async () => {
          found = await outcomeOf(other, CAP - 1);
        };
        let unanswered = unansweredCalls;
        onSend = () => {
          unanswered -= 1;
          return unanswered >= 0 ? Promise.reject(new Error("no answer")) : Promise.resolve();
        };
        const { approval } = await payer.pay({ amountCents: CAP, merchant });
        await afterwards?.(payer, approval?.id ?? null);
        expect(await until("its end is about to be read", () => Promise.resolve(found), SWEPT_MS)).to.equal(
          "approved",
        );
        await until("its end is read, and the money is back once", async () => {
          const { usage } = await budgets.team();
          return usage.spentCents === CAP - 1 && usage.reservedCents === 0 ? true : null;
        });
      });
    }
  });

  it("a payment that the ledger executes meanwhile is answered 201: this request made it, once", async () => {
    const agent = await world.agent();
    const { id, key: token } = agent;
    const transactions = async () =>
      (await world.api.ok("listTransactions", 200, { token: world.token, query: { agent_id: id } }))
        .transactions;
    onSend = async () => {
      onSend = null;
      await until("the ledger has executed it", async () => {
        const [swept] = await transactions();
        return swept?.status === "approved" ? true : null;
      });
      throw new Error("no answer");
    };
    const answer = await world.api.call("createPayment", { token, body: cardPayment() });
    expect(answer.status).to.equal(201);
    expect((await transactions()).map(({ status }) => status)).to.deep.equal(["approved"]);
  });
});
