import { expect } from "chai";
import { unitsOf } from "../../src/chain/units.ts";
import { GAS } from "../../src/chain/contracts.ts";
import { type OwnAnvil, startOwnAnvil } from "../support/own-anvil.ts";
import { deployOddToken, type OddToken } from "./odd-token.ts";
import {
  ended,
  type Instance,
  newPayment,
  openScene,
  randomAddress,
  type Scene,
  type TestAgent,
} from "./support.ts";

const FEES_UP_TO = 1_000n * 10n ** 9n;

describe("a token other than expected", () => {
  let anvil: OwnAnvil;
  let scene: Scene;
  let token: OddToken;
  let instance: Instance;
  let agent: TestAgent;
  before(async () => {
    anvil = await startOwnAnvil();
    scene = await openScene(anvil.url);
  });
  beforeEach(async () => {
    token = await deployOddToken(scene);
    instance = scene.open({ feesUpTo: FEES_UP_TO, token: token.address });
    agent = await scene.agent();
    await token.mint(agent.wallet, unitsOf(1_000, 6));
  });
  after(async () => {
    await scene.close();
    await anvil.kill();
  });

  const pay = async (recipient = randomAddress()) => {
    const payment = newPayment(100, recipient);
    const outcome = await instance.wallets.rail.send(agent.profile, payment);
    return outcome.status === "pending" ? ended(instance, agent, payment) : outcome;
  };
  const spends = () => scene.transactions.find({ wallet: agent.wallet, amountCents: 100 }).toArray();
  const reverts = () => instance.troubles.filter((each) => each.startsWith("the chain reverted"));

  it("that needs more gas than usual is paid with at the first attempt", async () => {
    await token.setGas(260_000n, 0n);
    expect(await pay()).to.include({ status: "settled" });
    expect(await spends()).to.have.length(1);
  });

  it("whose gas was estimated too low is paid at the second attempt; the log says out of gas", async () => {
    await token.setGas(0n, 400_000n);
    expect(await pay()).to.include({ status: "settled" });
    expect(await spends()).to.have.length(2);
    expect(reverts()).to.have.length(1);
    expect(reverts()[0])
      .to.include('"cause":"out of gas"')
      .and.include(`"gas":${String(GAS.spend)}`);
  });

  it("that needs more gas than is offered fails the payment after two attempts, with that reason", async () => {
    await token.setGas(0n, 4_000_000n);
    const outcome = await pay();
    expect(outcome).to.include({ status: "failed", code: "RAIL_UNAVAILABLE" });
    expect(outcome).to.have.property("reason").that.includes("out of gas");
    expect(await spends()).to.have.length(2);
  });

  it("that says so beforehand fails the payment without a transaction", async () => {
    await token.setGas(4_000_000n, 0n);
    const before = await scene.nonces();
    const outcome = await pay();
    expect(outcome).to.include({ status: "failed", code: "RAIL_UNAVAILABLE" });
    expect(outcome).to.have.property("reason").that.includes("more gas");
    expect(await scene.nonces()).to.deep.equal(before);
  });

  it("that refuses a recipient: RECIPIENT_REFUSED in the token's words, and nothing is signed", async () => {
    const [blocked, unanswered] = [randomAddress(), randomAddress()];
    await token.setBlocked(blocked, true);
    await token.setAnsweredFalse(unanswered);
    const before = await scene.nonces();
    expect(await pay(blocked)).to.deep.equal({
      status: "failed",
      code: "RECIPIENT_REFUSED",
      reason: 'The token refuses this recipient: "Blacklistable: account is blacklisted"',
    });
    expect(await pay(unanswered)).to.deep.equal({
      status: "failed",
      code: "RECIPIENT_REFUSED",
      reason: "The token refuses this recipient.",
    });
    expect(await scene.nonces()).to.deep.equal(before);
    expect(await pay()).to.include({ status: "settled" });
  });

  it("that is paused or blocks the wallet is no fault of the recipient, and costs no gas", async () => {
    const before = await scene.nonces();
    await token.setPaused(true);
    const paused = await pay();
    await token.setPaused(false);
    await token.setBlocked(agent.wallet, true);
    const blocked = await pay();
    for (const [outcome, words] of [
      [paused, "Pausable: paused"],
      [blocked, "blacklisted"],
    ] as const) {
      expect(outcome).to.include({ status: "failed", code: "RAIL_UNAVAILABLE" });
      expect(outcome).to.have.property("reason").that.includes(words);
    }
    expect(await scene.nonces()).to.deep.equal(before);
  });

  it("that refuses the recipient only once the payment is sent fails it with the same code", async () => {
    expect(await pay()).to.include({ status: "settled" });
    const payment = newPayment(100);
    await anvil.call("evm_setAutomine", [false]);
    const sent = await instance.wallets.rail.send(agent.profile, payment);
    expect(sent.status).to.equal("pending");
    await token.beginBlocking(payment.request.recipient);
    await anvil.call("evm_mine");
    await anvil.call("evm_setAutomine", [true]);
    const outcome = await ended(instance, agent, payment);
    expect(outcome).to.include({ status: "failed", code: "RECIPIENT_REFUSED" });
    expect(reverts()[0]).to.include("account is blacklisted");
  });
});
