import { randomUUID } from "node:crypto";
import { expect } from "chai";
import { startTestService, type TestService } from "../support/service.ts";
import { cardPayment, elevate, type Fields, newWorld, organizationKey, rotated } from "../support/world.ts";
import { type TestOrganizationKey, times, type World } from "../support/world.ts";
import { fund } from "../support/chain.ts";
import {
  archive,
  expectDead,
  expectEvents,
  expectNoKey,
  expiredAgents,
  keyOf,
  lateCreate,
  made,
  type MadeAgent,
  mintKey,
  orchestrator,
  readAgent,
  replay,
  revokeKey,
  windowClosed,
} from "../support/life.ts";
import { McpCaller } from "../mcp/support.ts";
import { send } from "../support/wire.ts";

/** Long enough that a busy machine's create comes inside it. */
const WINDOW_SECONDS = 5;
const AGENTS_OF_A_KEY = 5;

describe("an organization's key archives an agent", () => {
  describe("while its first key can still be delivered", () => {
    let world: World;
    let by: TestOrganizationKey;
    before(async () => {
      world = await newWorld();
      by = await orchestrator(world);
    });
    const refused = (
      agent: MadeAgent,
      code: "KEY_STILL_DELIVERABLE" | "MACHINE_ARCHIVE_DENIED",
      token = by.token,
    ) =>
      world.api.refused("archiveAgent", code === "MACHINE_ARCHIVE_DENIED" ? 403 : 409, code, {
        token,
        id: agent.id,
      });

    it("409 KEY_STILL_DELIVERABLE, also by the rotated key; a replay keeps the agent", async () => {
      const own = await orchestrator(world);
      const agent = await made(world, own);
      await refused(agent, "KEY_STILL_DELIVERABLE", own.token);
      const successor = await rotated(world, own);
      await refused(agent, "KEY_STILL_DELIVERABLE", successor.token);
      expect((await replay(world, agent, successor.token)).apiKey).to.equal(agent.key);
      expect((await readAgent(world, agent)).state).to.equal("active");
    });

    it("what can't change comes first: 403 if used, touched by a person, or another lineage's", async () => {
      const [used, revoked, foreign] = [await made(world, by), await made(world, by), await made(world, by)];
      await world.api.ok("listPayments", 200, { token: keyOf(used) });
      await refused(used, "MACHINE_ARCHIVE_DENIED");
      await revokeKey(world, revoked);
      await refused(revoked, "MACHINE_ARCHIVE_DENIED");
      const other = await orchestrator(world);
      await refused(foreign, "MACHINE_ARCHIVE_DENIED", other.token);
      await refused(foreign, "KEY_STILL_DELIVERABLE");
    });

    it("a funded wallet is looked at last: what is still deliverable says so", async () => {
      const agent = await made(world, by);
      await fund(world, agent, 100);
      await refused(agent, "KEY_STILL_DELIVERABLE");
    });

    it("an agent that a person created or archived is denied, whatever the key's scopes", async () => {
      const { id } = await world.agent();
      const request = { token: by.token, id };
      await world.api.refused("archiveAgent", 403, "MACHINE_ARCHIVE_DENIED", request);
      await archive(world, { id });
      await world.api.refused("archiveAgent", 403, "MACHINE_ARCHIVE_DENIED", request);
    });

    it("scope, binding and existence come before all conditions", async () => {
      const agent = await made(world, by);
      const { id } = agent;
      const { token: reader } = await organizationKey(world, { scopes: ["agents:read"] });
      await world.api.refused("archiveAgent", 403, "INSUFFICIENT_SCOPE", { token: reader, id });
      const { team } = await world.api.ok("createTeam", 201, { token: world.token, body: { name: "Other" } });
      const { token: bound } = await organizationKey(world, { binding: { type: "team", id: team.id } });
      await world.api.refused("archiveAgent", 403, "OUTSIDE_BINDING", { token: bound, id });
      for (const unknown of [randomUUID(), "nobody", (await (await newWorld()).agent()).id]) {
        await world.api.refused("archiveAgent", 404, "NOT_FOUND", { token: by.token, id: unknown });
      }
    });

    it("what a person archived of its lineage's is 200 to it, and denied to others", async () => {
      const agent = await made(world, by);
      await archive(world, agent);
      const answer = await archive(world, agent, by.token);
      expect([answer.agent.state, answer.walletsFailed]).to.deep.equal(["archived", []]);
      await refused(agent, "MACHINE_ARCHIVE_DENIED", (await orchestrator(world)).token);
    });
  });

  describe("after the window", () => {
    let service: TestService;
    let world: World;
    let by: TestOrganizationKey;
    let unproven: MadeAgent[];
    let aheadMs = 0;
    const clock = () => new Date(Date.now() + aheadMs);
    before(async () => {
      service = await startTestService({ clock, keyDeliveryWindowSeconds: WINDOW_SECONDS });
      world = await newWorld(service);
      by = await orchestrator(world);
      // Several keys: the route has a cap per minute and key.
      const keys = [by, await orchestrator(world), await orchestrator(world), await orchestrator(world)];
      const making = keys.map((key) => expiredAgents(world, key, AGENTS_OF_A_KEY, "unproven"));
      unproven = interleaved(await Promise.all(making));
    });
    afterEach(() => (aheadMs = 0));
    after(() => service.stop());

    const refuse = (
      agent: Pick<MadeAgent, "by" | "id">,
      status: 403 | 409,
      code: "KEY_DELIVERY_UNPROVEN" | "MACHINE_ARCHIVE_DENIED",
      token = agent.by.token,
    ) => world.api.refused("archiveAgent", status, code, { token, id: agent.id });

    function nextUnproven(): MadeAgent {
      const agent = unproven.pop();
      if (agent === undefined) throw new Error("make more agents");
      return agent;
    }
    async function nextProven(): Promise<MadeAgent> {
      const agent = nextUnproven();
      expectNoKey(await replay(world, agent, agent.by.token), "expired");
      return agent;
    }
    it("409 KEY_DELIVERY_UNPROVEN until the replay stamps the proof; then 200, and 200 again", async () => {
      const agent = nextUnproven();
      for (const _ of times(3, () => null)) await refuse(agent, 409, "KEY_DELIVERY_UNPROVEN");
      expectNoKey(await replay(world, agent, agent.by.token), "expired");
      for (const _ of times(2, () => null)) {
        const answer = await archive(world, agent, agent.by.token);
        expect(answer.walletsFailed).to.deep.equal([]);
        expect([answer.agent.id, answer.agent.state, answer.agent.key]).to.deep.equal([
          agent.id,
          "archived",
          null,
        ]);
      }
      await expectDead(world, keyOf(agent));
      await expectEvents(world, agent, { "agent.created": 1, "agent.archived": 1 });
    });

    it("a first answer that came too late stamps nothing: unproven, until a replay is answered", async () => {
      const { body, first } = await lateCreate(world, by.token, (isLate) => {
        aheadMs = isLate ? WINDOW_SECONDS * 1_000 : 0;
      });
      expectNoKey(first, "expired");
      const agent = { ...first.agent, by };
      await windowClosed(world, agent.id);
      await refuse(agent, 409, "KEY_DELIVERY_UNPROVEN");
      expectNoKey(await replay(world, { body }, by.token), "expired");
      await archive(world, agent, agent.by.token);
    });

    it("only the same lineage's replay stamps; another's same idempotency key is its own create", async () => {
      const agent = nextUnproven();
      const other = await orchestrator(world);
      const { agent: own } = await world.api.ok("createAgent", 201, { token: other.token, body: agent.body });
      expect(own.id).not.to.equal(agent.id);
      await refuse(agent, 409, "KEY_DELIVERY_UNPROVEN");
      const mistaken = { token: agent.by.token, body: { ...agent.body, budgetCents: 7 } };
      await world.api.refused("createAgent", 422, "IDEMPOTENCY_KEY_REUSED", mistaken);
      await refuse(agent, 409, "KEY_DELIVERY_UNPROVEN");
    });

    it("a rotated key proves and archives what its predecessor created; the old value is dead", async () => {
      const own = await orchestrator(world);
      const agent = await made(world, own);
      const successor = await rotated(world, own);
      await windowClosed(world, agent.id);
      await refuse(agent, 409, "KEY_DELIVERY_UNPROVEN", successor.token);
      expectNoKey(await replay(world, agent, successor.token), "expired");
      const dead = { token: own.token, id: agent.id };
      await world.api.refused("archiveAgent", 401, "UNAUTHORIZED", dead);
      await archive(world, agent, (await rotated(world, successor)).token);
    });

    /** Each alone: a proven agent that lacks nothing else. */
    const conditions: readonly (readonly [string, (agent: MadeAgent) => Promise<unknown>])[] = [
      ["its key was used", (agent) => world.api.ok("listPayments", 200, { token: keyOf(agent) })],
      [
        "its key was used for a payment",
        (agent) => world.api.ok("createPayment", 201, { token: keyOf(agent), body: cardPayment() }),
      ],
      ["a person revoked its key", (agent) => revokeKey(world, agent)],
      [
        "a person minted another",
        async (agent) => {
          await revokeKey(world, agent);
          await mintKey(world, agent);
        },
      ],
      ["its wallet holds something", (agent) => fund(world, agent, 1)],
    ];
    for (const [condition, meet] of conditions) {
      it(`403 MACHINE_ARCHIVE_DENIED because ${condition}, for good; a person may`, async () => {
        const agent = await nextProven();
        await meet(agent);
        for (const _ of times(2, () => null)) await refuse(agent, 403, "MACHINE_ARCHIVE_DENIED");
        expect((await readAgent(world, agent)).state).to.equal("active");
        expect((await archive(world, agent)).agent.state).to.equal("archived");
        expect((await archive(world, agent, agent.by.token)).agent.state).to.equal("archived");
      });
    }

    it("403 for another lineage's, though it qualifies for its own", async () => {
      const agent = await nextProven();
      const other = await orchestrator(world);
      await refuse(agent, 403, "MACHINE_ARCHIVE_DENIED", other.token);
      await archive(world, agent, agent.by.token);
      await refuse(agent, 403, "MACHINE_ARCHIVE_DENIED", other.token);
    });

    it("unproven comes before a balance that is not zero", async () => {
      const agent = nextUnproven();
      await fund(world, agent, 5);
      await refuse(agent, 409, "KEY_DELIVERY_UNPROVEN");
      expectNoKey(await replay(world, agent, agent.by.token), "expired");
      await refuse(agent, 403, "MACHINE_ARCHIVE_DENIED");
    });

    /** Requests with the agent's key that are refused: the key has been seen all the same. */
    const refusals: readonly (readonly [string, (key: string, id: string) => Promise<number>])[] = [
      ["a route of management", async (token) => (await world.api.call("listAgents", { token })).status],
      ["a route that is not there", (token) => rawStatus("/v1/nothing", token)],
      [
        "a payment without its idempotency key",
        async (token) => (await world.api.call("createPayment", { token, body: {} })).status,
      ],
      ["MCP", (token) => connected(token)],
      [
        "a paused agent",
        async (token, id) => {
          await world.api.ok("pauseAgent", 200, { token: by.token, id });
          const { status } = await world.api.call("listPayments", { token });
          await world.api.ok("resumeAgent", 200, { token: by.token, id });
          return status;
        },
      ],
    ];
    const rawStatus = async (path: string, token: string) => {
      const headers = { authorization: `Bearer ${token}` };
      return (await send(service.baseUrl, path, { headers })).status;
    };
    const connected = async (token: string) => {
      const caller = await McpCaller.connect(service.baseUrl, token);
      await caller.close();
      return 200;
    };
    it("any request of its key counts: 403, 404, 400, over MCP, or of a paused agent", async () => {
      const statuses: number[] = [];
      const { by: other } = nextUnproven();
      for (const [what, ask] of refusals) {
        const agent = await made(world, other);
        statuses.push(await ask(keyOf(agent), agent.id));
        const refusal = { token: other.token, id: agent.id };
        const { message } = await world.api.refused("archiveAgent", 403, "MACHINE_ARCHIVE_DENIED", refusal);
        expect(message, what).to.be.a("string");
      }
      expect(statuses).to.deep.equal([403, 404, 400, 200, 403]);
    });

    it("a pause, a resume, a new policy and a new name by people or keys are no touch of its keys", async () => {
      const agent = await nextProven();
      const { id } = agent;
      await world.api.ok("pauseAgent", 200, { token: by.token, id });
      await world.api.ok("resumeAgent", 200, { token: world.token, id });
      await elevate(world);
      const patch: Fields = { version: 1, budgetCents: 1 };
      await world.api.ok("updateAgentBudgetPolicy", 200, { token: world.token, id, body: patch });
      await world.api.ok("updateAgent", 200, { token: world.token, id, body: { name: "Renamed" } });
      await world.api.ok("pauseAgent", 200, { token: by.token, id });
      expect((await archive(world, agent, agent.by.token)).agent.name).to.equal("Renamed");
    });

    it("a made-up key, or the key with a slip, is no use of the agent's", async () => {
      const agent = await nextProven();
      const key = keyOf(agent);
      const slip = `${key.slice(0, 20)}${key[20] === "a" ? "b" : "a"}${key.slice(21)}`;
      await world.api.refused("listPayments", 401, "UNAUTHORIZED", { token: slip });
      await archive(world, agent, agent.by.token);
    });
  });
});

const interleaved = <T>(lists: readonly (readonly T[])[]): T[] =>
  times(Math.max(...lists.map(({ length }) => length)), (index) =>
    lists.flatMap((list) => list.slice(index, index + 1)),
  ).flat();
