import { randomUUID } from "node:crypto";
import { expect } from "chai";
import { reconcileOn } from "../../server/admin/reconcile/reconcile.ts";
import { type RotateOptions, rotateMasterKey } from "../../server/admin/rotate-master-key.ts";
import { verifyAuditLog } from "../../server/admin/verify-audit-log.ts";
import { MasterKey } from "../../src/secrets/master-key.ts";
import { codeAt } from "../identity/support.ts";
import { ROTATION_HOLD, type RotationHold } from "../restart/support/rotation-points.ts";
import { Child, cleanEnvironment } from "../support/process.ts";
import { TEST_MASTER_KEY } from "../support/payloads.ts";
import { startTestService, type TestService } from "../support/service.ts";
import {
  cardPayment,
  elevate,
  newEndpoint,
  newWorld,
  organizationKey,
  testDelivery,
  type TestAgent,
  type TestOrganizationKey,
  until,
  type World,
  worldOf,
} from "../support/world.ts";

const NEW_KEY = "the-newest-master-key-of-this-test-0123456789";
const OLD_ID = MasterKey.parse(TEST_MASTER_KEY, "a test").newestId;
const NEW_ID = MasterKey.parse(NEW_KEY, "a test").newestId;
const BOTH = { MASTER_KEY: "", MASTER_KEYS: `${NEW_KEY} ${TEST_MASTER_KEY}` };
/** A restart takes another port; sessions are bound to the public address. */
const URL = "https://service.example";
const RULES = "teams' approval rules";
/** The last one has three places done before it, in two runs. */
const HOLDS: readonly RotationHold[] = [
  { side: "before", write: 1 },
  { side: "after", write: 1 },
  { side: "before", write: 3 },
];
const HELD_MS = 120_000;
/** Looks of a process, and the time that a retirement leaves it; shorter than in use. */
const TIMES = { intervalMs: 300, validMs: 4_000 };
const RETIREMENT_MS = 8_000;
const PLAIN = {
  isCheck: false,
  retire: null,
  newSessionKey: false,
  retirementMs: RETIREMENT_MS,
  onProgress: () => undefined,
};

