import { expect } from "chai";
import { webhookCollections } from "../../src/store/webhook-documents.ts";
import { newWorld, tally, times, type World } from "../support/world.ts";
import { endpointDocument } from "./documents.ts";
import { endpointAt, openScene, type Scene, worldIn } from "./support.ts";

const NOWHERE = "018f0000-0000-7000-8000-000000000000";

describe("webhook endpoints", () => {
  let scene: Scene;
  let world: World;
  before(async () => {
    scene = await openScene();
    world = await worldIn(scene);
  });
  after(() => scene.close());

  const url = () => scene.receiver.url;
  const body = (fields: object) => ({ name: "Hook", url: url(), eventTypes: ["*"], ...fields });

  it("event types are shown in the order in which they were given", async () => {
    const eventTypes = ["transaction.denied", "agent.paused", "transaction.completed"];
    const { endpoint } = await endpointAt(world, scene.receiver, "/order", { eventTypes });
    expect(endpoint.eventTypes).to.deep.equal(eventTypes);
  });

  it("is answered as it was made, with a secret that is shown this once", async () => {
    const { token } = world;
    const made = await world.api.ok("createWebhook", 201, { token, body: body({ description: "For us" }) });
    expect(made.secret).to.match(/^whsec_[A-Za-z0-9+/]{43}=$/);
    expect(made.endpoint).to.deep.include({
      name: "Hook",
      url: url(),
      eventTypes: ["*"],
      scopeType: "organization",
      scopeIds: [],
      description: "For us",
      isActive: true,
      consecutiveFailures: 0,
      secretPreviousExpiresAt: null,
    });
    const { id } = made.endpoint;
    const read = await world.api.ok("getWebhook", 200, { token, id });
    expect(read.endpoint).to.deep.equal(made.endpoint);
    const { webhooks } = await world.api.ok("listWebhooks", 200, { token });
    expect(webhooks[0]).to.deep.equal(made.endpoint);
    expect(JSON.stringify([read, webhooks])).not.to.include("whsec_");
  });

  /** A body's fields, and where its issue is. */
  const WRONG: readonly (readonly [string, object, string])[] = [
    ["no event types", { eventTypes: [] }, "eventTypes"],
    ["an unknown type", { eventTypes: ["agent.exploded"] }, "eventTypes.0"],
    ["* beside others", { eventTypes: ["*", "agent.paused"] }, "eventTypes"],
    ["a type twice", { eventTypes: ["agent.paused", "agent.paused"] }, "eventTypes"],
    ["a scope without ids", { scopeType: "team" }, "scopeIds"],
    ["a scope with no ids", { scopeType: "team", scopeIds: [] }, "scopeIds"],
    ["ids for the organization", { scopeIds: [NOWHERE] }, "scopeIds"],
    ["an id twice", { scopeType: "team", scopeIds: [NOWHERE, NOWHERE] }, "scopeIds"],
    ["an unknown scope", { scopeType: "galaxy", scopeIds: [NOWHERE] }, "scopeType"],
    ["a malformed id", { scopeType: "team", scopeIds: ["x"] }, "scopeIds.0"],
    ["plain http", { url: "http://example.com/" }, "url"],
    ["a private address", { url: "https://10.0.0.1/" }, "url"],
    ["the metadata service", { url: "https://169.254.169.254/latest" }, "url"],
    ["a name that resolves to nothing", { url: "https://does-not-exist.invalid/" }, "url"],
    ["credentials in the URL", { url: "https://user:secret@example.com/" }, "url"],
    ["a blank name", { name: " " }, "name"],
    ["a name of 101 characters", { name: "x".repeat(101) }, "name"],
    ["a description of 501", { description: "x".repeat(501) }, "description"],
    ["a misspelt field", { eventtypes: ["*"] }, "eventtypes"],
  ];
  it("refuses what is wrong in a body, at its field, in an endpoint to be made or changed", async () => {
    const { token } = world;
    const made = await endpointAt(world, scene.receiver, "/changed", { eventTypes: ["agent.paused"] });
    for (const [what, fields, path] of WRONG) {
      const create = { token, body: body(fields) };
      const answer = await world.api.refused("createWebhook", 400, "VALIDATION_FAILED", create);
      expect(
        answer.issues?.map((issue) => issue.path),
        what,
      ).to.include(path);
      if (path === "scopeIds" || path === "eventtypes" || !("scopeType" in fields)) {
        const changed = { token, id: made.id, body: fields };
        await world.api.refused("updateWebhook", 400, "VALIDATION_FAILED", changed);
      }
    }
  });

  it("of many made at once exactly 50 are let through; removing one makes room", async () => {
    const own = await worldIn(scene);
    const { token } = own;
    const { organizationId } = own.organization;
    const { endpoints } = webhookCollections(scene.service.db);
    const there = times(44, (index) =>
      endpointDocument(organizationId, { _id: `${organizationId}/${index}` }),
    );
    await endpoints.insertMany(there);
    const create = () => own.api.call("createWebhook", { token, body: body({}) });
    const answers = await Promise.all(times(15, create));
    const statuses = tally(answers.map(({ status }) => status));
    expect(statuses).to.deep.equal({ 201: 6, 409: 9 });
    expect(await endpoints.countDocuments({ organizationId })).to.equal(50);
    await own.api.refused("createWebhook", 409, "TOO_MANY_WEBHOOKS", { token, body: body({}) });
    const made = await endpoints.findOne({ organizationId, createdBy: { $ne: "somebody" } });
    await own.api.ok("deleteWebhook", 204, { token, id: made?._id ?? "" });
    await own.api.ok("createWebhook", 201, { token, body: body({}) });
  });

  it("scope ids must be there, in this organization; archived ones may be named", async () => {
    const { token } = world;
    const foreign = await newWorld(scene.service);
    const theirs = await foreign.agent();
    const { projectId, teamId } = foreign.organization;
    for (const [scopeType, id] of [
      ["project", NOWHERE],
      ["project", projectId],
      ["team", teamId],
      ["agent", theirs.id],
    ]) {
      const scoped = body({ scopeType, scopeIds: [id] });
      await world.api.refused("createWebhook", 404, "NOT_FOUND", { token, body: scoped });
    }
    const agent = await world.agent();
    const own = body({ scopeType: "agent", scopeIds: [agent.id] });
    const { endpoint } = await world.api.ok("createWebhook", 201, { token, body: own });
    expect(endpoint.scopeIds).to.deep.equal([agent.id]);
  });

  it("a change keeps what it does not name, and a scope that changes needs its ids", async () => {
    const { token } = world;
    const agent = await world.agent();
    const made = await endpointAt(world, scene.receiver, "/kept", { description: "Kept" });
    const asked = { token, id: made.id };
    const none = await world.api.ok("updateWebhook", 200, { ...asked, body: {} });
    expect({ ...none.endpoint, updatedAt: "" }).to.deep.equal({ ...made.endpoint, updatedAt: "" });
    const scoped = { scopeType: "agent", scopeIds: [agent.id] };
    const changed = await world.api.ok("updateWebhook", 200, { ...asked, body: scoped });
    expect(changed.endpoint).to.deep.include({ ...scoped, description: "Kept" });
    await world.api.refused("updateWebhook", 400, "VALIDATION_FAILED", {
      ...asked,
      body: { scopeType: "team" },
    });
    const back = await world.api.ok("updateWebhook", 200, { ...asked, body: { scopeType: "organization" } });
    expect(back.endpoint.scopeIds).to.deep.equal([]);
    const cleared = await world.api.ok("updateWebhook", 200, { ...asked, body: { description: null } });
    expect(cleared.endpoint.description).to.equal(null);
  });

  it("what was changed, by whom, is in the audit log, and no secret is", async () => {
    const { token } = world;
    const made = await endpointAt(world, scene.receiver, "/audited");
    const asked = { token, id: made.id };
    await world.api.ok("updateWebhook", 200, { ...asked, body: { isActive: false } });
    const { secret } = await world.api.ok("rotateWebhookSecret", 201, asked);
    await world.api.ok("deleteWebhook", 204, asked);
    const { entries } = await world.api.ok("listAuditLog", 200, { token, query: { limit: "4" } });
    expect(entries.map(({ action, resource }) => [action, resource.type, resource.id])).to.deep.equal(
      ["deleteWebhook", "rotateWebhookSecret", "updateWebhook", "createWebhook"].map((action) => [
        action,
        "webhook_endpoint",
        made.id,
      ]),
    );
    expect(entries[2]?.after).to.include({ isActive: false });
    const text = JSON.stringify(entries);
    for (const each of [secret, made.secret]) expect(text).not.to.include(each.slice(6));
  });
});
