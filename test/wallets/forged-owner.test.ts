import { expect } from "chai";
import type { Document } from "mongodb";
import { generatePrivateKey, privateKeyToAddress } from "viem/accounts";
import { sharedService } from "../support/service.ts";
import { newWorld, until, type World } from "../support/world.ts";

/** Changes by an intruder who can write to MongoDB and has no key of the service. */
describe("an organization's wallets that something else than the service has changed", () => {
  let world: World;
  before(async () => {
    world = await newWorld(sharedService());
  });

  const organizations = () => world.service.db.collection<{ _id: string }>("organizations");
  const thief = privateKeyToAddress(generatePrivateKey());

  async function changed(change: Document, work: () => Promise<void>): Promise<void> {
    const _id = world.organization.organizationId;
    const before = await organizations().findOneAndUpdate({ _id }, { $set: change });
    if (before === null) throw new Error("the organization is gone");
    await work();
    await organizations().replaceOne({ _id }, before);
  }

  it("no agent is created whose wallet somebody else owns", () =>
    changed({ walletOwner: thief }, async () => {
      const { projectId, teamId } = world.organization;
      const body = { teamId, name: "Agent", budgetCents: 100 };
      const answer = await world.api.call("createAgent", { token: world.token, body });
      expect(answer.status).to.equal(500);
      const agents = world.service.db.collection("agents");
      expect(await agents.countDocuments({ projectId, "wallet.owner": thief })).to.equal(0);
    }));

  it("no treasury is shown, or deposited to, that somebody else owns", async () => {
    const { token } = world;
    const shown = async () => (await world.api.ok("getOrganization", 200, { token })).organization.treasury;
    const treasury = await until("it is there", shown);
    await changed({ "treasury.address": thief, "treasury.owner": thief }, async () => {
      expect((await world.api.call("getOrganization", { token })).status).to.equal(500);
      const deposited = await world.api.call("depositToTreasury", { token, body: { amountCents: 1 } });
      expect(deposited.status).to.be.at.least(500);
    });
    expect(await shown()).to.deep.equal(treasury);
  });
});