/** One service on one database, under the old master key, under both, and under the new one alone. */
describe("A service whose master key is rotated", () => {
  let service: TestService;
  let world: World;
  let used: TestAgent;
  let idle: TestAgent;
  let held: { readonly approvalId: string };
  let key: TestOrganizationKey;
  let endpoint: { readonly id: string };
  let refreshToken = "";
  let idleRefreshToken = "";
  let totp = "";
  let invited = "";
  let create: { readonly token: string; readonly body: object };
  let firstKey: string | null = null;

  const signIn = async () => {
    const { email, password } = world.organization;
    return (await world.api.ok("signIn", 200, { body: { email, password } })).refreshToken ?? "";
  };
  const rotate = (options: Partial<RotateOptions> = {}) =>
    rotateMasterKey(service.env, { ...PLAIN, ...options });
  const neededBy = async () =>
    (await rotate({ isCheck: true })).keys.find(({ id }) => id === OLD_ID)?.neededBy ?? {};

  /** The command as operators run it, killed with SIGKILL in its midst, and then to its end. */
  async function killedAndDone() {
    for (const hold of HOLDS) {
      const env = { ...cleanEnvironment(), ...service.env, [ROTATION_HOLD]: JSON.stringify(hold) };
      const command = Child.node("test/restart/programs/rotating.ts", ["admin", "rotate-master-key"], env);
      await command.printed(/^held /m, HELD_MS);
      expect(await command.end("SIGKILL")).to.include({ signal: "SIGKILL" });
    }
    return rotate();
  }

  async function continueUnder(settings: Readonly<Record<string, string>>): Promise<void> {
    await service.stop();
    service = await startTestService({ continues: service, settings, publicUrl: URL });
    world = worldOf(service, world.organization);
  }

  before(async () => {
    service = await startTestService({ publicUrl: URL });
    world = await newWorld(service);
    [used, idle] = [await world.agent({ autoApprovalThresholdCents: 1_000 }), await world.agent()];
    await used.pay();
    await idle.pay();
    held = await used.hold({ amountCents: 2_000 });
    key = await organizationKey(world);
    const rules = { token: world.token, id: world.organization.teamId, body: { rules: [], version: 1 } };
    await world.api.ok("setTeamApprovalRules", 200, rules);
    endpoint = await newEndpoint(world);
    [refreshToken, idleRefreshToken] = [await signIn(), await signIn()];
    await elevate(world);
    const { token } = world;
    const role = "member";
    const invite = await world.api.ok("createInvite", 201, {
      token,
      body: { email: "guest@example.com", role },
    });
    invited = invite.token ?? "";
    const { teamId } = world.organization;
    create = {
      token: key.token,
      body: { name: "Agent", teamId, budgetCents: 1, idempotencyKey: randomUUID() },
    };
    firstKey = (await world.api.ok("createAgent", 201, create)).apiKey;
    totp = (await world.api.ok("enrollTotp", 201, { token })).secret;
  });
  after(() => service.stop());

  it("goes on under both keys: sessions, links, agents, payments on hold, first keys, webhooks", async () => {
    await continueUnder(BOTH);
    const { api, token } = world;
    await api.ok("getMe", 200, { token });
    refreshToken = (await api.ok("refreshSession", 200, { body: { refreshToken } })).refreshToken ?? "";
    expect(await api.ok("checkInvite", 200, { body: { token: invited } })).to.include({
      email: "guest@example.com",
    });
    await api.ok("createPayment", 201, { token: used.key, body: cardPayment() });
    await elevate(world);
    await api.ok("approveApproval", 200, { token, id: held.approvalId });
    expect((await api.ok("createAgent", 200, create)).apiKey).to.equal(firstKey);
    await testDelivery(world, endpoint);
    await api.ok("confirmTotp", 200, { token, body: { code: await codeAt(totp, new Date()) } });
  });

  it("hashes of keys follow the newest master key at their next use", async () => {
    const hashes = async () => {
      const agent = await service.db
        .collection("agents")
        .findOne<StoredAgent>({ "key.last4": used.key.slice(-4) });
      const stored = await service.db
        .collection("organization_keys")
        .findOne<StoredKey>({ organizationId: world.organization.organizationId });
      const all = [agent?.key.hash, stored?.hash];
      return all.every((hash) => hash?.startsWith(`${NEW_ID}.`)) ? all : null;
    };
    await until("both hashes are under the newest key", hashes);
    await world.api.ok("createPayment", 201, { token: used.key, body: cardPayment() });
  });

  it("is sealed anew in use, through kills of the command, which names what needs the old key", async () => {
    const PROVEN = ["projects' records", "teams' records"];
    expect(await neededBy()).to.include.keys("webhook secrets", "session signing keys", ...PROVEN, RULES);
    const rotating = new AbortController();
    const use = async () => {
      while (!rotating.signal.aborted) {
        await elevate(world);
        await world.api.ok("rotateWebhookSecret", 201, { token: world.token, id: endpoint.id });
        await world.api.ok("createPayment", 201, { token: used.key, body: cardPayment() });
      }
    };
    const using = use();
    const { rotated, unreadable } = await killedAndDone().finally(() => rotating.abort());
    await using;
    expect(rotated).to.be.greaterThan(0);
    expect(unreadable, "values that no key opens").to.deep.equal({});
    await testDelivery(world, endpoint);
    const needs = await neededBy();
    expect(needs).to.include({ "agents' keys": 2 }).and.include.keys("sessions", "open invites");
    expect(needs).not.to.have.any.keys(
      "webhook secrets",
      "TOTP secrets",
      "agents' records",
      "payments in progress",
      RULES,
      ...PROVEN,
    );
    expect((await rotate()).rotated, "again").to.equal(0);
  });

  it("retires the old key once a server that began with it has ended, and keeps what that made", async () => {
    const lagging = await startTestService({
      continues: service,
      worker: false,
      settings: { MASTER_KEY: "", MASTER_KEYS: `${TEST_MASTER_KEY} ${NEW_KEY}` },
      publicUrl: URL,
      keyWatchTimes: TIMES,
    });
    const { api } = worldOf(lagging, world.organization);
    const ended = lagging.failed.catch(String);
    const secretUnder = async () => {
      const { token } = world;
      const { status } = await api.call("rotateWebhookSecret", { token, id: endpoint.id });
      const endpoints = service.db.collection<StoredEndpoint>("webhook_endpoints");
      const found = await endpoints.findOne({ _id: endpoint.id });
      return { status, keyId: found?.secret.sealed.slice(0, OLD_ID.length) };
    };
    await elevate(world);
    expect(await secretUnder()).to.deep.equal({ status: 201, keyId: OLD_ID });
    const late: Promise<unknown>[] = [];
    const onProgress = (line: string) => {
      if (line.includes("retired in")) late.push(secretUnder());
    };
    const { keys } = await rotate({ retire: OLD_ID, onProgress });
    expect(await Promise.all(late), "after the announcement").to.deep.equal([{ status: 201, keyId: OLD_ID }]);
    expect(keys.find(({ id }) => id === OLD_ID)).to.deep.include({ state: "retired" });
    expect(await ended).to.include("is being retired");
    expect(await secretUnder(), "had it not ended yet").to.deep.equal({ status: 503, keyId: NEW_ID });
    expect(await neededBy()).not.to.have.any.keys(
      "webhook secrets",
      "session signing keys",
      "projects' records",
    );
    await lagging.stop();
  });

  it("goes on under the new key alone once the old one is retired; what was given up is dead", async () => {
    const { keys } = await rotate({ newSessionKey: true });
    expect(keys.map(({ id, state }) => [id, state])).to.deep.equal([
      [NEW_ID, "newest"],
      [OLD_ID, "retired"],
    ]);
    await continueUnder({ MASTER_KEY: NEW_KEY });
    const { api, token } = world;
    await api.refused("getMe", 401, "UNAUTHORIZED", { token });
    const fresh = await api.ok("refreshSession", 200, { body: { refreshToken } });
    await api.refused("refreshSession", 401, "UNAUTHORIZED", { body: { refreshToken: idleRefreshToken } });
    await api.ok("createPayment", 201, { token: used.key, body: cardPayment() });
    await api.refused("createPayment", 401, "UNAUTHORIZED", { token: idle.key, body: cardPayment() });
    world = { ...world, token: fresh.token ?? "" };
    await testDelivery(world, endpoint);
    const { organizationId } = world.organization;
    expect(await verifyAuditLog(service.env, { organization: organizationId })).to.include({
      unbroken: true,
    });
    const options = { organizationId, repair: false, patienceMs: 20_000, onProgress: () => undefined };
    expect((await reconcileOn(service.connections, service.env, options)).left).to.deep.equal([]);
  });
});

interface StoredEndpoint {
  readonly _id: string;
  readonly secret: { readonly sealed: string };
}
interface StoredKey {
  readonly hash: string;
}
interface StoredAgent {
  readonly key: StoredKey;
}
