import { expect } from "chai";
import type { ServerResponse } from "node:http";
import { Webhook } from "standardwebhooks";
import { webhookCollections } from "../../src/store/webhook-documents.ts";
import type { Received } from "../support/tls-receiver.ts";
import { times, until, type World } from "../support/world.ts";
import {
  arrivals,
  deliveredTo,
  deliveriesOf,
  endedDeliveries,
  endpointAt,
  openScene,
  type Scene,
  verified,
  worldIn,
} from "./support.ts";

/** Pauses between attempts. */
const BACKOFF = { WEBHOOK_BACKOFF_SECONDS: "1,1" };
const ATTEMPTS = 3;
const TRIES_MAX = 5;
const LONGER_THAN_PAUSE_MS = 1_200;
/** Longer than any other answer may take, and less than a receiver may. */
const SLOW_MS = 7_000;

const status =
  (code: number, body = "") =>
  (response: ServerResponse) =>
    void response.writeHead(code).end(body);

const signedBy = (request: Received | undefined, secret: string): boolean => {
  if (request === undefined) throw new Error("nothing has arrived");
  try {
    return verified(request, secret).id !== "";
  } catch {
    return false;
  }
};

describe("webhook deliveries", () => {
  let scene: Scene;
  let world: World;
  /** How the receiver answers at each path; by default 204. */
  const answers = new Map<string, (response: ServerResponse, request: Received) => void>();
  before(async () => {
    scene = await openScene((request, response) => {
      const answer = answers.get(request.path);
      if (answer !== undefined) return answer(response, request);
      response.writeHead(204).end();
    }, BACKOFF);
    world = await worldIn(scene);
  });
  after(() => scene.close());
  // The next test's events are for its own endpoints alone.
  afterEach(() => webhookCollections(scene.service.db).endpoints.deleteMany({}));

  const path = (name = "") => `/${world.organization.organizationId}/${name}`;
  const pauses = { eventTypes: ["agent.paused"] };

  async function paused(count = 1): Promise<void> {
    for (const { id } of await Promise.all(times(count, () => world.agent())))
      await world.api.ok("pauseAgent", 200, { token: world.token, id });
  }

  /**
   * Ends an endpoint between two attempts of a delivery to it, all of which fail. On a busy machine they may be over before that: then it is
   * done once more, in another organization.
   */
  async function amidDelivery(
    name: string,
    code: number,
    end: (own: { readonly token: string; readonly id: string }) => Promise<void>,
  ) {
    const { deliveries } = webhookCollections(scene.service.db);
    for (let tries = 1; ; tries += 1) {
      const [at, since] = [path(name), new Date().toISOString()];
      answers.set(at, status(code));
      const { id, secret } = await endpointAt(world, scene.receiver, at, pauses);
      const asked = { token: world.token, id };
      await paused();
      await until(
        "a first attempt",
        async () => ((await deliveriesOf(world, id))[0]?.attempts.length ?? 0) > 0 || null,
      );
      await end(asked);
      const ended = await until("it has ended", async () => {
        const delivery = await deliveries.findOne({ endpointId: id });
        return delivery?.status === "pending" ? null : delivery;
      });
      if (ended.status !== "failed" || tries === TRIES_MAX) return { asked, at, secret, since };
      world = await worldIn(scene);
    }
  }

  it("one that fails is tried again with the same id and body, signed afresh, until taken", async () => {
    const at = path("flaky");
    let refusals = 0;
    answers.set(at, (response) => status((refusals += 1) <= 2 ? 503 : 200, "busy\u0007 now")(response));
    const { id, secret } = await endpointAt(world, scene.receiver, at, pauses);
    await paused();
    const [delivery] = await endedDeliveries(world, id, 1);
    expect(delivery?.status).to.equal("succeeded");
    expect(delivery?.nextAttemptAt).to.equal(null);
    expect(
      delivery?.attempts.map(({ failureReason, httpStatus, number }) => [number, httpStatus, failureReason]),
    ).to.deep.equal([
      [1, 503, "it answered 503"],
      [2, 503, "it answered 503"],
      [3, 200, null],
    ]);
    expect(delivery?.attempts[0]?.responseExcerpt).to.match(/^busy.? now$/);
    const requests = scene.receiver.requests.filter((request) => request.path === at);
    expect(requests).to.have.lengthOf(3);
    expect(new Set(requests.map(({ body }) => body.toString("utf8"))).size).to.equal(1);
    expect(new Set(requests.map(({ headers }) => headers["svc-delivery-id"]))).to.deep.equal(
      new Set([delivery?.id]),
    );
    const stamps = requests.map(({ headers }) => Number(headers["svc-timestamp"]));
    expect(new Set(stamps).size, "a fresh time for each").to.be.greaterThan(1);
    for (const request of requests) {
      verified(request, secret);
      const { body, headers } = request;
      const named = Object.fromEntries(Object.entries(headers).map(([name, value]) => [name, String(value)]));
      expect(() => new Webhook(secret).verify(body.toString("utf8"), named)).not.to.throw();
    }
  });

  it("one whose receiver takes longer to refuse than the pause is tried again at once", async () => {
    const at = path("slow-to-refuse");
    let refusals = 0;
    answers.set(at, (response) => {
      refusals += 1;
      if (refusals > 1) return status(200)(response);
      setTimeout(() => status(503)(response), LONGER_THAN_PAUSE_MS);
    });
    const { id } = await endpointAt(world, scene.receiver, at, pauses);
    await paused();
    const [delivery] = await endedDeliveries(world, id, 1);
    expect([delivery?.status, delivery?.attempts.length]).to.deep.equal(["succeeded", 2]);
  });

  it("one that is never taken fails after its last attempt, and counts once", async () => {
    const at = path("never");
    answers.set(at, (response) => response.writeHead(302, { location: "https://example.com/" }).end());
    const { id } = await endpointAt(world, scene.receiver, at, pauses);
    await paused();
    const [delivery] = await endedDeliveries(world, id, 1);
    expect(delivery?.status).to.equal("failed");
    expect(delivery?.attempts).to.have.lengthOf(ATTEMPTS);
    const { endpoint } = await world.api.ok("getWebhook", 200, { token: world.token, id });
    expect(endpoint).to.include({ consecutiveFailures: 1, isActive: true });
    answers.delete(at);
    await paused();
    await until("the count starts anew", async () => {
      const { endpoint: now } = await world.api.ok("getWebhook", 200, { token: world.token, id });
      return now.consecutiveFailures === 0 ? true : null;
    });
  });

  it("one disabled by its failures says so, in the audit log as well; enabled, it begins anew", async () => {
    const { token } = world;
    const at = path("failing");
    answers.set(at, status(500));
    const { id } = await endpointAt(world, scene.receiver, at, pauses);
    const { endpoints } = webhookCollections(scene.service.db);
    await endpoints.updateOne({ _id: id }, { $set: { consecutiveFailures: 9 } });
    await paused();
    const endpoint = await until("it is disabled", async () => {
      const read = await world.api.ok("getWebhook", 200, { token, id });
      return read.endpoint.isActive ? null : read.endpoint;
    });
    expect(endpoint).to.include({ consecutiveFailures: 10, disabledReason: "consecutive_failures" });
    const disabled = async () =>
      (await world.api.ok("listAuditLog", 200, { token, query: { action: "disableWebhook" } })).entries;
    const entry = await until("it is in the audit log", async () => (await disabled())[0] ?? null);
    expect(entry).to.deep.include({
      actor: { type: "system", id: "webhooks" },
      resource: { type: "webhook_endpoint", id },
    });
    const enabled = await world.api.ok("updateWebhook", 200, { token, id, body: { isActive: true } });
    expect(enabled.endpoint).to.include({ isActive: true, consecutiveFailures: 0, disabledReason: null });
    await paused();
    const ended = await endedDeliveries(world, id, 2);
    expect(ended.map((delivery) => delivery.status)).to.deep.equal(["failed", "failed"]);
    const { endpoint: again } = await world.api.ok("getWebhook", 200, { token, id });
    expect(again).to.include({ isActive: true, consecutiveFailures: 1 });
    expect(await disabled()).to.have.lengthOf(1);
  });

  it("a test is one signed attempt with its result, at a disabled endpoint too, and never counts", async () => {
    const at = path("tested");
    answers.set(at, status(500, "no"));
    const { id, secret } = await endpointAt(world, scene.receiver, at, pauses);
    const asked = { token: world.token, id };
    for (const _time of times(2, () => 0)) {
      const tested = await world.api.ok("testWebhook", 200, asked);
      expect(tested).to.include({ httpStatus: 500, failureReason: "it answered 500" });
    }
    await world.api.ok("updateWebhook", 200, { ...asked, body: { isActive: false } });
    answers.set(at, status(200));
    const body = { eventType: "funding.deposited" };
    const good = await world.api.ok("testWebhook", 200, { ...asked, body });
    expect(good).to.include({ httpStatus: 200, failureReason: null });
    expect(good.responseTimeMs).to.be.a("number");
    const events = deliveredTo(scene.receiver, at, secret);
    expect(events.map(({ data, type }) => [type, data])).to.deep.equal([
      ["agent.paused", { test: true }],
      ["agent.paused", { test: true }],
      ["funding.deposited", { test: true }],
    ]);
    expect(events.at(-1)?.id).to.equal(good.deliveryId);
    const { endpoint } = await world.api.ok("getWebhook", 200, asked);
    expect(endpoint.consecutiveFailures).to.equal(0);
    const listed = await deliveriesOf(world, id);
    expect(listed.map(({ status: end, test }) => [end, test])).to.deep.equal([
      ["succeeded", true],
      ["failed", true],
      ["failed", true],
    ]);
  });

  it("after a rotation both secrets sign for a day; after a second one, the two newest", async () => {
    const at = path("rotated");
    const first = await endpointAt(world, scene.receiver, at, pauses);
    const asked = { token: world.token, id: first.id };
    const second = await world.api.ok("rotateWebhookSecret", 201, asked);
    const leftMs = Date.parse(second.secretPreviousExpiresAt) - Date.now();
    expect(leftMs).to.be.within(86_000_000, 86_400_000);
    expect(second.endpoint.secretPreviousExpiresAt).to.equal(second.secretPreviousExpiresAt);
    const newest = async () => {
      await world.api.ok("testWebhook", 200, asked);
      return scene.receiver.requests.findLast((request) => request.path === at);
    };
    const both = await newest();
    expect([first.secret, second.secret].map((secret) => signedBy(both, secret))).to.deep.equal([true, true]);
    const third = await world.api.ok("rotateWebhookSecret", 201, asked);
    const last = await newest();
    const secrets = [first.secret, second.secret, third.secret];
    expect(secrets.map((secret) => signedBy(last, secret))).to.deep.equal([false, true, true]);
    const stored = await webhookCollections(scene.service.db).endpoints.findOne({ _id: first.id });
    for (const secret of secrets)
      expect(JSON.stringify(stored)).not.to.include(secret.slice("whsec_".length));
  });

  it("what a disabled endpoint missed is dropped, then sent again one by one or all since a time", async () => {
    const { asked, at, secret, since } = await amidDelivery("missed", 503, async (own) => {
      const disabled = await world.api.ok("updateWebhook", 200, { ...own, body: { isActive: false } });
      expect(disabled.endpoint).to.include({ isActive: false, disabledReason: "by_person" });
    });
    const { id } = asked;
    const [dropped] = await endedDeliveries(world, id, 1);
    expect(dropped).to.include({ status: "dropped", nextAttemptAt: null });
    const named = { ...asked, deliveryId: dropped?.id ?? "" };
    await world.api.refused("redeliverWebhook", 409, "WEBHOOK_DISABLED", named);
    await world.api.refused("replayWebhook", 409, "WEBHOOK_DISABLED", { ...asked, body: { since } });
    await paused();
    await until("nothing is pending", async () => {
      const own = { organizationId: world.organization.organizationId, isPending: true };
      return (await scene.service.db.collection("events").countDocuments(own)) === 0 ? true : null;
    });
    answers.delete(at);
    const enabled = await world.api.ok("updateWebhook", 200, { ...asked, body: { isActive: true } });
    expect(enabled.endpoint).to.include({ isActive: true, disabledAt: null, consecutiveFailures: 0 });
    const { delivery } = await world.api.ok("redeliverWebhook", 200, named);
    expect(delivery.id).to.equal(dropped?.id);
    const [again] = await endedDeliveries(world, id, 1);
    expect(again).to.include({ id: dropped?.id, status: "succeeded" });

    const { replay } = await world.api.ok("replayWebhook", 201, { ...asked, body: { since } });
    expect(replay.state).to.equal("running");
    const done = await until("the replay is over", async () => {
      const { replay: now } = await world.api.ok("getWebhookReplay", 200, asked);
      return now?.state === "done" ? now : null;
    });
    expect(done).to.include({ id: replay.id, queued: 1 });
    await endedDeliveries(world, id, 2);
    const taken = (await deliveriesOf(world, id)).filter(({ status: end }) => end === "succeeded");
    expect(taken).to.have.lengthOf(2);
    const ids = new Set(deliveredTo(scene.receiver, at, secret).map((event) => event.id));
    expect(ids.size).to.equal(2);
    await world.api.ok("replayWebhook", 201, { ...asked, body: { since } });
    const nothing = await until("the second replay is over", async () => {
      const { replay: now } = await world.api.ok("getWebhookReplay", 200, asked);
      return now?.state === "done" ? now : null;
    });
    expect(nothing.queued, "all of it has arrived").to.equal(0);
  });

  it("a replay reaches back as far as deliveries are kept, and not into the future", async () => {
    const { id } = await endpointAt(world, scene.receiver, path("bounds"), pauses);
    const DAY_MS = 86_400_000;
    for (const [fromNowMs, why] of [
      [-31 * DAY_MS, "must lie within the last 30 days, for which deliveries are kept"],
      [DAY_MS, "must not be in the future"],
    ] as const) {
      const body = { since: new Date(Date.now() + fromNowMs).toISOString() };
      const request = { token: world.token, id, body };
      const { issues } = await world.api.refused("replayWebhook", 400, "VALIDATION_FAILED", request);
      expect(issues).to.deep.equal([{ path: "since", message: why }]);
    }
  });

  it("a replay whose caller died before it began is begun by the next caller", async () => {
    const at = path("orphaned");
    const since = new Date();
    const { id } = await endpointAt(world, scene.receiver, at, pauses);
    const orphaned = {
      id: `whr_${"0".repeat(26)}`,
      since,
      until: new Date(),
      state: "running",
      examined: 0,
      queued: 0,
      position: null,
      endedAt: null,
    } as const;
    const { endpoints } = webhookCollections(scene.service.db);
    await endpoints.updateOne({ _id: id }, { $set: { replay: orphaned } });
    const asked = { token: world.token, id };
    const body = { since: since.toISOString() };
    await world.api.refused("replayWebhook", 409, "REPLAY_IN_PROGRESS", { ...asked, body });
    await until("the replay is over", async () => {
      const { replay } = await world.api.ok("getWebhookReplay", 200, asked);
      return replay?.id === orphaned.id && replay.state === "done" ? true : null;
    });
    await world.api.ok("replayWebhook", 201, { ...asked, body });
  });

  it("a test waits for a receiver that takes longer than other answers may", async () => {
    const at = path("slow");
    answers.set(at, (response) => void setTimeout(() => response.writeHead(204).end(), SLOW_MS));
    const { id } = await endpointAt(world, scene.receiver, at);
    const tried = await world.api.ok("testWebhook", 200, { token: world.token, id });
    expect(tried).to.include({ httpStatus: 204, failureReason: null });
    expect(tried.responseTimeMs).to.be.within(SLOW_MS, 15_000);
  });

  it("a delivery shows the exact body that is signed; of another endpoint it is not found", async () => {
    const at = path("body");
    const { id } = await endpointAt(world, scene.receiver, at, pauses);
    const other = await endpointAt(world, scene.receiver, path("other"), pauses);
    await paused();
    const [delivery] = await endedDeliveries(world, id, 1);
    const { token } = world;
    const deliveryId = delivery?.id ?? "";
    const read = await world.api.ok("getWebhookDelivery", 200, { token, id, deliveryId });
    const [request] = scene.receiver.requests.filter((each) => each.path === at);
    expect(read.body).to.equal(request?.body.toString("utf8"));
    await world.api.refused("getWebhookDelivery", 404, "NOT_FOUND", { token, id: other.id, deliveryId });
  });

  it("a deleted endpoint gets nothing more, and is not found", async () => {
    const { asked, at } = await amidDelivery("deleted", 500, async (own) => {
      await world.api.ok("deleteWebhook", 204, own);
    });
    const { id } = asked;
    for (const operation of ["getWebhook", "listWebhookDeliveries", "testWebhook"] as const)
      await world.api.refused(operation, 404, "NOT_FOUND", asked);
    const { deliveries } = webhookCollections(scene.service.db);
    await until("its workflow is told", async () =>
      (await deliveries.findOne({ endpointId: id }))?.pendingAction === undefined ? true : null,
    );
    expect(await deliveries.findOne({ endpointId: id })).to.include({ status: "dropped" });
    const before = scene.receiver.requests.filter((request) => request.path === at).length;
    const marker = await endpointAt(world, scene.receiver, path("marker"), pauses);
    await paused(3);
    await arrivals(scene, path("marker"), marker.secret, 3);
    expect(scene.receiver.requests.filter((request) => request.path === at)).to.have.lengthOf(before);
  });
});
