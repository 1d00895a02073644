import { expect } from "chai";
import { atOnce, expectDoneOnce } from "../support/at-once.ts";
import {
  expectChainAgrees,
  finalPayment,
  freshRecipient,
  fundedAgent,
  payFromWallet,
  walletPayment,
} from "../support/chain.ts";
import { newWorld, tally, type TestAgent, times, type World } from "../support/world.ts";

/** A hundred payments on a small machine. */
const FINAL_MS = 120_000;

describe("wallet payments at the same time", () => {
  let world: World;
  before(async () => {
    world = await newWorld();
  });

  /** What became of so many payments of 1.00 that were made at once, each with a key of its own. */
  async function outcomes(agent: TestAgent, count: number): Promise<Readonly<Record<string, number>>> {
    const to = freshRecipient();
    const made = await Promise.all(times(count, () => payFromWallet(world, agent, walletPayment(to))));
    const done = await Promise.all(
      made.map(({ transaction }) => finalPayment(world, agent, transaction.id, FINAL_MS)),
    );
    return tally(
      done.map(({ transaction: { denialCode, status } }) => [status, denialCode].filter(Boolean).join(" ")),
    );
  }

  it("100 payments of 1.00 on a budget of 50.00: exactly 50 go through, and only those on chain", async () => {
    const agent = await fundedAgent(world, 100_000, { budgetCents: 5_000 });
    expect(await outcomes(agent, 100)).to.deep.equal({ approved: 50, "denied BUDGET_EXCEEDED": 50 });
    expect(await expectChainAgrees(world, agent, 100_000)).to.have.lengthOf(50);
  });

  it("of 16 payments of 1.00 from a wallet of 10.00, 10 are paid, the rest INSUFFICIENT_FUNDS", async () => {
    const agent = await fundedAgent(world, 1_000);
    expect(await outcomes(agent, 16)).to.deep.equal({ approved: 10, "failed INSUFFICIENT_FUNDS": 6 });
    expect(await expectChainAgrees(world, agent, 1_000)).to.have.lengthOf(10);
  });

  it("ten requests with one idempotency key are one payment and one transfer, one of them 201", async () => {
    const agent = await fundedAgent(world, 1_000);
    const body = walletPayment(freshRecipient());
    const answers = await atOnce(10, () => world.api.call("createPayment", { token: agent.key, body }));
    expectDoneOnce(answers, "200");
    expect(await expectChainAgrees(world, agent, 1_000)).to.have.lengthOf(1);
  });

  it("agents that pay at once do not get in each other's way", async () => {
    const agents = await Promise.all(times(8, () => fundedAgent(world, 200)));
    const paid = await Promise.all(agents.map((agent) => outcomes(agent, 2)));
    expect(paid).to.deep.equal(agents.map(() => ({ approved: 2 })));
    for (const agent of agents) {
      expect(await expectChainAgrees(world, agent, 200)).to.have.lengthOf(2);
    }
  });
});
