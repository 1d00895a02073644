import { expect } from "chai";
import { creationOptions, requestOptions } from "../../src/contract/webauthn.ts";
import { PASSWORD } from "../support/service.ts";
import { authenticatorFor, enrolPasskey, signInBody } from "../support/passkeys.ts";
import { invite } from "../support/people.ts";
import { elevate, newWorld, organizationKey, type World } from "../support/world.ts";

const refused = (code: string) => ({ result: { status: 401, code } });

describe("on what and by whom, in the audit log", () => {
  let world: World;
  before(async () => {
    world = await newWorld();
  });

  const entries = async (action: string) =>
    (await world.api.ok("listAuditLog", 200, { token: world.token, query: { action } })).entries;

  const byOwner = () => ({ type: "user", id: world.organization.userId });

  describe("a sign-in by passkey that is refused leaves an entry for the passkey's owner", () => {
    it("where the signature is another key's", async () => {
      const earlier = await entries("signInWithPasskey");
      const authenticator = authenticatorFor(world);
      await enrolPasskey(world, authenticator);
      const one = await signInBody(world, authenticator);
      const other = await signInBody(world, authenticator);
      const { signature } = other.response.response;
      const response = { ...one.response, response: { ...one.response.response, signature } };
      await world.api.refused("signInWithPasskey", 401, "SECOND_FACTOR_INVALID", { body: { response } });
      const [entry, ...more] = await entries("signInWithPasskey");
      expect(entry).to.deep.include(refused("SECOND_FACTOR_INVALID"));
      expect(entry?.actor).to.include(byOwner());
      expect(more).to.deep.equal(earlier);
    });

    it("where its counter went back, as a copy's does", async () => {
      const authenticator = authenticatorFor(world);
      await enrolPasskey(world, authenticator);
      await world.api.ok("signInWithPasskey", 200, { body: await signInBody(world, authenticator) });
      const options = requestOptions.parse(await world.api.ok("passkeySignInOptions", 200));
      const response = authenticator.get(options, { counter: 1 });
      await world.api.refused("signInWithPasskey", 401, "PASSKEY_POSSIBLY_COPIED", { body: { response } });
      const [entry, before] = await entries("signInWithPasskey");
      expect(entry).to.deep.include(refused("PASSKEY_POSSIBLY_COPIED"));
      expect(entry?.actor).to.include(byOwner());
      expect(before?.result).to.deep.equal({ status: 200, code: null });
    });
  });

  it("a synced passkey in another manager signs in and steps up; entries say what changed", async () => {
    const authenticator = authenticatorFor(world);
    const synced = { backupEligible: true, backedUp: true };
    const { id } = await enrolPasskey(world, authenticator, { told: { ...synced, counter: 50 } });
    const signIn = requestOptions.parse(await world.api.ok("passkeySignInOptions", 200));
    const body = { response: authenticator.get(signIn, { ...synced, counter: 0 }) };
    await world.api.ok("signInWithPasskey", 200, { body });
    const stepUp = requestOptions.parse(await world.api.ok("stepUpOptions", 200, { token: world.token }));
    const response = authenticator.get(stepUp, { backupEligible: false, counter: 0 });
    await world.api.ok("stepUp", 200, { token: world.token, body: { method: "passkey", response } });
    const [[signedIn], [steppedUp]] = [await entries("signInWithPasskey"), await entries("stepUp")];
    expect(signedIn).to.deep.include({
      before: { passkey: id, counter: 50, backupEligible: true },
      after: { passkey: id, counter: 0, backupEligible: true },
    });
    expect(steppedUp).to.deep.include({
      before: { passkey: id, counter: 0, backupEligible: true },
      after: { passkey: id, counter: 0, backupEligible: false },
    });
  });

  it("an enrolment names the passkey", async () => {
    const { id } = await enrolPasskey(world, authenticatorFor(world), { name: "Phone" });
    const [entry] = await entries("enrollPasskey");
    expect(entry).to.deep.include({
      resource: { type: "passkey", id },
      before: null,
      after: { name: "Phone" },
    });
    expect(entry?.actor).to.include(byOwner());
  });

  it("an enrolment that is refused names the person, not a passkey", async () => {
    const options = creationOptions.parse(await world.api.ok("passkeyOptions", 200, { token: world.token }));
    const response = authenticatorFor(world).create(options, { userVerified: false });
    const asked = { token: world.token, body: { name: "Phone", response } };
    await world.api.refused("enrollPasskey", 403, "SECOND_FACTOR_INVALID", asked);
    const [entry] = await entries("enrollPasskey");
    expect(entry?.resource).to.deep.equal(byOwner());
  });

  it("an invite that is accepted names the invite, its role, and who came of it", async () => {
    const { invite: made, token } = await invite(world, "admin");
    const body = { token, name: "New", password: PASSWORD };
    const { user } = await world.api.ok("acceptInvite", 201, { body });
    const [entry] = await entries("acceptInvite");
    expect(entry).to.deep.include({
      resource: { type: "invite", id: made.id },
      before: { email: made.email, role: "admin" },
      after: { userId: user.id, role: "admin" },
    });
    expect(entry?.actor).to.include({ type: "user", id: user.id });
  });

  it("an archive names the state before it; one that changes nothing names none", async () => {
    const { id } = await world.agent();
    await elevate(world);
    const asked = { token: world.token, id };
    await world.api.ok("pauseAgent", 200, asked);
    await world.api.ok("archiveAgent", 200, asked);
    await world.api.ok("archiveAgent", 200, asked);
    expect((await entries("archiveAgent")).map(({ after, before }) => [before, after])).to.deep.equal([
      [null, null],
      [{ state: "paused" }, { state: "archived" }],
    ]);
  });

  it("a code in the wrong place is not kept as an id, nor is the caller named instead", async () => {
    const { token } = world;
    await elevate(world);
    for (const operation of ["archiveAgent", "removeMember"] as const) {
      await world.api.refused(operation, 404, "NOT_FOUND", { token, id: "123456" });
      const [entry] = await entries(operation);
      expect(entry?.result.code).to.equal("NOT_FOUND");
      expect(entry?.resource.id, operation).to.equal(null);
    }
  });

  it("a repeated create changes nothing, and its entry says so: the first one's has the policy", async () => {
    const { token } = await organizationKey(world);
    const { teamId } = world.organization;
    const body = { name: "Buyer", teamId, budgetCents: 500, idempotencyKey: "k" };
    await world.api.ok("createAgent", 201, { token, body });
    await world.api.ok("createAgent", 200, { token, body });
    const [again, first] = await entries("createAgent");
    expect(first?.after).to.deep.include({ budgetCents: 500, version: 1 });
    expect(again).to.deep.include({ after: null, result: { status: 200, code: null } });
  });
});
