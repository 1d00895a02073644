import { expect } from "chai";
import { startTestService, type TestService } from "../support/service.ts";
import {
  archive,
  createBody,
  deliveries,
  expectDead,
  expectNoKey,
  hasDeliveryKey,
  keyOf,
  lateCreate,
  made,
  mintKey,
  orchestrator,
  readAgent,
  replay,
  revokeKey,
  windowClosed,
} from "../support/life.ts";
import { elevate, newWorld, rotated, type TestOrganizationKey, times, type World } from "../support/world.ts";

/** The block that an answer with this key comes with. */
const blockOf = ({ service }: World, apiKey: string | null) => ({
  mcpServers: {
    "agent-spending-control": {
      type: "http",
      url: `${service.baseUrl}/mcp`,
      headers: { Authorization: `Bearer ${String(apiKey)}` },
    },
  },
});

describe("the delivery of an agent's first key", () => {
  describe("inside the window", () => {
    let world: World;
    let by: TestOrganizationKey;
    before(async () => {
      world = await newWorld();
      by = await orchestrator(world);
    });

    it("every replay by the lineage, a rotated key's too, delivers the same working key and block", async () => {
      const own = await orchestrator(world);
      const agent = await made(world, own);
      const answers = await Promise.all(times(5, () => replay(world, agent, own.token)));
      const successor = await rotated(world, own);
      await world.api.refused("createAgent", 401, "UNAUTHORIZED", { token: own.token, body: agent.body });
      answers.push(await replay(world, agent, successor.token));
      for (const { apiKey, keyDelivery, mcpConfigBlock, ...rest } of answers) {
        expect([apiKey, keyDelivery, rest.agent.id]).to.deep.equal([agent.key, undefined, agent.id]);
        expect(mcpConfigBlock).to.deep.equal(blockOf(world, agent.key));
      }
      await world.api.ok("listPayments", 200, { token: keyOf(agent) });
      expect((await replay(world, agent, successor.token)).apiKey, "also once it is used").to.equal(
        agent.key,
      );
    });

    it("another lineage's same idempotency key and payload is a create of its own with its own key", async () => {
      const [first, other] = [await made(world, by), await orchestrator(world)];
      const request = { token: other.token, body: first.body };
      const second = await world.api.ok("createAgent", 201, request);
      expect(second.agent.id).not.to.equal(first.id);
      expect(second.apiKey).to.be.a("string").and.not.to.equal(first.key);
      expect((await replay(world, first, other.token)).apiKey).to.equal(second.apiKey);
      expect((await replay(world, first, by.token)).apiKey).to.equal(first.key);
    });

    it("a session gets it once, with or without an idempotency key, and nothing is sealed for it", async () => {
      const body = createBody(world);
      const request = { token: world.token, body };
      const { agent, apiKey } = await world.api.ok("createAgent", 201, request);
      expect(apiKey).to.match(/^sk_svc_live_/);
      expect((await deliveries(world).findOne({ _id: agent.id }))?.sealed).to.equal(null);
      expect(await hasDeliveryKey(world, agent.id)).to.equal(false);
      for (const _ of times(2, () => null)) {
        expectNoKey(await world.api.ok("createAgent", 200, request), undefined);
      }
      const { idempotencyKey: _key, ...without } = body;
      expect((await world.api.ok("createAgent", 201, { ...request, body: without })).apiKey).to.be.a(
        "string",
      );
    });

    it("another payload under the same key is 422, and no key is in that answer", async () => {
      const agent = await made(world, by);
      const body = { ...agent.body, budgetCents: 1 };
      const refused = await world.api.refused("createAgent", 422, "IDEMPOTENCY_KEY_REUSED", {
        token: by.token,
        body,
      });
      expect(JSON.stringify(refused)).not.to.include("sk_svc_live_");
    });

    it("after a person revoked the key, minted another, or archived the agent, a replay has nulls", async () => {
      const agent = await made(world, by);
      await revokeKey(world, agent);
      const revoked = await replay(world, agent, by.token);
      expectNoKey(revoked, undefined);
      expect(revoked.agent.key).to.equal(null);
      const { apiKey, key } = await mintKey(world, agent);
      const minted = await replay(world, agent, by.token);
      expectNoKey(minted, undefined);
      expect(minted.agent.key?.id).to.equal(key.id);
      expect(JSON.stringify(minted)).not.to.include(apiKey);
      await archive(world, agent);
      const archived = await replay(world, agent, by.token);
      expectNoKey(archived, undefined);
      expect([archived.agent.state, archived.agent.key]).to.deep.equal(["archived", null]);
    });

    it("a paused agent's key is delivered again: it is kept", async () => {
      const agent = await made(world, by);
      await world.api.ok("pauseAgent", 200, { token: by.token, id: agent.id });
      const { apiKey, agent: record } = await replay(world, agent, by.token);
      expect([apiKey, record.state]).to.deep.equal([agent.key, "paused"]);
    });

    it("the sealed key can't be opened by the database, which has neither it nor idempotency key", async () => {
      const agent = await made(world, by);
      const sealed = (await deliveries(world).findOne({ _id: agent.id }))?.sealed ?? "";
      expect(sealed).not.to.equal("");
      expect(await hasDeliveryKey(world, agent.id)).to.equal(true);
      const collections = await world.service.db.collections();
      const texts = await Promise.all(
        collections.map(async (collection) => JSON.stringify(await collection.find().toArray())),
      );
      for (const secret of [keyOf(agent), agent.body.idempotencyKey]) {
        expect(texts.filter((text) => text.includes(secret))).to.deep.equal([]);
      }
    });
  });

  describe("after the window", () => {
    let service: TestService;
    let world: World;
    let by: TestOrganizationKey;
    before(async () => {
      service = await startTestService({ keyDeliveryWindowSeconds: 3 });
      world = await newWorld(service);
      by = await orchestrator(world);
    });
    after(() => service.stop());

    it("nulls and expired, for good; the sealed form and its delivery key are erased", async () => {
      const agent = await made(world, by);
      const closed = await windowClosed(world, agent.id);
      expect([closed.sealed, await hasDeliveryKey(world, agent.id)]).to.deep.equal([null, false]);
      for (const _ of times(2, () => null)) {
        const answer = await replay(world, agent, by.token);
        expectNoKey(answer, "expired");
        expect(answer.agent.id).to.equal(agent.id);
      }
      const successor = await rotated(world, by);
      expectNoKey(await replay(world, agent, successor.token), "expired");
      by = successor;
    });

    it("the key itself lives on: it was delivered, and only its delivery is over", async () => {
      const agent = await made(world, by);
      await windowClosed(world, agent.id);
      await world.api.ok("listPayments", 200, { token: keyOf(agent) });
      expect((await readAgent(world, agent)).key?.status).to.equal("active");
    });

    it("a person recovers an undelivered key: mint is KEY_ALREADY_EXISTS, revoke and mint works", async () => {
      const agent = await made(world, by);
      await windowClosed(world, agent.id);
      expectNoKey(await replay(world, agent, by.token), "expired");
      await elevate(world);
      const request = { token: world.token, id: agent.id };
      await world.api.refused("mintAgentKey", 409, "KEY_ALREADY_EXISTS", request);
      await revokeKey(world, agent);
      await expectDead(world, keyOf(agent));
      const { apiKey } = await mintKey(world, agent);
      await world.api.ok("listPayments", 200, { token: apiKey });
      expectNoKey(await replay(world, agent, by.token), "expired");
    });

    it("a session's replay is nulls and never `expired`: no client waits for it", async () => {
      const request = { token: world.token, body: createBody(world) };
      const { agent } = await world.api.ok("createAgent", 201, request);
      await windowClosed(world, agent.id);
      expectNoKey(await world.api.ok("createAgent", 200, request), undefined);
    });
  });

  describe("by the server's own clock, whatever the timer does", () => {
    let aheadMs = 0;
    let service: TestService;
    let world: World;
    let by: TestOrganizationKey;
    before(async () => {
      service = await startTestService({ clock: () => new Date(Date.now() + aheadMs) });
      world = await newWorld(service);
      by = await orchestrator(world);
    });
    afterEach(() => (aheadMs = 0));
    after(() => service.stop());

    it("a key is not delivered after its window, even while sealed and not yet proven by its actor", async () => {
      const agent = await made(world, by);
      aheadMs = 1_800_000;
      expect(await hasDeliveryKey(world, agent.id)).to.equal(true);
      const request = { token: by.token, body: agent.body };
      const refused = await world.api.refused("createAgent", 503, "CREATE_RETRYABLE", request);
      expect(refused.retry_after_seconds).to.equal(1);
      aheadMs = 1_790_000;
      expect((await replay(world, agent, by.token)).apiKey).to.equal(agent.key);
    });

    it("a first answer that comes after the window is 201, expired, without the key", async () => {
      // Half an hour passes between the first look at the clock and the answer.
      const { first: late } = await lateCreate(world, by.token, (isLate) => {
        aheadMs = isLate ? 1_800_000 : 0;
      });
      expectNoKey(late, "expired");
      expect(late.agent.key?.status).to.equal("active");
      const { id } = late.agent;
      await world.api.refused("archiveAgent", 409, "KEY_STILL_DELIVERABLE", { token: by.token, id });
    });
  });
});
