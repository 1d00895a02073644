import { TEST_ACCESS_PROOFS } from "../support/access-proofs.ts";
import { randomBytes, randomUUID } from "node:crypto";
import { expect } from "chai";
import { z } from "zod";
import { cookieNames } from "../../src/contract/cookies.ts";
import { authCollections } from "../../src/store/identity-documents.ts";
import { DeviceTokens } from "../../src/identity/device-token.ts";
import { MasterKey } from "../../src/secrets/master-key.ts";
import { Api, type CallOptions, freshAddress } from "../support/api.ts";
import { cookieHeader, cookiesOf } from "../support/cookies.ts";
import { TEST_MASTER_KEY } from "../support/payloads.ts";
import { PASSWORD, testPasswords, type TestService, WITHOUT_LIMITS } from "../support/service.ts";
import { madeUpAssertion } from "../support/passkeys.ts";
import { codeOf } from "../support/contract-api.ts";
import { elevate, times, type World } from "../support/world.ts";
import {
  atOnce,
  callTool,
  expectLimited,
  from,
  limitedService,
  limitedWorld,
  mintKey,
  shown,
  type FixedClock,
  type SpentCounts,
  statuses,
} from "./support.ts";

/** Returns an instant by its number of days since 1970. */
const days = (count: number) => new Date(count * 86_400_000);

