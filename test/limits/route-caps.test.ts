import { randomUUID } from "node:crypto";
import { expect } from "chai";
import { z } from "zod";
import { cookieNames } from "../../src/contract/cookies.ts";
import { authCollections } from "../../src/store/identity-documents.ts";
import { Passwords } from "../../src/identity/passwords.ts";
import { Api, type CallOptions, freshAddress } from "../support/api.ts";
import { cookieHeader, cookiesOf } from "../support/cookies.ts";
import { PASSWORD, type TestService, WITHOUT_LIMITS } from "../support/service.ts";
import { madeUpAssertion } from "../support/passkeys.ts";
import { elevate, type World } from "../support/world.ts";
import {
  atOnce,
  expectLimited,
  from,
  inCrowds,
  limitedWorld,
  shown,
  type FixedClock,
  startLimitedService,
  statuses,
} from "./support.ts";

describe("caps of single routes", () => {
  let clock: FixedClock;
  let service: TestService;
  let api: Api;
  before(async () => {
    ({ clock, service } = await startLimitedService());
    api = new Api(service.baseUrl);
  });
  beforeEach(() => clock.nextMinute());
  after(() => service.stop());

  const newWorld = () => limitedWorld(service, WITHOUT_LIMITS);
  const signIn = (email: unknown, options: CallOptions = {}) =>
    api.call("POST", "/v1/auth/sign-in", { body: { email, password: "wrong" }, ...options });

  const signInAs = (world: World, fields: object = {}, options: CallOptions = {}) => {
    const { email, password } = world.organization;
    return signIn("", { body: { email, password, ...fields }, ...options });
  };
  /** Without a password, which counts as well and need not be hashed. */
  const strangersTryOften = async ({ organization: { email } }: World) => {
    const answers = await atOnce(12, () => signIn(email, { body: { email } }));
    expect(Object.keys(statuses(answers))).to.deep.equal(["400", "429"]);
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
      const { email } = (await newWorld()).organization;
      clock.nextMinute();
      const tries: readonly (readonly [number, () => ReturnType<typeof signIn>])[] = [
        [400, () => signIn(7, from(address))],
        [400, () => api.call("POST", "/v1/auth/sign-in", { body: "{", ...from(address) })],
        [413, () => signIn("x".repeat(300_000), from(address))],
        [200, () => signIn("", { body: { email, password: PASSWORD }, ...from(address) })],
      ];
      for (const [status, attempt] of tries) expect((await attempt()).status).to.equal(status);
      const answers = await inCrowds(20, (index) => signIn(`nobody-${index}@example.com`, from(address)));
      expect(statuses(answers)).to.deep.equal({ 401: 6, 429: 14 });
      answers.filter(({ status }) => status === 429).forEach(expectLimited);
      const right = { body: { email, password: PASSWORD } };
      expectLimited(await signIn("", { ...right, ...from(address) }));
      expect((await signIn("", right)).status).to.equal(200);
    });

    for (const known of [true, false]) {
      it(`10 a minute for ${known ? "a known" : "an unknown"} e-mail, from any addresses, in any spelling`, async () => {
        const { email } = known
          ? (await newWorld()).organization
          : { email: `no-${freshAddress()}@example.com` };
        clock.nextMinute();
        const spellings = [email, email.toUpperCase(), ` ${email}`, `${email}\t`, email.replace("e", "E")];
        const answers = await atOnce(25, (index) => signIn(spellings[index % spellings.length]));
        expect(statuses(answers)).to.deep.equal({ 401: 10, 429: 15 });
        expectLimited(await signIn(email, { body: { email, password: PASSWORD } }));
        // Before the shape is judged, so that it does not tell whether a try counted.
        expectLimited(await signIn(email, { body: { email } }));
        expect((await signIn(`x${email}`)).status).to.equal(401);
        clock.nextMinute();
        expect((await signIn(email)).status).to.equal(401);
      });
    }

    it("100 a minute and /48 of IPv6, from however many networks in it", async () => {
      const answers = await inCrowds(120, (index) => signIn(7, from(`2001:db8:48:${index.toString(16)}::1`)));
      expect(statuses(answers)).to.deep.equal({ 400: 100, 429: 20 });
      answers.filter(({ status }) => status === 429).forEach(expectLimited);
      expect((await signIn(7, from("2001:db8:49::1"))).status).to.equal(400);
    });

    it("over the address's cap a try is not read, and takes nothing of the account's", async () => {
      const { email } = (await newWorld()).organization;
      clock.nextMinute();
      const address = freshAddress();
      await atOnce(10, (index) => signIn(`nobody-${index}@example.com`, from(address)));
      const answers = await inCrowds(20, () => signIn(email, from(address)));
      expect(statuses(answers)).to.deep.equal({ 429: 20 });
      expect((await signIn(email)).status).to.equal(401);
    });
  });

  describe("a change of the password", () => {
    const right = { body: { currentPassword: PASSWORD, newPassword: "Zk-9-tuvbex-Lp" } };

    it("is let through while strangers use up the account's sign-ins", async () => {
      const world = await newWorld();
      clock.nextMinute();
      await strangersTryOften(world);
      expectLimited(await signInAs(world));
      expect((await changePassword(world.token, right)).status).to.equal(204);
    });

    it("10 a minute and person, from any addresses; wrong ones use up the account's sign-ins", async () => {
      const world = await newWorld();
      const { email } = world.organization;
      clock.nextMinute();
      expect(statuses(await atOnce(7, () => changePassword(world.token)))).to.deep.equal({ 403: 7 });
      expect(statuses(await atOnce(5, () => signIn(email.toUpperCase())))).to.deep.equal({ 401: 3, 429: 2 });
      expect(statuses(await atOnce(5, () => changePassword(world.token)))).to.deep.equal({ 403: 3, 429: 2 });
      expectLimited(await changePassword(world.token, right));
      clock.nextMinute();
      expect((await changePassword(world.token, right)).status).to.equal(204);
    });

    it("a right one takes nothing of the account's sign-ins", async () => {
      const world = await newWorld();
      const { email } = world.organization;
      clock.nextMinute();
      expect((await changePassword(world.token, right)).status).to.equal(204);
      expect(statuses(await atOnce(11, () => signIn(email)))).to.deep.equal({ 401: 10, 429: 1 });
    });

    it("10 a minute and address, for however many accounts", async () => {
      const worlds = [await newWorld(), await newWorld()];
      clock.nextMinute();
      const address = freshAddress();
      const answers = await atOnce(12, (index) =>
        changePassword(worlds[index % 2]?.token ?? "", from(address)),
      );
      expect(statuses(answers)).to.deep.equal({ 403: 10, 429: 2 });
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
        expect(statuses(await inCrowds(14, choose))).to.deep.equal({ 404: 10, 429: 4 });
        expectLimited(await choose());
        clock.nextMinute();
        expect((await choose()).status).to.equal(404);
      });
    }
  });

  describe("a known device", () => {
    const known = z.object({ deviceToken: z.string(), user: z.object({ id: z.string() }) });
    const deviceOf = async (world: World) => known.parse((await signInAs(world)).body).deviceToken;

    it("signs in while strangers use up its e-mail's tries, and has 10 a minute of its own", async () => {
      const world = await newWorld();
      const deviceToken = await deviceOf(world);
      clock.nextMinute();
      await strangersTryOften(world);
      expectLimited(await signInAs(world));
      expect((await signInAs(world, { deviceToken })).status).to.equal(200);
      const answers = await atOnce(12, () => signInAs(world, { deviceToken, password: "wrong" }));
      expect(statuses(answers)).to.deep.equal({ 401: 9, 429: 3 });
      expectLimited(await signInAs(world, { deviceToken }));
    });

    it("in a browser shows itself by a cookie that no script can read, to sign-in alone", async () => {
      const world = await newWorld();
      const page = { "svc-session": "cookie", "sec-fetch-site": "same-origin" };
      clock.nextMinute();
      const cookies = cookiesOf(await signInAs(world, {}, { headers: page }));
      const [device] = cookies.filter(({ name }) => name === cookieNames(service.baseUrl).device);
      if (device === undefined) throw new Error("it sets the cookie of a device");
      expect(device.attributes).to.include({ httpOnly: true, sameSite: "strict", path: "/v1/auth/sign-in" });
      await strangersTryOften(world);
      const cookie = cookieHeader([device]);
      expect((await signInAs(world, {}, { headers: { ...page, cookie } })).status).to.equal(200);
      expectLimited(await signInAs(world, {}, { headers: { cookie, "sec-fetch-site": "cross-site" } }));
    });

    it("gets no client a try more at an account that it is not known to", async () => {
      const [world, stranger] = [await newWorld(), await newWorld()];
      // An account of the same e-mail in an organization of the stranger's, who knows its password.
      const { users } = authCollections(service.db);
      const owner = await users.findOne({ _id: world.organization.userId });
      const { organizationId } = stranger.organization;
      if (owner === null) throw new Error("an organization has its owner");
      const passwords = await Passwords.on(service.db);
      const passwordHash = await passwords.hash(owner.email, "the stranger's own");
      await users.insertOne({ ...owner, _id: randomUUID(), organizationId, passwordHash });
      clock.nextMinute();
      const own = await signInAs(world, { password: "the stranger's own" });
      const { deviceToken } = known.parse(own.body);
      clock.nextMinute();
      await strangersTryOften(world);
      expect((await signInAs(world, { deviceToken, password: "the stranger's own" })).status).to.equal(200);
      expect((await signInAs(world, { deviceToken })).status).to.equal(401);
    });

    it("is known by a token of ours alone, for 90 days", async () => {
      const world = await newWorld();
      const deviceToken = await deviceOf(world);
      const day = 86_400_000;
      for (const wrong of [
        `${deviceToken.slice(0, -1)}${deviceToken.endsWith("A") ? "E" : "A"}`,
        deviceToken.replace(/-\d+\./, "-9999999999."),
      ]) {
        clock.nextMinute();
        await strangersTryOften(world);
        expectLimited(await signInAs(world, { deviceToken: wrong }));
      }
      clock.advance(89 * day);
      await strangersTryOften(world);
      expect((await signInAs(world, { deviceToken })).status).to.equal(200);
      clock.advance(day);
      await strangersTryOften(world);
      expectLimited(await signInAs(world, { deviceToken }));
    });
  });

  describe("step-up", () => {
    const body = { method: "totp", code: "000000" };
    const stepUp = (token: string, options: CallOptions = {}) =>
      api.call("POST", "/v1/auth/step-up", { token, body, ...options });

    it("10 a minute and account, from however many addresses and sessions", async () => {
      const world = await newWorld();
      const { email, password } = world.organization;
      const tokens = [world.token, await api.signIn(email, password)];
      clock.nextMinute();
      const answers = await atOnce(30, (index) => stepUp(tokens[index % 2] ?? ""));
      expect(statuses(answers)).to.deep.equal({ 403: 10, 429: 20 });
      expectLimited(await stepUp(world.token, { body: {} }));
      const stranger = await newWorld();
      expect((await stepUp(stranger.token)).status).to.equal(403);
    });

    it("10 a minute and address, for however many accounts, apart from its sign-ins", async () => {
      const worlds = [await newWorld(), await newWorld()];
      clock.nextMinute();
      const address = freshAddress();
      await atOnce(10, (index) => signIn(`nobody-${index}@example.com`, from(address)));
      const answers = await atOnce(12, (index) => stepUp(worlds[index % 2]?.token ?? "", from(address)));
      expect(statuses(answers)).to.deep.equal({ 403: 10, 429: 2 });
      expect((await stepUp(worlds[0]?.token ?? "")).status).to.equal(403);
    });
  });

  describe("sign-in and step-up by passkey", () => {
    it("10 a minute and address for options, and again for responses, apart from passwords", async () => {
      const address = from();
      const begin = () => api.call("POST", "/v1/auth/sign-in/passkey/options", address);
      expect(statuses(await atOnce(12, begin))).to.deep.equal({ 200: 10, 429: 2 });
      const answers = await atOnce(12, (index) => signInBy(`AAA${index}`, address));
      expect(statuses(answers)).to.deep.equal({ 401: 10, 429: 2 });
      answers.filter(({ status }) => status === 429).forEach(expectLimited);
      expect((await signIn("nobody@example.com", address)).status).to.equal(401);
    });

    it("10 a minute and passkey, known or not, from however many addresses", async () => {
      const answers = await atOnce(15, () => signInBy("BBBB"));
      expect(statuses(answers)).to.deep.equal({ 401: 10, 429: 5 });
      expect((await signInBy("CCCC")).status).to.equal(401);
      clock.nextMinute();
      expect((await signInBy("BBBB")).status).to.equal(401);
    });

    it("10 a minute and account for step-up's options", async () => {
      const world = await newWorld();
      const begin = () => api.call("POST", "/v1/auth/step-up/options", { token: world.token });
      expect(statuses(await atOnce(13, begin))).to.deep.equal({ 403: 10, 429: 3 });
    });
  });

  describe("organization keys", () => {
    const ID = "okey_01ARZ3NDEKTSV4RRFFQ69G5FAV";
    const choice = { name: "x", scopes: ["agents:read"], binding: { type: "organization" } };
    const mint = ({ token }: World, body: unknown = choice) =>
      api.call("POST", "/v1/organization-keys", { token, body });
    const rotate = ({ token }: World) => api.call("POST", `/v1/organization-keys/${ID}/rotate`, { token });
    const revoke = ({ token }: World) => api.call("DELETE", `/v1/organization-keys/${ID}`, { token });

    it("minting, rotating and revoking are 30 a minute and user each, every one on its own", async () => {
      const world = await newWorld();
      await elevate(world, clock.read());
      const minted = await atOnce(40, () => mint(world));
      expect(statuses(minted)).to.deep.equal({ 201: 30, 429: 10 });
      expect(await service.db.collection("organization_keys").countDocuments()).to.equal(30);
      expect(statuses(await atOnce(35, () => rotate(world)))).to.deep.equal({ 404: 30, 429: 5 });
      expect(statuses(await atOnce(35, () => revoke(world)))).to.deep.equal({ 404: 30, 429: 5 });
      expect((await api.call("GET", "/v1/organization-keys", { token: world.token })).status).to.equal(200);
      const stranger = await newWorld();
      await elevate(stranger, clock.read());
      expect((await mint(stranger)).status).to.equal(201);
    });

    it("the cap comes after step-up and before the shape: a forbidden call is not counted", async () => {
      const world = await newWorld();
      expect(statuses(await atOnce(31, () => mint(world)))).to.deep.equal({ 403: 31 });
      await elevate(world, clock.read());
      expect(statuses(await atOnce(30, () => mint(world, {})))).to.deep.equal({ 400: 30 });
      const limited = await mint(world, "{");
      expectLimited(limited);
      expect(shown(limited).limit).to.equal(WITHOUT_LIMITS.restPerMinute);
    });
  });
});
