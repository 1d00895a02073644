import { expect } from "chai";
import { generatePrivateKey, privateKeyToAccount } from "viem/accounts";
import { railModesOf } from "../../src/rails/rails.ts";
import { authCollections } from "../../src/store/identity-documents.ts";
import { freshRecipient } from "../support/chain.ts";
import { join } from "../support/people.ts";
import { elevate, newWorld, times, type World } from "../support/world.ts";

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

  it("a named owner owns wallets of agents made from then on, and no earlier ones", async () => {
    const { organization } = await world.api.ok("getOrganization", 200, { token: world.token });
    expect(organization).to.include({ id: world.organization.organizationId, walletOwner: null });
    expect(organization.rails, "both play").to.deep.equal({ card: "sandbox", wallet: "local" });
    const before = await world.agent();
    const { organization: changed } = await named(OWNER.toLowerCase());
    expect(changed.walletOwner, "with its checksum").to.equal(OWNER);
    const after = await world.agent();
    expect([await ownerOf(before.id), await ownerOf(after.id)]).to.deep.equal([DEMO_OWNER, OWNER]);
    await named(null);
    expect(await ownerOf((await world.agent()).id)).to.equal(DEMO_OWNER);
  });

  it("an owner of wallets who signs is proven, a wrong signature refused with the text to sign", async () => {
    const [key, another] = [generatePrivateKey(), generatePrivateKey()].map((each) =>
      privateKeyToAccount(each),
    );
    if (key === undefined || another === undefined) throw new Error("no keys");
    const ask = (walletOwnerSignature: string) => ({
      token: world.token,
      body: { walletOwner: key.address, walletOwnerSignature },
    });
    const { challenge = "" } = await world.api.refused(
      "updateOrganization",
      422,
      "WALLET_OWNER_UNPROVEN",
      ask(await another.signMessage({ message: "anything" })),
    );
    expect(challenge).to.include(key.address).and.to.include(world.organization.organizationId);
    const others = ask(await another.signMessage({ message: challenge }));
    await world.api.refused("updateOrganization", 422, "WALLET_OWNER_UNPROVEN", others);
    const own = ask(await key.signMessage({ message: challenge }));
    const { organization } = await world.api.ok("updateOrganization", 200, own);
    expect(organization.walletOwner).to.equal(key.address);
  });

  it("an admin renames it and sets its time zone without a step-up, and no wallets' owner", async () => {
    const { token } = await join(world, "admin");
    const body = { name: "Renamed", timezone: "europe/berlin" };
    const { organization } = await world.api.ok("updateOrganization", 200, { token, body });
    expect(organization).to.include({ name: "Renamed", timezone: "Europe/Berlin" });
    expect((await world.api.ok("getMe", 200, { token: world.token })).organization.name).to.equal("Renamed");
    const owns = { token, body: { ...body, walletOwner: OWNER } };
    await world.api.refused("updateOrganization", 403, "ROLE_REQUIRED", owns);
    const wrong = { token, body: { timezone: "Mars/Base" } };
    await world.api.refused("updateOrganization", 400, "VALIDATION_FAILED", wrong);
    const cleared = await world.api.ok("updateOrganization", 200, { token, body: { timezone: null } });
    expect(cleared.organization.timezone).to.equal(null);
  });

  it("wallets on a chain that is no sandbox are called real, and without a chain off", () => {
    expect(railModesOf({ sandbox: null }, null)).to.deep.equal({ card: "sandbox", wallet: "real" });
    expect(railModesOf(null, null)).to.deep.equal({ card: "sandbox", wallet: "off" });
  });

  it("of an owner who is being removed, nothing is changed once that is done", async () => {
    const other = await join(world, "owner");
    await elevate(world);
    const { db } = world.service;
    const { organizationId } = world.organization;
    const removal = { token: world.token, id: other.id };
    // They wait for one another, so most have begun before the removal is done.
    const changes = times(30, () => {
      const body = { walletOwner: freshRecipient() };
      return world.api.call("updateOrganization", { token: other.token, body });
    });
    await world.api.ok("removeMember", 204, removal);
    const walletOwner = async () =>
      (await authCollections(db).organizations.findOne({ _id: organizationId }))?.walletOwner;
    const then = await walletOwner();
    const statuses = (await Promise.all(changes)).map(({ status }) => status);
    expect(
      statuses.every((status) => [200, 401, 403, 503].includes(status)),
      statuses.join(),
    ).to.equal(true);
    expect(await walletOwner()).to.equal(then);
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
