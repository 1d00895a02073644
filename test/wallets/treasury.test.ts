import { TEST_ACCESS_PROOFS } from "../support/access-proofs.ts";
import { randomUUID } from "node:crypto";
import { expect } from "chai";
import { type Address, getAddress } from "viem";
import { DepositWatch } from "../../src/chain/deposits.ts";
import { ChainRpc } from "../../src/chain/rpc.ts";
import { sandboxConfig } from "../../src/chain/sandbox.ts";
import { COLLECTIONS, type EventDocument, type WalletRecord } from "../../src/store/documents.ts";
import { treasuryDeposits } from "../../src/rails/wallet/deposits.ts";
import { EventJournal } from "../../src/store/journal.ts";
import { isForNow } from "../support/api.ts";
import { ChainView } from "../support/chain.ts";
import { organizationByCommand, sharedService } from "../support/service.ts";
import { elevate, organizationKey, times, until, type World, worldOf } from "../support/world.ts";

const ULID = /^pay_[0-9A-HJKMNP-TV-Z]{26}$/;

const sign = () => Promise.reject(new Error("nothing is signed here"));

interface Recorded {
  readonly _id: string;
  readonly treasury?: WalletRecord | null;
}
const treasuryOf = async ({ organization, service }: World): Promise<WalletRecord> => {
  const organizations = service.db.collection<Recorded>("organizations");
  return until("the treasury is recorded", async () => {
    const found = await organizations.findOne({ _id: organization.organizationId });
    return found?.treasury ?? null;
  });
};
const eventsOf = ({ organization, service }: World, type: EventDocument["type"]) =>
  service.db
    .collection<EventDocument>(COLLECTIONS.events)
    .find({ organizationId: organization.organizationId, type })
    .toArray();
const deposit = (of: World, amountCents: number) =>
  of.api.call("depositToTreasury", { token: of.token, body: { amountCents } });

/** The same chain and token as the service has, which follow from its key's address. */
function watchOf({ service: { db, env } }: World, spender: Address): DepositWatch {
  const config = sandboxConfig(env["EVM_RPC_URL"] ?? "", { address: spender, sign }, 500);
  const all = async (): Promise<ReadonlyMap<Address, string>> => {
    const recorded = await db
      .collection<Recorded>("organizations")
      .find({ "treasury.address": { $exists: true } })
      .toArray();
    return new Map(recorded.map(({ _id, treasury }) => [getAddress(treasury?.address ?? ""), _id] as const));
  };
  return new DepositWatch({
    db,
    config,
    rpc: new ChainRpc(config),
    beginsAt: "the first block",
    recipients: treasuryDeposits({ all }, new EventJournal(db, TEST_ACCESS_PROOFS)),
    clock: () => new Date(),
  });
}

/** A world whose organization has been provisioned as in production. */
async function provisionedWorld(): Promise<World> {
  const service = await sharedService();
  return worldOf(service, await organizationByCommand(service));
}

