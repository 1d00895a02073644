import { expect } from "chai";
import { COLLECTIONS, type EventDocument } from "../../src/store/documents.ts";
import { FUNDING_INDEXES, type FundingDocument } from "../../src/rails/wallet/fundings.ts";
import { createIndexes } from "../../src/store/indexes.ts";
import {
  type Instance,
  newId,
  newPayment,
  openScene,
  POLICY,
  type Scene,
  type TestAgent,
} from "./support.ts";
import { openOwner } from "./owner.ts";

describe("a treasury's money for an agent's wallet", () => {
  let scene: Scene;
  let instances: readonly [Instance, Instance];
  before(async () => {
    scene = await openScene();
    instances = [scene.open(), scene.open()];
    await createIndexes(scene.db, FUNDING_INDEXES);
  });
  after(() => scene.close());

  /** An agent with an empty wallet, of an organization whose treasury holds so much. */
  async function withTreasury(cents: number) {
    const organizationId = newId("org");
    await scene.db.collection<{ _id: string }>("organizations").insertOne({ _id: organizationId });
    const agent = await scene.agent(POLICY, organizationId);
    const [{ wallets }] = instances;
    const treasury = await wallets.treasuries.of(organizationId);
    if (treasury === null) throw new Error("there is no treasury");
    await scene.fund({ profile: agent.profile, wallet: treasury }, cents);
    return { agent, treasury };
  }
  const begin = (
    { profile }: TestAgent,
    amountCents: number,
    idempotencyKey: string | null = null,
    at: 0 | 1 = 0,
  ) => instances[at].wallets.fundings.begin({ _id: newId("fnd"), profile, amountCents, idempotencyKey });
  const fundingOf = async (...args: Parameters<typeof begin>): Promise<FundingDocument> => {
    const begun = await begin(...args);
    return begun.funding;
  };
  const ended = async (funding: FundingDocument, at: 0 | 1 = 0): Promise<FundingDocument> => {
    for (let now = funding; ; now = await instances[at].wallets.fundings.advance(now, 5_000))
      if (now.status !== "pending") return now;
  };
  const told = ({ profile }: TestAgent) =>
    scene.db
      .collection<EventDocument>(COLLECTIONS.events)
      .find({ agentId: profile.agentId, type: "wallet.funded" })
      .toArray();

  it("is moved once, with one event, whichever processes are asked and however often", async () => {
    const { agent, treasury } = await withTreasury(1_000);
    const key = newId("key");
    const answers = await Promise.all([0, 1, 0, 1].map((at) => fundingOf(agent, 400, key, at === 0 ? 0 : 1)));
    expect(new Set(answers.map(({ _id }) => _id)).size).to.equal(1);
    const ends = await Promise.all(answers.map((each, at) => ended(each, at % 2 === 0 ? 0 : 1)));
    for (const { onChain, status } of ends)
      expect([status, onChain?.chainCaip2]).to.deep.equal(["settled", "eip155:31337"]);
    expect(await scene.balanceCents(agent.wallet)).to.equal(400);
    expect(await scene.balanceCents(treasury)).to.equal(600);
    const events = await told(agent);
    expect(events).to.have.length(1);
    expect(events[0]?.data.funding).to.include({ amountCents: 400, address: agent.wallet });
    expect((await begin(agent, 401, key)).kind, "another amount").to.equal("reused");
  });

  it("what a stopped process has left is brought to its end by the next one", async () => {
    const { agent } = await withTreasury(1_000);
    const funding = await fundingOf(agent, 250);
    const later = scene.open({ clock: () => new Date(Date.now() + 60_000) });
    const stored = scene.db.collection<FundingDocument>(COLLECTIONS.walletFundings);
    for (let rounds = 0; rounds < 20; rounds += 1) {
      await later.wallets.fundings.sweep();
      if ((await stored.findOne({ _id: funding._id }))?.status === "settled") break;
    }
    expect(await scene.balanceCents(agent.wallet)).to.equal(250);
    expect(await told(agent)).to.have.length(1);
  });

  it("a wallet is kept at its target while the agent is active, each lack funded once", async () => {
    const { agent, treasury } = await withTreasury(1_000);
    let laterMs = 0;
    const clock = (): Date => new Date(Date.now() + laterMs);
    const [one, other] = [scene.open({ clock }), scene.open({ clock })].map(({ wallets }) => wallets.targets);
    const looks = async (): Promise<void> => {
      for (let round = 0; round < 6; round += 1) {
        laterMs += 700_000;
        await Promise.all([one?.keep(), other?.keep()]);
      }
    };
    const { profile } = agent;
    await one?.set(profile, 300, 1);
    expect(await other?.of(profile.agentId)).to.equal(300);
    await looks();
    expect(await scene.balanceCents(agent.wallet)).to.equal(300);
    await instances[0].wallets.rail.send(profile, newPayment(120));
    await scene.agents.updateOne({ _id: profile.agentId }, { $set: { lifecycle: "paused" } });
    await looks();
    expect(await scene.balanceCents(agent.wallet), "a paused one").to.equal(180);
    await scene.agents.updateOne({ _id: profile.agentId }, { $set: { lifecycle: "active" } });
    await looks();
    expect(await scene.balanceCents(agent.wallet)).to.equal(300);
    // More than the treasury has: it fails, and nothing is moved.
    await one?.set(profile, 5_000, 2);
    await looks();
    expect(await scene.balanceCents(treasury)).to.equal(580);
    await one?.set(profile, null, 3);
    expect(await other?.of(profile.agentId)).to.equal(null);
  });

  it("fails where the treasury has too little, or its owner's ceiling allows no more", async () => {
    const { agent, treasury } = await withTreasury(1_000);
    const tooMuch = await ended(await fundingOf(agent, 1_001));
    expect([tooMuch.status, tooMuch.failure?.code]).to.deep.equal(["failed", "INSUFFICIENT_FUNDS"]);
    // The treasury is deployed at its first spend.
    expect((await ended(await fundingOf(agent, 100))).status).to.equal("settled");
    await openOwner(scene).setCeiling(treasury, 150);
    const bounded = await ended(await fundingOf(agent, 100));
    expect(bounded.failure?.reason).to.include("owner allows the service no payment of this amount");
    expect(await scene.balanceCents(agent.wallet)).to.equal(100);
    expect(await told(agent)).to.have.length(1);
  });

  it("is not moved by what was written into the database, nor to an agent that was changed there", async () => {
    const { agent, treasury } = await withTreasury(1_000);
    const funding = await fundingOf(agent, 100);
    const { fundings } = instances[0].wallets;
    expect(await outcome(fundings.advance({ ...funding, amountCents: 900 }, 0))).to.include(
      "not as the service",
    );
    const { wallets } = scene.open({ isAgentGenuine: () => false });
    expect(await outcome(wallets.fundings.advance(funding, 0))).to.include("not as the service wrote it");
    expect(await scene.balanceCents(treasury)).to.equal(1_000);
  });
});

/** The text of whatever comes of it. */
const outcome = (work: Promise<unknown>) => work.then(String, String);
