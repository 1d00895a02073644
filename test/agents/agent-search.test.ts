import { expect } from "chai";
import { collectionsOf } from "../../src/store/collections.ts";
import { TEST_AGENT_PROOFS } from "../support/access-proofs.ts";
import { newWorld, type World } from "../support/world.ts";

describe("agents by name, with their last payments", () => {
  let world: World;
  before(async () => {
    world = await newWorld();
  });

  const found = async (query: Readonly<Record<string, string>>) => {
    const { agents } = await world.api.ok("listAgents", 200, { token: world.token, query });
    return agents.map(({ name }) => name);
  };

  it("a part of the name finds it in whatever case, newest first, page by page", async () => {
    for (const name of ["Travel one", "Büro", "My TRAVEL two", "Other", "retravelled"]) {
      await world.agent({ name });
    }
    expect(await found({ name: "travel" })).to.deep.equal(["retravelled", "My TRAVEL two", "Travel one"]);
    expect(await found({ name: "BÜRO" })).to.deep.equal(["Büro"]);
    const first = await world.api.ok("listAgents", 200, {
      token: world.token,
      query: { name: "travel", limit: "2" },
    });
    const cursor = first.nextCursor ?? "";
    expect(await found({ name: "travel", limit: "2", cursor })).to.deep.equal(["Travel one"]);
    await world.api.refused("listAgents", 400, "BAD_CURSOR", { token: world.token, query: { cursor } });
  });

  it("what is written is looked for as it is, and is no pattern", async () => {
    for (const name of ["a.c", "abc", "(x|y)+$ [z]", "back\\slash"]) await world.agent({ name });
    expect(await found({ name: "a.c" })).to.deep.equal(["a.c"]);
    expect(await found({ name: "(x|y)+$ [z]" })).to.deep.equal(["(x|y)+$ [z]"]);
    expect(await found({ name: "k\\s" })).to.deep.equal(["back\\slash"]);
    expect(await found({ name: ".*" })).to.deep.equal([]);
  });

  it("other filters hold beside it, and no record is read but those that fit", async () => {
    const paused = await world.agent({ name: "Buyer one" });
    await world.agent({ name: "Buyer two" });
    await world.agent({ name: "Seller" });
    await world.api.ok("pauseAgent", 200, { token: world.token, id: paused.id });
    expect(await found({ name: "buyer", state: "paused" })).to.deep.equal(["Buyer one"]);
    expect(await found({ name: "buyer", teamId: world.organization.teamId })).to.have.lengthOf(2);
    const keys = await world.service.db
      .collection("agents")
      .countDocuments({ organizationId: world.organization.organizationId });
    const { organizationId } = world.organization;
    const plan = await world.service.db
      .collection("agents")
      .find({ organizationId, name: { $regex: "seller", $options: "i" } })
      .hint({ organizationId: 1, createdAt: -1, _id: -1, name: 1 })
      .explain("executionStats");
    expect(JSON.stringify(plan))
      .to.match(/"totalDocsExamined":1\b/)
      .and.match(new RegExp(`"totalKeysExamined":${String(keys)}\\b`));
  });

  it("each agent's newest payment comes with the list that asks for it, whatever became of it", async () => {
    const [payer, idle] = [await world.agent({ name: "Payer" }), await world.agent({ name: "Idle" })];
    await payer.pay();
    const { transaction } = await payer.pay({ amountCents: 1_000_000 });
    const query = { with: "lastPayment" };
    const { agents } = await world.api.ok("listAgents", 200, { token: world.token, query });
    const lastOf = (id: string) => agents.find((agent) => agent.id === id)?.lastPayment;
    expect(lastOf(payer.id)).to.deep.equal({
      transactionId: transaction.id,
      createdAt: transaction.createdAt,
      amountCents: 1_000_000,
      rail: "card",
      status: "denied",
      merchant: "shop",
    });
    expect(lastOf(idle.id)).to.equal(null);
    const plain = await world.api.ok("listAgents", 200, { token: world.token });
    expect(plain.agents.every((agent) => !("lastPayment" in agent))).to.equal(true);
  });

  it("an agent's wallet is read with what it holds, and the organization with its limits", async () => {
    const { id } = await world.agent();
    const { wallet } = await world.api.ok("getAgentWallet", 200, { token: world.token, id });
    expect(wallet?.balanceCents).to.equal(0);
    const { agent } = await world.api.ok("getAgent", 200, { token: world.token, id });
    expect(wallet?.address).to.equal(agent.wallet?.address);
    const { agents } = collectionsOf(world.service.db);
    const record = await agents.findOne({ _id: id });
    if (record === null) throw new Error("the agent has no record");
    const proof = TEST_AGENT_PROOFS.ofAgent({ ...record, wallet: null });
    await agents.updateOne({ _id: id }, { $set: { wallet: null, proof } });
    expect(await world.api.ok("getAgentWallet", 200, { token: world.token, id })).to.deep.equal({
      wallet: null,
    });
    const { organization } = await world.api.ok("getOrganization", 200, { token: world.token });
    expect(organization.limits).to.deep.equal({ restPerMinute: 1_000_000, mcpPerMinute: 1_000_000 });
  });
});
