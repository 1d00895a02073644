import { expect } from "chai";
import { elevate, newWorld, type World } from "../support/world.ts";

const OWNER = "0x70997970C51812dc3A010C7d01b50e0d17dc79C8";
const DEMO_OWNER = "0xf39Fd6e51aad88F6F4ce6aB8827279cffFb92266";

describe("an organization's settings", () => {
  let world: World;
  beforeEach(async () => {
    world = await newWorld();
    await elevate(world);
  });

  const named = (walletOwner: string | null) =>
    world.api.ok("updateOrganization", 200, { token: world.token, body: { walletOwner } });
  const ownerOf = async (agentId: string): Promise<unknown> => {
    const filter: object = { _id: agentId };
    const agent = await world.service.db.collection("agents").findOne(filter);
    return agent?.["wallet"]?.["owner"];
  };

  it("whoever is named owner owns wallets of agents made from then on, and no earlier ones", async () => {
    const { organization } = await world.api.ok("getOrganization", 200, { token: world.token });
    expect(organization).to.include({ id: world.organization.organizationId, walletOwner: null });
    const before = await world.agent();
    const { organization: changed } = await named(OWNER.toLowerCase());
    expect(changed.walletOwner, "with its checksum").to.equal(OWNER);
    const after = await world.agent();
    expect([await ownerOf(before.id), await ownerOf(after.id)]).to.deep.equal([DEMO_OWNER, OWNER]);
    await named(null);
    expect(await ownerOf((await world.agent()).id)).to.equal(DEMO_OWNER);
  });

  it("an owner that is no address, mistyped or zero is refused and changes nothing", async () => {
    const request = (walletOwner: unknown) => ({ token: world.token, body: { walletOwner } });
    const mistyped = OWNER.replace("C8", "c8");
    for (const wrong of ["me", mistyped, `0x${"0".repeat(40)}`, 1]) {
      await world.api.refused("updateOrganization", 400, "VALIDATION_FAILED", request(wrong));
    }
    const { organization } = await world.api.ok("getOrganization", 200, { token: world.token });
    expect(organization.walletOwner).to.equal(null);
  });
});
