import { expect } from "chai";
import { startTestService, type TestService } from "../support/service.ts";
import { outcomeOf, TestBudgets } from "../support/budgets.ts";
import {
  expectChainAgrees,
  finalPayment,
  freshRecipient,
  fundedAgent,
  payFromWallet,
  walletPayment,
} from "../support/chain.ts";
import { newWorld, type TestAgent, tally, times, until, type World } from "../support/world.ts";

const CAP = 300;

describe("caps over wallet payments", () => {
  let world: World;
  let budgets: TestBudgets;
  beforeEach(async () => {
    world = await newWorld();
    budgets = new TestBudgets(world);
  });

  async function payWallet(agent: TestAgent, amountCents: number): Promise<string> {
    const { transaction } = await payFromWallet(
      world,
      agent,
      walletPayment(freshRecipient(), { amountCents }),
    );
    if (transaction.status !== "pending") return transaction.denialCode ?? transaction.status;
    const final = (await finalPayment(world, agent, transaction.id)).transaction;
    return final.denialCode ?? final.status;
  }

  it("both rails draw on the same cap, to the cent, and what it refuses never reaches the chain", async () => {
    const wallet = await fundedAgent(world, 1_000);
    const card = await world.agent();
    await budgets.setProject({ capCents: CAP });
    expect(await payWallet(wallet, 100)).to.equal("approved");
    expect(await outcomeOf(card, 100)).to.equal("approved");
    expect(await payWallet(wallet, 101)).to.equal("PROJECT_CAP_EXCEEDED");
    expect(await payWallet(wallet, 100)).to.equal("approved");
    expect(await outcomeOf(card, 1)).to.equal("PROJECT_CAP_EXCEEDED");
    expect(await expectChainAgrees(world, wallet, 1_000)).to.have.lengthOf(2);
    expect((await budgets.project()).usage).to.deep.equal({
      spentCents: CAP,
      reservedCents: 0,
      remainingCents: 0,
    });
  });

  it("a wallet without the money fails, and gives back at every level for another agent", async () => {
    const poor = await world.agent();
    const card = await world.agent();
    await budgets.setTeam({ capCents: CAP });
    await budgets.setProject({ capCents: CAP });
    expect(await payWallet(poor, CAP)).to.equal("INSUFFICIENT_FUNDS");
    expect(await outcomeOf(card, CAP)).to.equal("approved");
  });

  it("12 wallet payments of 3 agents at once under a cap for three: exactly three are on chain", async () => {
    const agents = await Promise.all(times(3, () => fundedAgent(world, 1_000)));
    await budgets.setTeam({ capCents: CAP });
    const outcomes = await Promise.all(agents.flatMap((agent) => times(4, () => payWallet(agent, 100))));
    expect(tally(outcomes)).to.deep.equal({ approved: 3, TEAM_CAP_EXCEEDED: 9 });
    const onChain = await Promise.all(agents.map((agent) => expectChainAgrees(world, agent, 1_000)));
    expect(onChain.flat()).to.have.lengthOf(3);
  });
});

describe("caps and the end of an approval's window", () => {
  const WINDOW_SECONDS = 2;
  let service: TestService;
  before(async () => {
    service = await startTestService({ approvalWindowSeconds: WINDOW_SECONDS });
  });
  after(() => service?.stop());

  it("what expires is free for another agent as soon as a caller can read that it has expired", async () => {
    const world = await newWorld(service);
    const budgets = new TestBudgets(world);
    const [one, other] = [await world.agent({ autoApprovalThresholdCents: 0 }), await world.agent()];
    await budgets.setTeam({ capCents: CAP });
    await budgets.setProject({ capCents: CAP });
    const { transactionId } = await one.hold({ amountCents: CAP });
    await until("it has expired", async () => {
      const { transaction } = await world.api.ok("getPayment", 200, { token: one.key, id: transactionId });
      return transaction.status === "expired" ? true : null;
    });
    expect(await outcomeOf(other, CAP)).to.equal("approved");
  });
});
