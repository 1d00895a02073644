import { expect } from "chai";
import { inTime, timed } from "../support/in-time.ts";
import { startTestService, type TestService } from "../support/service.ts";
import { shortOrSoak } from "../support/soak.ts";
import type { Answer } from "../support/api.ts";
import { codeOf, successOf } from "../support/contract-api.ts";
import {
  type CreateBody,
  createBody,
  deliveries,
  eventCounts,
  expectEvents,
  hasDeliveryKey,
  holdCommits,
  journal,
  orchestrator,
} from "../support/life.ts";
import { newWorld, tally, type TestOrganizationKey, times, until, type World } from "../support/world.ts";

/** How long a replay waits for the call that carries its create out; the machine may be busy. */
const WAITS_MS = [9_500, 11_500] as const;
const SURELY_MS = 120_000;
const TRIES_MAX = 5;
/** Calls at once under one idempotency key, and the lineages that share it. */
const AT_ONCE = shortOrSoak(30, 200);
const LINEAGES = shortOrSoak(3, 10);
/** Of ten calls that come while a first one is at hand. */
const IN_PROGRESS_MIN = 8;
/** The last is the check of the credential, which a busy machine may not end in its time. */
const AMBIGUOUS = ["CREATE_RETRYABLE", "REQUEST_IN_PROGRESS", "SERVICE_UNAVAILABLE"];

const outcome = (answer: Answer) => codeOf(answer) ?? answer.status;
const createdIn = (answers: readonly Answer[]) => answers.map(({ body }) => successOf("createAgent", body));

const agentsHeldUp = ({ organization: { teamId }, service }: World): Promise<number> =>
  service.db.collection("agents").countDocuments({ name: "Held up", teamId });

/**
 * A create whose commit is held up for its first call and ten others; how many of these were told that it is in progress. Null where
 * it was not held up for long enough.
 */
async function heldUp() {
  const own = await newWorld();
  const { token } = await orchestrator(own);
  const body = createBody(own, { name: "Held up" });
  const ask = () => own.api.call("createAgent", { token, body });
  const held = await holdCommits(own);
  try {
    const first = inTime("the first", ask());
    await held.isWaitedFor();
    const others = times(10, () => timed(ask()));
    const value = await first;
    expect(outcome(value)).to.equal("CREATE_RETRYABLE");
    expect(value.headers.get("retry-after")).to.equal("1");
    const waited = await Promise.all(others);
    if (!(await held.isHeld())) return null;
    const inProgress = waited.filter((each) => outcome(each.value) === "REQUEST_IN_PROGRESS").length;
    for (const each of waited) {
      if (outcome(each.value) === "REQUEST_IN_PROGRESS") expect(each.ms).to.be.within(...WAITS_MS);
      else expect(outcome(each.value)).to.equal("CREATE_RETRYABLE");
    }
    const payload = { token, body: { ...body, budgetCents: 1 } };
    await own.api.refused("createAgent", 422, "IDEMPOTENCY_KEY_REUSED", payload);
    expect(await agentsHeldUp(own)).to.equal(0);
    return { own, token, body, inProgress };
  } finally {
    await held.release();
  }
}

