import { expect } from "chai";
import { randomUUID } from "node:crypto";
import { newWorld, type TestAgent, type World } from "./support/world.ts";

const RECIPIENT = "0x70997970C51812dc3A010C7d01b50e0d17dc79C8";

const walletPayment = (fields: Readonly<Record<string, unknown>> = {}) => ({
  rail: "wallet",
  amountCents: 100,
  recipient: RECIPIENT,
  purpose: "a test",
  idempotencyKey: randomUUID(),
  ...fields,
});

const fund = (world: World, agent: TestAgent, amountCents: number) =>
  world.api.ok("fundAgentInSandbox", 200, { token: world.token, id: agent.id, body: { amountCents } });

describe("wallet payments", () => {
  let world: World;
  before(async () => {
    world = await newWorld();
  });

  it("a payment from a funded wallet is approved once it is on chain, with its hash", async () => {
    const agent = await world.agent();
    const funded = await fund(world, agent, 5_000);
    expect(funded.balanceCents).to.equal(5_000);
    const { transaction } = await world.api.ok("createPayment", 201, {
      token: agent.key,
      body: walletPayment(),
    });
    expect(transaction).to.include({ status: "approved", rail: "wallet", chainCaip2: "eip155:31337" });
    expect(transaction.onChainTxHash).to.match(/^0x[0-9a-f]{64}$/);
  });
});
