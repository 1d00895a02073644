import { expect } from "chai";
import { collectionsOf } from "../../src/store/collections.ts";
import { EventReader, type OpenOptions } from "../support/event-stream.ts";
import { inTime } from "../support/in-time.ts";
import { transactionOf } from "../support/payments-in-place.ts";
import { secondService } from "../support/own-service.ts";
import { demote, newWorld, times, until, type World } from "../support/world.ts";

const toldOfApproval = (reader: EventReader, id: string, resolution: string | undefined) =>
  reader.until(`approval ${id} ${resolution ?? "pending"}`, () =>
    reader
      .told("approvals")
      .flatMap(({ approvals }) => approvals)
      .find((approval) => approval.id === id && approval.resolution === resolution),
  );

describe("the stream of changes", () => {
  let world: World;
  let readers: EventReader[];
  before(async () => {
    world = await newWorld();
  });
  beforeEach(() => {
    readers = [];
  });
  afterEach(() => {
    for (const reader of readers) reader.close();
  });

  async function open(options: OpenOptions = {}): Promise<EventReader> {
    const reader = await EventReader.open(world.service.baseUrl, { token: world.token, ...options });
    readers.push(reader);
    expect(reader.response.status).to.equal(200);
    return reader;
  }

  async function ready(options: OpenOptions = {}): Promise<EventReader> {
    const reader = await open(options);
    await reader.until("ready", () => reader.named("ready")[0]);
    return reader;
  }

  it("begins with ready, in a form that no proxy keeps, holds back or changes", async () => {
    const { events, response } = await ready();
    expect(events[0]?.name).to.equal("ready");
    expect(response.headers.get("content-type")).to.equal("text/event-stream; charset=utf-8");
    expect(response.headers.get("cache-control")).to.equal("no-store, no-transform");
    expect(response.headers.get("x-accel-buffering")).to.equal("no");
    expect(response.headers.get("x-ratelimit-remaining")).to.match(/^\d+$/);
  });

  it("tells of an approval when it is requested, and when it is denied, each time whole", async () => {
    const agent = await world.agent({ autoApprovalThresholdCents: 0 });
    const reader = await ready();
    const { approvalId, transactionId } = await agent.hold({ purpose: "a\n\nevent: end\ndata: {}\n\n" });
    const requested = await toldOfApproval(reader, approvalId, undefined);
    const { approval } = await world.api.ok("getApproval", 200, { token: world.token, id: approvalId });
    expect(requested).to.deep.equal(approval);
    await world.api.ok("denyApproval", 200, {
      token: world.token,
      id: approvalId,
      body: { feedback: "not today" },
    });
    expect((await toldOfApproval(reader, approvalId, "denied")).feedback).to.equal("not today");
    await reader.until("the denied transaction", () =>
      reader
        .told("transactions")
        .flatMap(({ transactions }) => transactions)
        .find(({ id, status }) => id === transactionId && status === "denied"),
    );
  });

  it("tells of agents that are made, paused and renamed, and of what is changed of containers", async () => {
    const reader = await ready();
    const agent = await world.agent({ name: "First" });
    const seen = (what: string, fits: (one: { state: string; name: string }) => boolean) =>
      reader.until(what, () =>
        reader
          .told("agents")
          .flatMap(({ agents }) => agents)
          .find((one) => one.id === agent.id && fits(one)),
      );
    await seen("made", ({ state }) => state === "active");
    await world.api.ok("pauseAgent", 200, { token: world.token, id: agent.id });
    await seen("paused", ({ state }) => state === "paused");
    await world.api.ok("updateAgent", 200, { token: world.token, id: agent.id, body: { name: "Second" } });
    await seen("renamed", ({ name }) => name === "Second");
    const { project } = await world.api.made("createProject", { token: world.token, body: { name: "P" } });
    const tellings = () => reader.told("projects").filter(({ ids }) => ids.includes(project.id)).length;
    // Budgeted at once, it might be told of in one event, as changes that come together are.
    const whenMade = await reader.until("the project, made", () => (tellings() > 0 ? tellings() : null));
    await world.api.ok("setProjectBudget", 200, {
      token: world.token,
      id: project.id,
      body: { capCents: 5, teams: [], version: 1 },
    });
    await reader.until("the project, budgeted", () => (tellings() > whenMade ? true : null));
  });

  it("many payments make few events, and say that there are more than they name", async () => {
    const { organizationId } = world.organization;
    const place = { ...world.organization, agentId: (await world.agent()).id };
    const reader = await ready();
    // Written at once: how many payments a busy machine makes within a second is not known.
    await collectionsOf(world.service.db).transactions.insertMany(
      times(120, () => transactionOf(organizationId, place)),
    );
    const named = await reader.until("more", () =>
      reader.told("transactions").some(({ more }) => more) ? reader.told("transactions") : null,
    );
    for (const { transactions } of named) expect(transactions.length).to.be.at.most(20);
    expect(named.length).to.be.below(120);
  });

  it("nothing of another organization, nor of a kind that was not asked for, is told", async () => {
    const other = await newWorld();
    const stranger = await EventReader.open(other.service.baseUrl, { token: other.token });
    readers.push(stranger);
    await stranger.until("ready", () => stranger.named("ready")[0]);
    const onlyApprovals = await ready({ query: "?kinds=approvals" });
    const all = await ready();
    const agent = await world.agent();
    const { transaction } = await agent.pay();
    await all.until("the payment", () => all.told("transactions")[0]);
    // What comes later is told later.
    const own = await other.agent();
    await stranger.until("its own", () => stranger.told("agents")[0]);
    expect(JSON.stringify(stranger.events)).not.to.contain(agent.id).and.not.to.contain(transaction.id);
    expect(JSON.stringify(stranger.events)).to.contain(own.id);
    const held = await (await world.agent({ autoApprovalThresholdCents: 0 })).hold();
    await toldOfApproval(onlyApprovals, held.approvalId, undefined);
    expect(onlyApprovals.named("transactions")).to.deep.equal([]);
  });

  it("goes on behind the last event that was read, with what happened meanwhile", async () => {
    const agent = await world.agent({ autoApprovalThresholdCents: 0 });
    const first = await ready();
    const seen = await agent.hold();
    await toldOfApproval(first, seen.approvalId, undefined);
    await until("all of it was told", () => {
      const own = first.events.findLast(({ id }) => id !== null)?.name === "approvals";
      return Promise.resolve(own || first.named("transactions").length > 0 ? true : null);
    });
    first.close();
    const missed = await agent.hold();
    const again = await ready({ lastEventId: first.lastEventId });
    expect(again.told("ready")).to.deep.equal([{ resumed: true }]);
    await toldOfApproval(again, missed.approvalId, undefined);
    const byQuery = await ready({ query: `?lastEventId=${first.lastEventId}` });
    await toldOfApproval(byQuery, missed.approvalId, undefined);
  });

  it("who was away for too long, or says what was never an id, is told to read everything again", async () => {
    for (const lastEventId of ["00000001000000010001", "nonsense"]) {
      const reader = await ready({ lastEventId });
      // The use of a key, written some seconds late, may be told next.
      const first = reader.events.map(({ name }) => name).slice(0, 2);
      expect(first).to.deep.equal(["reset", "ready"]);
      expect(reader.told("ready")).to.deep.equal([{ resumed: false }]);
    }
  });

  it("a stream is counted once, however long it is open", async () => {
    const limited = await world.service.organization({ plan: "free" });
    const reader = await EventReader.open(world.service.baseUrl, { token: limited.token });
    readers.push(reader);
    const remaining = Number(reader.response.headers.get("x-ratelimit-remaining"));
    await reader.until("ready", () => reader.named("ready")[0]);
    const { headers } = await world.service.api.call("GET", "/v1/organization", { token: limited.token });
    const after = Number(headers.get("x-ratelimit-remaining"));
    // One request more, less what the window gave back meanwhile.
    expect(after).to.be.at.least(remaining - 1);
  });

  it("keys are not let in, and HEAD has the headers alone", async () => {
    const agent = await world.agent();
    await world.api.refused("streamChanges", 403, "WRONG_CREDENTIAL", { token: agent.key });
    await world.api.refused("streamChanges", 400, "VALIDATION_FAILED", {
      token: world.token,
      query: { kinds: "approvals,secrets" },
    });
    const head = await world.service.api.call("HEAD", "/v1/stream", { token: world.token });
    expect([head.status, head.headers.get("content-type")]).to.deep.equal([
      200,
      "text/event-stream; charset=utf-8",
    ]);
  });

  describe("of a person whose role or number of streams it is about", () => {
    beforeEach(async () => {
      world = await newWorld();
    });

    it("members are not told of keys and webhooks; owners are", async () => {
      const owner = await ready();
      const body = { name: "E", url: "https://127.0.0.1:1/", eventTypes: ["*"] };
      await world.api.ok("createWebhook", 201, { token: world.token, body });
      await owner.until("the webhook", () => owner.told("webhooks")[0]);
      const since = owner.events.find(({ name }) => name === "ready")?.id ?? "";
      await demote(world, "member");
      const member = await ready({ lastEventId: since });
      expect(member.told("ready")).to.deep.equal([{ resumed: true }]);
      expect(member.named("webhooks")).to.deep.equal([]);
    });

    it("ends with the session: on sign-out, and when the role changes", async () => {
      const { email, password } = world.organization;
      const token = await world.service.api.signIn(email, password);
      const [leaves, stays] = [await ready({ token }), await ready()];
      await world.api.ok("signOut", 204, { token });
      await leaves.ended;
      expect(leaves.told("end")).to.deep.equal([{ reason: "credential" }]);
      await demote(world, "admin");
      await stays.ended;
      expect(stays.told("end")).to.deep.equal([{ reason: "role" }]);
    });

    it("a session has so many streams and no more, until it closes one", async () => {
      const own = [];
      for (const _index of times(8, (index) => index)) own.push(await ready());
      await world.api.refused("streamChanges", 429, "TOO_MANY_STREAMS", { token: world.token });
      own[0]?.close();
      await until("another one is let in", async () => {
        const reader = await EventReader.open(world.service.baseUrl, { token: world.token });
        readers.push(reader);
        return reader.response.status === 200 ? true : null;
      });
    });
  });

  it("a service that stops ends its streams first, and does not wait for them", async () => {
    const service = await secondService(world.service);
    const { email, password } = await world.service.organization();
    const token = await service.api.signIn(email, password);
    const reader = await EventReader.open(service.baseUrl, { token });
    await reader.until("ready", () => reader.named("ready")[0]);
    const stopped = service.stop();
    await reader.ended;
    expect(reader.told("end")).to.deep.equal([{ reason: "restart" }]);
    await inTime("the drain", stopped, 9_000);
  });
});