describe("the treasury and the subscription in the sandbox", () => {
  let world: World;
  let own: World;
  before(async () => {
    [world, own] = await Promise.all([provisionedWorld(), provisionedWorld()]);
  });

  it("every organization has a treasury of its own from its provisioning on, and for good", async () => {
    const treasuries = await Promise.all([world, own].map(treasuryOf));
    expect(new Set(treasuries.map(({ address }) => address)).size).to.equal(2);
    const agent = await world.agent();
    const { address: _own, ...kind } = await new ChainView(world).wallet(agent);
    for (const { address: _its, ...treasury } of treasuries) expect(treasury).to.deep.equal(kind);
    await Promise.all(times(2, () => deposit(world, 1)));
    expect(await treasuryOf(world)).to.deep.equal(treasuries[0]);
    const { organization } = await world.api.ok("getOrganization", 200, { token: world.token });
    expect(organization.treasury?.address, "as its people see it").to.equal(treasuries[0]?.address);
  });

  it("a deposit is in the balance when it is answered, and has one event", async () => {
    const agent = await own.agent();
    const chain = new ChainView(own);
    const { address, spender } = await treasuryOf(own);
    let held = 0;
    const hashes: string[] = [];
    for (const amountCents of [1, 99_999_999]) {
      const answer = await deposit(own, amountCents);
      held = await until("it arrives", async () => {
        const cents = await chain.cents(agent, getAddress(address));
        return cents < held + amountCents ? null : cents;
      });
      // On a busy machine it may be answered that it is not known yet.
      if (isForNow(answer)) continue;
      expect(answer.status, JSON.stringify(answer.body)).to.equal(200);
      expect(answer.body).to.have.property("balanceCents", held);
      expect(answer.body).to.have.nested.property("treasury.address", address);
      const hash = Object.entries(answer.body ?? {}).find(([name]) => name === "onChainTxHash")?.[1];
      expect(await chain.succeeded(hash)).to.equal(true);
      hashes.push(String(hash));
    }
    expect(held).to.equal(100_000_000);
    const watch = watchOf(own, getAddress(spender));
    const deposited = await until("they are told", async () => {
      while ((await watch.step()).isBehind);
      const events = await eventsOf(own, "funding.deposited");
      return events.length < 2 ? null : events;
    });
    const deposits = deposited.map(({ data }) => data.deposit);
    expect(deposits.map((each) => each?.amountCents)).to.have.members([1, 99_999_999]);
    expect(deposits.map((each) => each?.onChainTxHash)).to.include.members(hashes);
    expect(new Set(deposits.map((each) => each?.address))).to.deep.equal(new Set([address]));
  });

  it("a person moves its money to an agent's wallet, each request once, and one event tells", async () => {
    await elevate(own);
    const agent = await own.agent();
    const { address } = await treasuryOf(own);
    const chain = new ChainView(own);
    await until("there is money", async () =>
      (await chain.cents(agent, getAddress(address))) > 700 ? true : null,
    );
    const body = { amountCents: 700, idempotencyKey: randomUUID() };
    const request = { token: own.token, id: agent.id, body };
    const { funding: first } = await own.api.ok("fundAgent", 201, request);
    const settled = await until("it is settled", async () => {
      const { funding } = await own.api.ok("fundAgent", 200, request);
      return funding.status === "settled" ? funding : null;
    });
    expect(settled).to.include({ id: first.id, agentId: agent.id, amountCents: 700, currency: "USD" });
    await own.api.refused("fundAgent", 422, "IDEMPOTENCY_KEY_REUSED", {
      ...request,
      body: { ...body, amountCents: 701 },
    });
    const { wallet } = await own.api.ok("getAgentWallet", 200, { token: own.token, id: agent.id });
    expect(wallet).to.include({ balanceCents: 700, pocketCents: 0 });
    const events = await eventsOf(own, "wallet.funded");
    expect(events.map(({ agentId, data }) => [agentId, data.funding?.onChainTxHash])).to.deep.equal([
      [agent.id, settled.onChainTxHash],
    ]);
    const tooMuch = { amountCents: 1_000_000_000 };
    const { funding: refused } = await own.api.ok("fundAgent", 201, { ...request, body: tooMuch });
    expect(refused).to.include({ status: "failed", failureCode: "INSUFFICIENT_FUNDS" });
  });

  it("keeps a wallet at the target of its policy, which a person sets and no key", async () => {
    await elevate(own);
    const agent = await own.agent();
    const { token } = own;
    const { version, walletTargetCents } = await own.api.ok("getAgentBudgetPolicy", 200, {
      token,
      id: agent.id,
    });
    expect(walletTargetCents).to.equal(null);
    const body = { version, walletTargetCents: 900 };
    const { token: key } = await organizationKey(own, { scopes: ["agents:write"] });
    await own.api.refused("updateAgentBudgetPolicy", 403, "SESSION_REQUIRED", {
      token: key,
      id: agent.id,
      body,
    });
    const changed = await own.api.ok("updateAgentBudgetPolicy", 200, { token, id: agent.id, body });
    expect(changed).to.include({ walletTargetCents: 900, version: version + 1 });
    const chain = new ChainView(own);
    const address = await chain.walletAddress(agent);
    await until("the wallet is funded", async () =>
      (await chain.cents(agent, address)) === 900 ? true : null,
    );
    const { entries } = await own.api.ok("listAuditLog", 200, { token, query: { action: "fundAgent" } });
    const [entry] = entries.filter(({ resource }) => resource.id === agent.id);
    expect(entry?.actor).to.deep.include({ type: "system", id: "target" });
    expect(entry?.after).to.deep.equal({ amountCents: 900, walletTargetCents: 900 });
    const off = { version: version + 1, walletTargetCents: null };
    const cleared = await own.api.ok("updateAgentBudgetPolicy", 200, { token, id: agent.id, body: off });
    expect(cleared.walletTargetCents).to.equal(null);
  });

  it("an agent is created with its wallet's target by a person who has stepped up, and by no key", async () => {
    const { token } = own;
    const body = { name: "Kept", teamId: own.organization.teamId, budgetCents: 0, walletTargetCents: 300 };
    const { token: key } = await organizationKey(own, { scopes: ["agents:write"] });
    const byKey = { token: key, body: { ...body, idempotencyKey: randomUUID() } };
    await own.api.refused("createAgent", 403, "SESSION_REQUIRED", byKey);
    await elevate(own, new Date(0));
    await own.api.refused("createAgent", 403, "STEP_UP_REQUIRED", { token, body });
    await elevate(own);
    const { agent } = await own.api.ok("createAgent", 201, { token, body });
    const { walletTargetCents } = await own.api.ok("getAgentBudgetPolicy", 200, { token, id: agent.id });
    expect(walletTargetCents).to.equal(300);
    const chain = new ChainView(own);
    const address = getAddress(agent.wallet?.address ?? "");
    await until("the wallet is funded", async () =>
      (await chain.cents(agent, address)) === 300 ? true : null,
    );
    const { entries } = await own.api.ok("listAuditLog", 200, { token, query: { action: "createAgent" } });
    const entry = entries.find(({ resource }) => resource.id === agent.id);
    expect(entry?.after).to.have.property("walletTargetCents", 300);
  });

  it("a deposit takes an amount of cents from 1 on, and nothing else", async () => {
    for (const body of [
      {},
      { amountCents: 0 },
      { amountCents: 0.5 },
      { amountCents: "1" },
      { amountCents: 1, to: "me" },
    ]) {
      const request = { token: world.token, body };
      const { issues } = await world.api.refused("depositToTreasury", 400, "VALIDATION_FAILED", request);
      expect(issues).to.have.lengthOf(1);
    }
  });

  it("a failed payment for the subscription is answered and told, each time as one of its own", async () => {
    const { payment: first } = await own.api.ok("failBilling", 201, { token: own.token });
    const { payment: second } = await own.api.ok("failBilling", 201, { token: own.token, body: {} });
    const plans = own.service.db.collection<{ _id: string; plan: string }>("organizations");
    const { plan } = (await plans.findOne({ _id: own.organization.organizationId })) ?? {};
    for (const { id, plan: told, reason } of [first, second]) {
      expect(id).to.match(ULID);
      expect(told).to.equal(plan);
      expect(reason).not.to.equal("");
    }
    expect(second.id).not.to.equal(first.id);
    const events = await eventsOf(own, "billing.payment_failed");
    const told = events.map(({ _id, agentId, createdAt, data: { payment } }) => {
      expect(agentId).to.equal(null);
      expect(_id).to.equal(`evt_${payment?.id ?? ""}_billing.payment_failed`);
      expect(createdAt).to.deep.equal(payment?.failedAt);
      return { ...payment, failedAt: createdAt.toISOString() };
    });
    expect(told).to.have.deep.members([first, second]);
    const body = { amountCents: 1 };
    await own.api.refused("failBilling", 400, "VALIDATION_FAILED", { token: own.token, body });
  });
});