describe("replays of an agent's create", () => {
  let world: World;
  let by: TestOrganizationKey;
  before(async () => {
    world = await newWorld();
    by = await orchestrator(world);
  });

  const create = (token: string, body: CreateBody) => world.api.call("createAgent", { token, body });
  /** As callers are told to: an ambiguous failure, which a busy machine brings, is replayed. */
  async function createSurely(token: string, body: CreateBody): Promise<Answer> {
    return until(
      "the create is answered",
      async () => {
        const answer = await create(token, body);
        return AMBIGUOUS.includes(codeOf(answer) ?? "") ? null : answer;
      },
      SURELY_MS,
    );
  }

  /** One record, one key, one wallet, one event: what a create makes, however often it was asked for. */
  async function expectMadeOnce(name: string, id: string): Promise<void> {
    const { db } = world.service;
    const agents = await db.collection("agents").find({ name }).toArray();
    expect(agents.map(({ _id }) => String(_id))).to.deep.equal([id]);
    expect(agents[0]?.["wallet"])
      .to.have.property("address")
      .that.matches(/^0x[0-9a-fA-F]{40}$/);
    expect(await eventCounts(world, { id })).to.deep.equal({ "agent.created": 1 });
    expect(await journal(world).countDocuments({ agentName: name })).to.equal(1);
    expect(await deliveries(world).countDocuments({ _id: id })).to.equal(1);
  }

  for (const caller of ["machine", "session"] as const) {
    it(`${AT_ONCE} at once by a ${caller} make one agent, with one wallet, one key and one event`, async () => {
      const token = caller === "machine" ? by.token : world.token;
      const name = `At once by a ${caller}`;
      const body = createBody(world, { name });
      const answers = await Promise.all(times(AT_ONCE, () => createSurely(token, body)));
      const { 200: replays = 0, 201: first = 0, ...others } = tally(answers.map(outcome));
      expect(others).to.deep.equal({});
      expect([replays + first, first <= 1]).to.deep.equal([AT_ONCE, true]);
      const created = createdIn(answers);
      const ids = new Set(created.map(({ agent }) => agent.id));
      const keys = created.flatMap(({ apiKey }) => (apiKey === null ? [] : [apiKey]));
      expect(ids.size).to.equal(1);
      await expectMadeOnce(name, [...ids].join());
      // With the answer that a person's key came in, it is lost.
      expect(keys, "a machine is given it each time, a person once").to.have.lengthOf(
        caller === "machine" ? AT_ONCE : first,
      );
      if (caller === "machine") {
        expect(new Set(keys).size).to.equal(1);
        await world.api.ok("listPayments", 200, { token: keys[0] });
        const { createdToday } = await keyRecord(by.id);
        expect(createdToday, "replays are free").to.equal(1);
      }
    });
  }

  const keyRecord = async (id: string) => {
    const { organizationKeys } = await world.api.ok("listOrganizationKeys", 200, { token: world.token });
    const found = organizationKeys.find((key) => key.id === id);
    if (found === undefined) throw new Error("the key is not listed");
    return found;
  };

  it(`at once in ${LINEAGES} lineages they make ${LINEAGES} agents, and none is given another's key`, async () => {
    const lineages = await Promise.all(times(LINEAGES, () => orchestrator(world)));
    const body = createBody(world, { name: "Lineages" });
    const answers = await Promise.all(
      times(AT_ONCE, async (index) => {
        const { id, token } = lineages[index % LINEAGES] ?? by;
        return { id, ...successOf("createAgent", (await createSurely(token, body)).body) };
      }),
    );
    for (const { id } of lineages) {
      const own = answers.filter((answer) => answer.id === id);
      expect(new Set(own.map(({ agent }) => agent.id)).size).to.equal(1);
      expect(new Set(own.map(({ apiKey }) => apiKey)).size).to.equal(1);
      expect(own[0]?.agent.createdBy.id).to.equal(id);
    }
    expect(new Set(answers.map(({ agent }) => agent.id)).size).to.equal(LINEAGES);
    expect(new Set(answers.map(({ apiKey }) => apiKey)).size).to.equal(LINEAGES);
  });

  it("with its commit held up: CREATE_RETRYABLE, then REQUEST_IN_PROGRESS; a replay finishes it", async () => {
    let held = await heldUp();
    // On a busy machine the first call may be over before the others have looked; each of them then begins it anew.
    for (let tries = 1; (held?.inProgress ?? 0) < IN_PROGRESS_MIN && tries < TRIES_MAX; tries += 1)
      held = await heldUp();
    if (held === null) throw new Error("no commit was held up for long enough");
    const { body, inProgress, own, token } = held;
    expect(inProgress).to.be.at.least(IN_PROGRESS_MIN);
    const reserved = await own.service.db.collection("creates").find().toArray();
    const made = await until("the replay is answered", async () => {
      const { status, body: answered } = await own.api.call("createAgent", { token, body });
      return status < 400 ? successOf("createAgent", answered) : null;
    });
    expect(reserved.map(({ createdId }) => String(createdId))).to.include(made.agent.id);
    const again = await own.api.ok("createAgent", 200, { token, body });
    expect([again.agent.id, again.apiKey]).to.deep.equal([made.agent.id, made.apiKey]);
    expect(await agentsHeldUp(own)).to.equal(1);
    await expectEvents(own, made.agent, { "agent.created": 1 });
    await own.api.ok("listPayments", 200, { token: made.apiKey ?? "" });
  });

  it("one whose caller went away is finished all the same, and its replay is the same agent", async () => {
    const own = await newWorld();
    const { token } = await orchestrator(own);
    const body = createBody(own, { name: "Left alone" });
    const held = await holdCommits(own);
    const gone = new AbortController();
    const request = fetch(`${own.service.baseUrl}/v1/agents`, {
      method: "POST",
      headers: { authorization: `Bearer ${token}`, "content-type": "application/json" },
      body: JSON.stringify(body),
      signal: gone.signal,
    }).catch(() => "aborted");
    await held.isWaitedFor();
    gone.abort();
    expect(await request).to.equal("aborted");
    await held.release();
    const [agent] = await until("the agent is there", async () => {
      const found = await own.service.db.collection("agents").find({ name: "Left alone" }).toArray();
      return found.length > 0 ? found : null;
    });
    const replayed = await own.api.ok("createAgent", 200, { token, body });
    expect(replayed.agent.id).to.equal(String(agent?._id));
    expect(replayed.apiKey).to.be.a("string");
  });

  it("a person's without an idempotency key makes nothing after a 503: its key would be lost", async () => {
    const own = await newWorld();
    const { idempotencyKey: _none, ...body } = createBody(own, { name: "Nobody's" });
    const held = await holdCommits(own);
    try {
      const value = await inTime("the create", own.api.call("createAgent", { token: own.token, body }));
      expect(outcome(value)).to.equal("SERVICE_UNAVAILABLE");
    } finally {
      await held.release();
    }
    // What comes after it in the same team has waited for its end.
    const { agent } = await own.api.ok("createAgent", 201, {
      token: own.token,
      body: { ...body, name: "Next" },
    });
    const { organizationId } = own.organization;
    const agents = await own.service.db.collection("agents").find({ organizationId }).toArray();
    expect(agents.map(({ _id }) => String(_id))).to.deep.equal([agent.id]);
  });

  it("an organization that was not ready: ORG_NOT_READY makes nothing, and the replay creates", async () => {
    const own = await newWorld();
    const body = createBody(own);
    const organizations = own.service.db.collection<{ _id: string }>("organizations");
    const mark = (status: string) =>
      organizations.updateOne({ _id: own.organization.organizationId }, { $set: { status } });
    // Before any request: an organization that is ready stays so.
    await mark("provisioning");
    const { token } = await orchestrator(own);
    await own.api.refused("createAgent", 409, "ORG_NOT_READY", { token, body });
    await mark("ready");
    const { agent } = await until("the replay creates", async () => {
      const answer = await own.api.call("createAgent", { token, body });
      if (codeOf(answer) === "ORG_NOT_READY") return null;
      expect(answer.status).to.equal(201);
      return successOf("createAgent", answer.body);
    });
    expect((await own.api.ok("createAgent", 200, { token, body })).agent.id).to.equal(agent.id);
  });
});

