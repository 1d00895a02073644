import { expect } from "chai";
import { outcomeOf, TestBudgets } from "../support/budgets.ts";
import {
  expectChainAgrees,
  finalPayment,
  freshRecipient,
  fundedAgent,
  payFromWallet,
  walletPayment,
} from "../support/chain.ts";
import { newWorld, type TestAgent, type World } from "../support/world.ts";

const CAP = 300;

async function payWallet(world: World, agent: TestAgent, amountCents: number): Promise<string> {
  const { transaction } = await payFromWallet(world, agent, walletPayment(freshRecipient(), { amountCents }));
  if (transaction.status !== "pending") return transaction.denialCode ?? transaction.status;
  const final = (await finalPayment(world, agent, transaction.id)).transaction;
  return final.denialCode ?? final.status;
}

describe("caps over wallet payments", () => {
  it("both rails draw on the same cap, to the cent, and what it refuses never reaches the chain", async () => {
    const world = await newWorld();
    const budgets = new TestBudgets(world);
    const wallet = await fundedAgent(world, 1_000);
    const card = await world.agent();
    await budgets.setProject({ capCents: CAP });
    expect(await payWallet(world, wallet, 100)).to.equal("approved");
    expect(await outcomeOf(card, 100)).to.equal("approved");
    expect(await payWallet(world, wallet, 101)).to.equal("PROJECT_CAP_EXCEEDED");
    expect(await payWallet(world, wallet, 100)).to.equal("approved");
    expect(await outcomeOf(card, 1)).to.equal("PROJECT_CAP_EXCEEDED");
    expect(await expectChainAgrees(world, wallet, 1_000)).to.have.lengthOf(2);
    expect((await budgets.project()).usage).to.deep.equal({
      spentCents: CAP,
      reservedCents: 0,
      remainingCents: 0,
      increases: [],
    });
  });
});