describe("caps of single routes", () => {
  let clock: FixedClock;
  let counts: SpentCounts;
  let service: TestService;
  let api: Api;
  let world: World;
  let other: World;
  before(async () => {
    ({ clock, counts, service } = await limitedService());
    counts.forget();
    api = new Api(service.baseUrl);
    world = await limitedWorld(service, WITHOUT_LIMITS);
    other = await limitedWorld(service, WITHOUT_LIMITS);
  });
  beforeEach(() => counts.forget());

  const signIn = (email: unknown, options: CallOptions = {}) =>
    api.call("POST", "/v1/auth/sign-in", { body: { email, password: "wrong" }, ...options });

  const signInAs = (fields: object = {}, options: CallOptions = {}) => {
    const { email, password } = world.organization;
    return signIn("", { body: { email, password, ...fields }, ...options });
  };
  /** Without a password, which counts as well and need not be hashed. */
  const strangersTryOften = async (email = world.organization.email) => {
    counts.leave(3, 10);
    expect(statuses(await atOnce(4, () => signIn(email, { body: { email } })))).to.deep.equal({
      400: 3,
      429: 1,
    });
  };

  const signInBy = (id: string, options: CallOptions = {}) => {
    const response = { ...madeUpAssertion(), id, rawId: id };
    return api.call("POST", "/v1/auth/sign-in/passkey", { body: { response }, ...options });
  };

  const changePassword = (token: string, options: CallOptions = {}) =>
    api.call("POST", "/v1/auth/password", {
      token,
      body: { currentPassword: "wrong", newPassword: PASSWORD },
      ...options,
    });

  describe("sign-in", () => {
    it("10 a minute and address, for however many accounts; refused ones count, whatever for", async () => {
      const address = freshAddress();
      const { email } = world.organization;
      const tries: readonly (readonly [number, () => ReturnType<typeof signIn>])[] = [
        [400, () => signIn(7, from(address))],
        [400, () => api.call("POST", "/v1/auth/sign-in", { body: "{", ...from(address) })],
        [413, () => signIn("x".repeat(300_000), from(address))],
        [200, () => signIn("", { body: { email, password: PASSWORD }, ...from(address) })],
      ];
      counts.leave(tries.length + 1, 10);
      for (const [status, attempt] of tries) expect((await attempt()).status).to.equal(status);
      const answers = await atOnce(3, (index) => signIn(`nobody-${index}@example.com`, from(address)));
      expect(statuses(answers)).to.deep.equal({ 401: 1, 429: 2 });
      answers.filter(({ status }) => status === 429).forEach(expectLimited);
      const right = { body: { email, password: PASSWORD } };
      expectLimited(await signIn("", { ...right, ...from(address) }));
      expect((await signIn("", right)).status).to.equal(200);
    });

    for (const known of [true, false]) {
      it(`10 a minute for ${known ? "a known" : "an unknown"} e-mail, from any addresses, in any spelling`, async () => {
        const email = known ? world.organization.email : `no-${freshAddress()}@example.com`;
        const spellings = [email, email.toUpperCase(), ` ${email}`, `${email}\t`, email.replace("e", "E")];
        counts.leave(spellings.length, 10);
        for (const each of spellings) expect((await signIn(each)).status).to.equal(401);
        for (const each of spellings) expectLimited(await signIn(each));
        expectLimited(await signIn(email, { body: { email, password: PASSWORD } }));
        // Before the shape is judged, so that it does not tell whether a try counted.
        expectLimited(await signIn(email, { body: { email } }));
        expect((await signIn(`x${email}`)).status).to.equal(401);
        clock.nextMinute();
        expect((await signIn(email)).status).to.equal(401);
      });
    }

    it("100 a minute and /48 of IPv6, from however many networks in it", async () => {
      counts.leave(3, 100);
      const answers = await atOnce(5, (index) => signIn(7, from(`2001:db8:48:${index.toString(16)}::1`)));
      expect(statuses(answers)).to.deep.equal({ 400: 3, 429: 2 });
      answers.filter(({ status }) => status === 429).forEach(expectLimited);
      expect((await signIn(7, from("2001:db8:49::1"))).status).to.equal(400);
    });

    it("over the address's cap a try is not read, and takes nothing of the account's", async () => {
      const { email } = world.organization;
      const address = freshAddress();
      counts.leave(1, 10);
      await signIn(7, from(address));
      expect(statuses(await atOnce(3, () => signIn(email, from(address))))).to.deep.equal({ 429: 3 });
      expect((await signIn(email)).status).to.equal(401);
    });
  });

  describe("a change of the password", () => {
    let owner: World;
    let [current, next] = [PASSWORD, "Zk-9-tuvbex-Lp"];
    before(async () => {
      owner = await limitedWorld(service, WITHOUT_LIMITS);
    });

    const change = async () => {
      const { status } = await changePassword(owner.token, {
        body: { currentPassword: current, newPassword: next },
      });
      if (status === 204) [current, next] = [next, current];
      return status;
    };

    it("is let through while strangers use up the account's sign-ins", async () => {
      const { email } = owner.organization;
      await strangersTryOften(email);
      expectLimited(await signIn("", { body: { email, password: current } }));
      expect(await change()).to.equal(204);
    });

    it("10 a minute and person, from any addresses; wrong ones use up the account's sign-ins", async () => {
      const { email } = owner.organization;
      const wrong = (count: number) => atOnce(count, () => changePassword(owner.token));
      counts.leave(5, 10);
      expect(statuses(await wrong(3))).to.deep.equal({ 403: 3 });
      expect(statuses(await atOnce(4, () => signIn(email.toUpperCase())))).to.deep.equal({ 401: 2, 429: 2 });
      expect(statuses(await wrong(4))).to.deep.equal({ 403: 2, 429: 2 });
      expect(await change()).to.equal(429);
      clock.nextMinute();
      expect(await change()).to.equal(204);
    });

    it("a right one takes nothing of the account's sign-ins", async () => {
      counts.leave(1, 10);
      expect(await change()).to.equal(204);
      const answers = await atOnce(2, () => signIn(owner.organization.email));
      expect(statuses(answers)).to.deep.equal({ 401: 1, 429: 1 });
    });

    it("10 a minute and address, for however many accounts", async () => {
      const address = freshAddress();
      counts.leave(2, 10);
      const answers = await atOnce(3, (index) =>
        changePassword([owner, world, other][index]?.token ?? "", from(address)),
      );
      expect(statuses(answers)).to.deep.equal({ 403: 2, 429: 1 });
    });
  });

  describe("a first password", () => {
    const chosen = { token: "x".repeat(43), name: "Eve", password: PASSWORD };
    const owner = { organizationName: "Engines", email: "eve@example.com" };
    const paths = { "/v1/invites/accept": chosen, "/v1/setup": { ...chosen, ...owner } };

    for (const [path, body] of Object.entries(paths)) {
      it(`${path}: 10 a minute and address, good token or not`, async () => {
        const address = freshAddress();
        const choose = () => api.call("POST", path, { body, ...from(address) });
        counts.leave(2, 10);
        expect(statuses(await atOnce(4, choose))).to.deep.equal({ 404: 2, 429: 2 });
        expectLimited(await choose());
        clock.nextMinute();
        expect((await choose()).status).to.equal(404);
      });
    }
  });

  describe("a known device", () => {
    const known = z.object({ deviceToken: z.string(), user: z.object({ id: z.string() }) });

    it("signs in while strangers use up its e-mail's tries, and has 10 a minute of its own", async () => {
      const { deviceToken } = known.parse((await signInAs()).body);
      counts.forget();
      await strangersTryOften();
      expectLimited(await signInAs());
      const forged = `${deviceToken.slice(0, -1)}${deviceToken.endsWith("A") ? "E" : "A"}`;
      expectLimited(await signInAs({ deviceToken: forged }));
      expect((await signInAs({ deviceToken })).status).to.equal(200);
      const answers = await atOnce(4, () => signInAs({ deviceToken, password: "wrong" }));
      expect(statuses(answers)).to.deep.equal({ 401: 2, 429: 2 });
      expectLimited(await signInAs({ deviceToken }));
    });

    it("in a browser shows itself by a cookie that no script can read, to sign-in alone", async () => {
      const page = { "svc-session": "cookie", "sec-fetch-site": "same-origin" };
      const cookies = cookiesOf(await signInAs({}, { headers: page }));
      const [device] = cookies.filter(({ name }) => name === cookieNames(service.baseUrl).device);
      if (device === undefined) throw new Error("it sets the cookie of a device");
      expect(device.attributes).to.include({ httpOnly: true, sameSite: "strict", path: "/v1/auth/sign-in" });
      counts.forget();
      await strangersTryOften();
      const cookie = cookieHeader([device]);
      expect((await signInAs({}, { headers: { ...page, cookie } })).status).to.equal(200);
      expectLimited(await signInAs({}, { headers: { cookie, "sec-fetch-site": "cross-site" } }));
    });

    it("gets no client a try more at an account that it is not known to", async () => {
      // An account of the same e-mail in an organization of the stranger's, who knows its password.
      const { users } = authCollections(service.db);
      const owner = await users.findOne({ _id: world.organization.userId });
      const { organizationId } = other.organization;
      if (owner === null) throw new Error("an organization has its owner");
      const passwords = await testPasswords(service.db);
      const passwordHash = await passwords.hash(owner.email, "the stranger's own");
      const account = { ...owner, _id: randomUUID(), organizationId, passwordHash };
      await users.insertOne(TEST_ACCESS_PROOFS.proven("user", account));
      const own = await signInAs({ password: "the stranger's own" });
      const { deviceToken } = known.parse(own.body);
      counts.forget();
      await strangersTryOften();
      expect((await signInAs({ deviceToken, password: "the stranger's own" })).status).to.equal(200);
      expect((await signInAs({ deviceToken })).status).to.equal(401);
    });

    it("is known by a token of ours alone, for 90 days", () => {
      const devices = new DeviceTokens(MasterKey.parse(TEST_MASTER_KEY, "a test"), randomBytes);
      const userId = randomUUID();
      const token = devices.issue(userId, new Date(0));
      expect(devices.read(token, days(89))).to.include({ userId });
      for (const wrong of [
        `${token.slice(0, -1)}${token.endsWith("A") ? "E" : "A"}`,
        token.replace(/-\d+\./, "-9999999999."),
        token.replace(userId, randomUUID()),
      ]) {
        expect(devices.read(wrong, days(1)), wrong).to.equal(null);
      }
      expect(devices.read(token, days(90))).to.equal(null);
    });
  });

  describe("step-up", () => {
    const body = { method: "totp", code: "000000" };
    const stepUp = (token: string, options: CallOptions = {}) =>
      api.call("POST", "/v1/auth/step-up", { token, body, ...options });

    it("10 a minute and account, from however many addresses and sessions", async () => {
      const { email, password } = world.organization;
      const tokens = [world.token, await api.signIn(email, password)];
      counts.leave(3, 10);
      const answers = await atOnce(6, (index) => stepUp(tokens[index % 2] ?? ""));
      expect(statuses(answers)).to.deep.equal({ 403: 3, 429: 3 });
      expectLimited(await stepUp(world.token, { body: {} }));
      expect((await stepUp(other.token)).status).to.equal(403);
    });

    it("10 a minute and address, for however many accounts, apart from its sign-ins", async () => {
      const address = freshAddress();
      counts.leave(2, 10);
      await atOnce(3, () => signIn(7, from(address)));
      const answers = await atOnce(4, (index) =>
        stepUp([world, other][index % 2]?.token ?? "", from(address)),
      );
      expect(statuses(answers)).to.deep.equal({ 403: 2, 429: 2 });
      expect((await stepUp(world.token)).status).to.equal(403);
    });
  });

  describe("sign-in and step-up by passkey", () => {
    it("10 a minute and address for options, and again for responses, apart from passwords", async () => {
      const address = from();
      const begin = () => api.call("POST", "/v1/auth/sign-in/passkey/options", address);
      counts.leave(2, 10);
      expect(statuses(await atOnce(4, begin))).to.deep.equal({ 200: 2, 429: 2 });
      const answers = await atOnce(4, (index) => signInBy(`AAA${index}`, address));
      expect(statuses(answers)).to.deep.equal({ 401: 2, 429: 2 });
      answers.filter(({ status }) => status === 429).forEach(expectLimited);
      expect((await signIn("nobody@example.com", address)).status).to.equal(401);
    });

    it("10 a minute and passkey, known or not, from however many addresses", async () => {
      counts.leave(2, 10);
      const answers = await atOnce(4, () => signInBy("BBBB"));
      expect(statuses(answers)).to.deep.equal({ 401: 2, 429: 2 });
      expect((await signInBy("CCCC")).status).to.equal(401);
      clock.nextMinute();
      expect((await signInBy("BBBB")).status).to.equal(401);
    });

    it("10 a minute and account for step-up's options", async () => {
      counts.leave(2, 10);
      const { token } = world;
      const answers = await atOnce(3, () => api.call("POST", "/v1/auth/step-up/options", { token }));
      expect(statuses(answers)).to.deep.equal({ 403: 2, 429: 1 });
    });
  });

  describe("organization keys", () => {
    const ID = "okey_01ARZ3NDEKTSV4RRFFQ69G5FAV";
    const choice = { name: "x", scopes: ["agents:read"], binding: { type: "organization" } };
    const mint = ({ token }: World, body: unknown = choice) =>
      api.call("POST", "/v1/organization-keys", { token, body });
    const rotate = ({ token }: World) => api.call("POST", `/v1/organization-keys/${ID}/rotate`, { token });
    const revoke = ({ token }: World) => api.call("DELETE", `/v1/organization-keys/${ID}`, { token });

    it("the cap comes after step-up and before the shape: a forbidden call is not counted", async () => {
      counts.leave(2, 30);
      expect(statuses(await atOnce(3, () => mint(world)))).to.deep.equal({ 403: 3 });
      await elevate(world, clock.read());
      expect(statuses(await atOnce(2, () => mint(world, {})))).to.deep.equal({ 400: 2 });
      const limited = await mint(world, "{");
      expectLimited(limited);
      expect(shown(limited).limit).to.equal(WITHOUT_LIMITS.restPerMinute);
    });

    it("minting, rotating and revoking are 30 a minute and user each, every one on its own", async () => {
      const { organizationId } = world.organization;
      await elevate(world, clock.read());
      await elevate(other, clock.read());
      counts.leave(2, 30);
      expect(statuses(await atOnce(4, () => mint(world)))).to.deep.equal({ 201: 2, 429: 2 });
      const keys = service.db.collection("organization_keys");
      expect(await keys.countDocuments({ organizationId })).to.equal(2);
      expect(statuses(await atOnce(4, () => rotate(world)))).to.deep.equal({ 404: 2, 429: 2 });
      expect(statuses(await atOnce(4, () => revoke(world)))).to.deep.equal({ 404: 2, 429: 2 });
      expect((await api.call("GET", "/v1/organization-keys", { token: world.token })).status).to.equal(200);
      expect((await mint(other)).status).to.equal(201);
    });
  });

  describe("archives of agents", () => {
    const agentId = randomUUID();
    const archive = async (token: string) =>
      codeOf(await world.api.call("archiveAgent", { token, id: agentId }));

    it("30 a minute and key, over REST and MCP together; refused ones count", async () => {
      const [key, second] = [await mintKey(world, clock), await mintKey(world, clock)];
      const overMcp = () => callTool(service, key, "archive_agent", { agentId });
      counts.leave(3, 30);
      expect([await overMcp(), await archive(key), await overMcp()]).to.deep.equal(
        times(3, () => "NOT_FOUND"),
      );
      expect([await overMcp(), await archive(key)]).to.deep.equal(["RATE_LIMITED", "RATE_LIMITED"]);
      expect(await archive(second)).to.equal("NOT_FOUND");
      clock.nextMinute();
      expect([await overMcp(), await archive(key)]).to.deep.equal(["NOT_FOUND", "NOT_FOUND"]);
    });

    it("a person's are apart from their key mints, and asked after step-up", async () => {
      const { token } = world;
      await elevate(world, new Date(0));
      counts.leave(1, 30);
      expect([await archive(token), await archive(token)]).to.deep.equal(times(2, () => "STEP_UP_REQUIRED"));
      await elevate(world, clock.read());
      expect([await archive(token), await archive(token)]).to.deep.equal(["NOT_FOUND", "RATE_LIMITED"]);
      expect((await world.api.call("mintAgentKey", { token, id: agentId })).status).to.equal(404);
    });
  });
});