describe("a create that outlives its window before it is committed", () => {
  let service: TestService;
  let world: World;
  before(async () => {
    service = await startTestService({ keyDeliveryWindowSeconds: 1 });
    world = await newWorld(service);
  });
  after(() => service.stop());

  it("is given up for good; its replay creates another with a working key, nothing left of it", async () => {
    const { token } = await orchestrator(world);
    const body = createBody(world, { name: "Given up" });
    const held = await holdCommits(world);
    const first = world.api.call("createAgent", { token, body });
    await held.isWaitedFor();
    const discarded = await until("the create is given up", () =>
      deliveries(world).findOne({ state: "discarded" }),
    );
    expect(await hasDeliveryKey(world, discarded._id)).to.equal(false);
    await held.release();
    await first;
    const made = await until("the replay is answered", async () => {
      const answer = await world.api.call("createAgent", { token, body });
      return answer.status < 400 ? successOf("createAgent", answer.body) : null;
    });
    expect(made.agent.id).not.to.equal(discarded._id);
    expect(await service.db.collection("agents").countDocuments({ name: "Given up" })).to.equal(1);
    await expectEvents(world, made.agent, { "agent.created": 1 });
    await expectEvents(world, { id: discarded._id }, {});
    expect((await world.api.ok("createAgent", 200, { token, body })).agent.id).to.equal(made.agent.id);
  });
});
