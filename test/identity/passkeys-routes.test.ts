import { expect } from "chai";
import { cookieNames } from "../../src/contract/cookies.ts";
import { startTestService, type TestService } from "../support/service.ts";
import {
  authenticatorFor,
  enrolPasskey,
  madeUpAssertion,
  madeUpRegistration,
  type Passkey,
  signInBody,
  stepUpBody,
} from "../support/passkeys.ts";
import { join } from "../support/people.ts";
import { newWorld, type World } from "../support/world.ts";
import type { SoftwareAuthenticator } from "../support/authenticator.ts";

const COOKIES = { "svc-session": "cookie", "sec-fetch-site": "same-origin" };

describe("passkeys over HTTP", () => {
  let service: TestService;
  let world: World;
  let authenticator: SoftwareAuthenticator;
  let aheadMs = 0;
  before(async () => {
    service = await startTestService({
      worker: false,
      clock: () => new Date(Date.now() + aheadMs),
      evmRpcUrl: null,
    });
  });
  beforeEach(async () => {
    aheadMs = 0;
    world = await newWorld(service);
    authenticator = authenticatorFor(world);
  });
  after(() => service.stop());

  const own = () => ({ token: world.token });
  const stepUp = async () => {
    const body = await stepUpBody(world, authenticator);
    return await world.api.ok("stepUp", 200, { ...own(), body });
  };
  const listed = async (): Promise<readonly Passkey[]> =>
    (await world.api.ok("listPasskeys", 200, own())).passkeys;

  it("enrol 201, list, sign in, step up, rename 200, remove 204: the whole life of a passkey", async () => {
    const first = await enrolPasskey(world, authenticator);
    expect(first).to.deep.include({ name: "Laptop", backupEligible: false, backedUp: false });
    expect(first).to.deep.include({ transports: ["internal", "hybrid"], lastUsedAt: null });
    await world.api.refused("passkeyOptions", 403, "STEP_UP_REQUIRED", own());
    await world.api.refused("updatePasskey", 403, "STEP_UP_REQUIRED", { ...own(), id: first.id });
    await world.api.refused("removePasskey", 403, "STEP_UP_REQUIRED", { ...own(), id: first.id });
    const session = await world.api.ok("signInWithPasskey", 200, {
      body: await signInBody(world, authenticator),
    });
    expect(session.user).to.deep.include({ id: world.organization.userId, secondFactors: ["passkey"] });
    const me = await world.api.ok("getMe", 200, { token: session.token });
    expect([me.user.secondFactors, me.stepUpExpiresAt]).to.deep.equal([["passkey"], null]);
    const askedAt = Date.now() + aheadMs;
    const { stepUpExpiresAt } = await stepUp();
    expect(Date.parse(stepUpExpiresAt) - 300_000).to.be.within(askedAt, Date.now() + aheadMs);
    const phone = authenticatorFor(world);
    const second = await enrolPasskey(world, phone, { name: "Phone" });
    expect((await listed()).map(({ id }) => id)).to.deep.equal([second.id, first.id]);
    const body = { name: "Old laptop" };
    const { passkey } = await world.api.ok("updatePasskey", 200, { ...own(), id: first.id, body });
    expect([passkey.id, passkey.name]).to.deep.equal([first.id, "Old laptop"]);
    expect(passkey.lastUsedAt).not.to.equal(null);
    const removed = await world.api.call("removePasskey", { ...own(), id: first.id });
    expect([removed.status, removed.body]).to.deep.equal([204, undefined]);
    await world.api.refused("removePasskey", 404, "NOT_FOUND", { ...own(), id: first.id });
    await world.api.refused("removePasskey", 409, "LAST_FACTOR", { ...own(), id: second.id });
    const gone = { body: await signInBody(world, authenticator) };
    await world.api.refused("signInWithPasskey", 401, "SECOND_FACTOR_INVALID", gone);
    await world.api.ok("signInWithPasskey", 200, { body: await signInBody(world, phone) });
  });

  it("lets through what needs step-up for 5 minutes, in the session that stepped up and no other", async () => {
    await enrolPasskey(world, authenticator);
    const key = { name: "x", scopes: ["agents:read"], binding: { type: "organization" } };
    const mint = { ...own(), body: key };
    await world.api.refused("mintOrganizationKey", 403, "STEP_UP_REQUIRED", mint);
    await stepUp();
    await world.api.ok("mintOrganizationKey", 201, mint);
    const { email, password } = world.organization;
    const { token } = await world.api.ok("signIn", 200, { body: { email, password } });
    await world.api.refused("mintOrganizationKey", 403, "STEP_UP_REQUIRED", { token, body: key });
    aheadMs += 300_000;
    await world.api.refused("mintOrganizationKey", 403, "STEP_UP_REQUIRED", mint);
  });

  it("a browser has the session in cookies, as of any sign-in, and no other site has it", async () => {
    await enrolPasskey(world, authenticator);
    const body = await signInBody(world, authenticator);
    const elsewhere = { ...COOKIES, "sec-fetch-site": "cross-site" };
    await world.api.refused("signInWithPasskey", 401, "UNAUTHORIZED", { body, headers: elsewhere });
    const answer = await world.api.call("signInWithPasskey", { body, headers: COOKIES });
    expect(answer.status, "what is refused unread uses no challenge up").to.equal(200);
    expect(answer.body).not.to.have.any.keys("token", "refreshToken");
    const cookies = answer.headers.getSetCookie();
    const { device, refresh, session } = cookieNames(world.service.baseUrl);
    expect(cookies.map((cookie) => cookie.split("=", 1)[0])).to.deep.equal([session, refresh, device]);
    for (const cookie of cookies) expect(cookie).to.include("HttpOnly").and.include("SameSite=Strict");
  });

  it("is one's own: a colleague sees the kind of factor, and can't list, rename or remove it", async () => {
    const { id } = await enrolPasskey(world, authenticator);
    const colleague = await join(world, "owner");
    const { token } = colleague;
    const { passkeys } = await world.api.ok("listPasskeys", 200, { token });
    expect(passkeys).to.deep.equal([]);
    await world.api.refused("updatePasskey", 404, "NOT_FOUND", { token, id, body: { name: "Mine" } });
    await world.api.refused("removePasskey", 404, "NOT_FOUND", { token, id });
    const { members } = await world.api.ok("listMembers", 200, { token });
    const shown = members.map((member) => [member.id, member.secondFactors]);
    expect(shown).to.deep.equal([
      [colleague.id, []],
      [world.organization.userId, ["passkey"]],
    ]);
    expect((await listed()).map((passkey) => passkey.id)).to.deep.equal([id]);
  });

  it("lists in pages, newest first, by cursors of one's own", async () => {
    await enrolPasskey(world, authenticator, { name: "0" });
    await stepUp();
    for (const name of ["1", "2", "3", "4"]) await enrolPasskey(world, authenticator, { name });
    const names: string[] = [];
    let cursor: string | null = null;
    do {
      const query: Record<string, string> = { limit: "2", ...(cursor === null ? {} : { cursor }) };
      const page = await world.api.ok("listPasskeys", 200, { ...own(), query });
      expect(page.passkeys.length).to.be.at.most(2);
      names.push(...page.passkeys.map(({ name }) => name));
      cursor = page.nextCursor;
    } while (cursor !== null);
    expect(names).to.deep.equal(["4", "3", "2", "1", "0"]);
    const { nextCursor } = await world.api.ok("listPasskeys", 200, { ...own(), query: { limit: "1" } });
    const other = await join(world, "member");
    const query = { cursor: nextCursor ?? "" };
    await world.api.refused("listPasskeys", 400, "BAD_CURSOR", { token: other.token, query });
  });

  it("a removed member's passkeys are gone with them", async () => {
    const member = await join(world, "member");
    await enrolPasskey(world, authenticator, { token: member.token });
    const removed = await world.api.call("removeMember", { ...own(), id: member.id });
    expect(removed.status).to.equal(204);
    expect(await service.db.collection("factors").countDocuments({ userId: member.id })).to.equal(0);
    const body = await signInBody(world, authenticator);
    await world.api.refused("signInWithPasskey", 401, "SECOND_FACTOR_INVALID", { body });
  });

  it("a wrong shape is 400; what a newer browser adds to its response is let through", async () => {
    const response = madeUpRegistration();
    const { clientDataJSON, attestationObject } = response.response;
    for (const body of [
      {},
      { name: "x" },
      { response },
      { name: "", response },
      { name: "x".repeat(101), response },
      { name: "x", response, remember: true },
      { name: "x", response: { ...response, type: "password" } },
      { name: "x", response: { ...response, id: "no base64url!" } },
      { name: "x", response: { ...response, id: "A".repeat(1_365) } },
      { name: "x", response: { ...response, id: { $gt: "" } } },
      { name: "x", response: { ...response, response: { clientDataJSON } } },
      { name: "x", response: { ...response, response: { attestationObject, clientDataJSON: "" } } },
      { name: "x", response: { ...response, response: { ...response.response, transports: ["USB!"] } } },
    ]) {
      await world.api.refused("enrollPasskey", 400, "VALIDATION_FAILED", { ...own(), body });
    }
    for (const body of [
      {},
      { response: {} },
      { response },
      { response: madeUpAssertion(), email: "a@example.com" },
      { response: { ...madeUpAssertion(), response: { clientDataJSON } } },
    ]) {
      await world.api.refused("signInWithPasskey", 400, "VALIDATION_FAILED", { body });
    }
    const { issues } = await world.api.refused("stepUp", 400, "VALIDATION_FAILED", {
      ...own(),
      body: { method: "passkey", code: "123456" },
    });
    expect(issues?.map(({ path }) => path)).to.include.members(["response", "code"]);
    const newer = { ...madeUpAssertion(), clientExtensionResults: { prf: {} }, inTheFuture: [1] };
    const body = { method: "passkey", response: newer };
    await world.api.refused("stepUp", 403, "SECOND_FACTOR_INVALID", { ...own(), body });
  });
});
