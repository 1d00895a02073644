import { TEST_ACCESS_PROOFS } from "../support/access-proofs.ts";
import { randomUUID } from "node:crypto";
import { expect } from "chai";
import { z } from "zod";
import { collectionsOf } from "../../src/store/collections.ts";
import { judge } from "../../src/domain/ledger/judge.ts";
import { packLedger } from "../../src/domain/ledger/pack.ts";
import { LEDGER_BOUNDS, newLedger } from "../../src/domain/ledger/state.ts";
import { LEDGER_SETTINGS, LEDGER_WORKFLOW, ledgerWorkflowId } from "../../src/messages/ledger.ts";
import { openPolicy } from "../domain/support/actor.ts";
import { McpCaller } from "../mcp/support.ts";
import { atOnce, expectDoneOnce, expectOneMade } from "../support/at-once.ts";
import { secondService } from "../support/own-service.ts";
import { seed } from "../support/seed.ts";
import { shortOrSoak, someOrAll } from "../support/soak.ts";
import {
  elevate,
  type Fields,
  newWorld,
  organizationKey,
  rotated,
  times,
  until,
  worldOf,
  type World,
} from "../support/world.ts";

/** One create of each kind, as tests ask for it: what it answers is told by the name of its record. */
interface Kind {
  readonly noun: "agent" | "project" | "team";
  readonly operation: "createAgent" | "createProject" | "createTeam";
  readonly body: (world: World, fields?: Fields) => Fields & { readonly idempotencyKey: string };
}

/** A record of any kind. */
const anyRecord = z.looseObject({ id: z.string() });

const keyed = (fields: Fields) => ({ idempotencyKey: randomUUID(), ...fields });

/** Requests at once under one idempotency key. */
const REPLAYS = shortOrSoak(12, 50);
const PAYLOADS = shortOrSoak(6, 20);

const KINDS: readonly Kind[] = [
  {
    noun: "agent",
    operation: "createAgent",
    body: ({ organization: { teamId } }, fields) =>
      keyed({ name: "Once", teamId, budgetCents: 1, ...fields }),
  },
  {
    noun: "project",
    operation: "createProject",
    body: (_world, fields) => keyed({ name: "Once", ...fields }),
  },
  { noun: "team", operation: "createTeam", body: (_world, fields) => keyed({ name: "Once", ...fields }) },
];

const CREATORS = ["a person", "an organization's key"] as const;
type Creator = (typeof CREATORS)[number];

/** Kinds and creators go the same way, so some stand for all of them in each run. */
const COMBINATIONS = someOrAll(
  KINDS.flatMap((kind) => CREATORS.map((creator) => ({ kind, creator }))),
  2,
);
const SOME_KINDS = someOrAll(KINDS, 1);

describe(`creates over HTTP (TEST_SEED=${seed})`, () => {
  let world: World;
  before(async () => {
    world = await newWorld();
  });

  async function create({ noun, operation }: Kind, status: 200 | 201, token: string, body: Fields) {
    const answer: Readonly<Record<string, unknown>> = await world.api.ok(operation, status, { token, body });
    return anyRecord.parse(answer[noun]);
  }

  /** What a crash leaves: the reservation and, of an agent, its actor, but nothing of what commits together. */
  async function loseRecord(noun: string, id: string, leaseUntil: Date): Promise<void> {
    const { db } = world.service;
    await db.collection<{ _id: string }>(`${noun}s`).deleteOne({ _id: id });
    await db.collection<{ _id: string }>("key_deliveries").deleteOne({ _id: id });
    await db.collection("events").deleteMany({ agentId: id });
    const uncommitted = { $set: { "places.$.committed": false } };
    await db.collection("daily_creates").updateMany({ "places.id": id }, uncommitted);
    await db.collection("creates").updateOne({ createdId: id }, { $set: { leaseUntil } });
  }

  const count = (noun: string, name: string): Promise<number> =>
    world.service.db.collection(`${noun}s`).countDocuments({ name });

  const tokenOf = async (creator: Creator): Promise<string> =>
    creator === "a person" ? world.token : (await organizationKey(world)).token;

  for (const { kind, creator } of COMBINATIONS) {
    const { noun, operation } = kind;
    describe(`of ${noun} by ${creator}`, () => {
      it("a replay is 200 with the same record, in any order of fields, with defaults spelt out", async () => {
        const token = await tokenOf(creator);
        const body = kind.body(world);
        const record = await create(kind, 201, token, body);
        expect(await create(kind, 200, token, body)).to.deep.equal(record);
        const spelt = Object.fromEntries(Object.entries({ ...body, description: null }).toReversed());
        expect(await create(kind, 200, token, spelt)).to.deep.equal(record);
      });

      it("another payload under the same key is 422, and so is the key for another kind", async () => {
        const token = await tokenOf(creator);
        const body = kind.body(world);
        await create(kind, 201, token, body);
        const other = { ...body, name: "Another" };
        await world.api.refused(operation, 422, "IDEMPOTENCY_KEY_REUSED", { token, body: other });
        for (const foreign of KINDS.filter((each) => each !== kind)) {
          const reused = { ...foreign.body(world), idempotencyKey: body.idempotencyKey };
          await world.api.refused(foreign.operation, 422, "IDEMPOTENCY_KEY_REUSED", {
            token,
            body: reused,
          });
        }
      });

      it("many times at once: one 201, replays of the same, one record", async () => {
        const token = await tokenOf(creator);
        const name = `At once ${randomUUID()}`;
        const body = kind.body(world, { name });
        expectDoneOnce(await atOnce(REPLAYS, () => world.api.call(operation, { token, body })), "200");
        expect(await count(noun, name)).to.equal(1);
      });

      it("different payloads under one key at once: one is made, the others are 422", async () => {
        const token = await tokenOf(creator);
        const prefix = `Raced ${randomUUID()}`;
        const body = kind.body(world);
        const answers = await atOnce(PAYLOADS, (index) => {
          const own = { ...body, name: `${prefix} ${index}` };
          return world.api.call(operation, { token, body: own });
        });
        expectOneMade(answers);
        const made = await world.service.db.collection(`${noun}s`).countDocuments({
          name: { $regex: `^${prefix}` },
        });
        expect(made).to.equal(1);
      });

      it("one that died before its record was written is finished by its replay, under the id it had", async () => {
        const token = await tokenOf(creator);
        // The call that died held it for some seconds; they are over, or its clock ran an hour ahead of this one.
        for (const leaseUntil of [new Date(0), new Date(Date.now() + 3_600_000)]) {
          const body = kind.body(world);
          const { id } = await create(kind, 201, token, body);
          await loseRecord(noun, id, leaseUntil);
          const finished = await create(kind, 201, token, body);
          expect(finished.id).to.equal(id);
          expect((await create(kind, 200, token, body)).id).to.equal(id);
        }
      });
    });
  }

  for (const kind of SOME_KINDS) {
    const { noun, operation } = kind;
    it(`${noun}: without an idempotency key a person creates another; a machine must send one`, async () => {
      const { idempotencyKey, ...body } = kind.body(world);
      expect(idempotencyKey).to.be.a("string");
      const [one, two] = [
        await create(kind, 201, world.token, body),
        await create(kind, 201, world.token, body),
      ];
      expect(one.id).not.to.equal(two.id);
      const { token } = await organizationKey(world);
      await world.api.refused(operation, 400, "IDEMPOTENCY_KEY_REQUIRED", { token, body });
    });

    it(`${noun}: idempotency keys go by lineage: a rotated key replays, others create their own`, async () => {
      const first = await organizationKey(world);
      const body = kind.body(world);
      const record = await create(kind, 201, first.token, body);
      const second = await rotated(world, first);
      await world.api.refused(operation, 401, "UNAUTHORIZED", { token: first.token, body });
      expect(await create(kind, 200, second.token, body)).to.deep.equal(record);
      const other = await organizationKey(world);
      const ids = [
        record.id,
        (await create(kind, 201, other.token, body)).id,
        (await create(kind, 201, world.token, body)).id,
      ];
      expect(new Set(ids).size).to.equal(3);
    });

    it(`${noun}: two servers that are asked at once make one`, async () => {
      const second = await secondService(world.service);
      try {
        const there = worldOf(second, world.organization);
        const { token } = await organizationKey(world);
        const name = `Two servers ${randomUUID()}`;
        const body = kind.body(world, { name });
        const answers = await atOnce(REPLAYS, (index) =>
          (index % 2 === 0 ? world : there).api.call(operation, { token, body }),
        );
        expectDoneOnce(answers, "200");
        expect(await count(noun, name)).to.equal(1);
      } finally {
        await second.stop();
      }
    });

    it(`${noun}: an organization that is not ready answers 409 ORG_NOT_READY`, async () => {
      const own = await newWorld();
      // Before any request: an organization that is ready stays so.
      await own.service.db
        .collection<{ _id: string }>("organizations")
        .updateOne({ _id: own.organization.organizationId }, { $set: { status: "provisioning" } });
      const { token } = await organizationKey(own);
      for (const each of [token, own.token]) {
        await own.api.refused(operation, 409, "ORG_NOT_READY", { token: each, body: kind.body(own) });
      }
    });
  }

  it("an agent by a key: 201 with its own key, also on replay; creator and lineage are recorded", async () => {
    const first = await organizationKey(world);
    const key = await rotated(world, first);
    const { teamId } = world.organization;
    const body = keyed({ name: "Made", teamId, budgetCents: 1 });
    const created = await world.api.ok("createAgent", 201, { token: key.token, body });
    expect(created.apiKey).to.match(/^sk_svc_live_/);
    expect(created.agent.createdBy).to.deep.equal({ type: "organization_key", id: key.id });
    const replayed = await world.api.ok("createAgent", 200, { token: key.token, body });
    expect(replayed).to.deep.equal(created);
    const record = await world.service.db
      .collection<{ _id: string }>("agents")
      .findOne({ _id: created.agent.id });
    expect(record).to.deep.include({ createdByLineage: first.lineageId });
    expect(first.lineageId).to.equal(first.id);
  });

  it("a project takes 10,000 live agents; then 409, but for replays, until one is archived", async () => {
    const own = await newWorld();
    await elevate(own);
    const teamId = await fullProject(own, LEDGER_BOUNDS.accounts - 1);
    const another = () => ({
      token: own.token,
      body: { name: "Last", teamId, budgetCents: 1, idempotencyKey: randomUUID() },
    });
    const last = another();
    const { agent } = await own.api.ok("createAgent", 201, last);
    await own.api.refused("createAgent", 409, "PROJECT_FULL", another());
    await own.api.ok("createAgent", 200, last);
    await own.api.ok("archiveAgent", 200, { token: own.token, id: agent.id });
    await until("there is room again", async () => {
      const answer = await own.api.call("createAgent", another());
      return answer.status === 201 ? true : null;
    });
  });

  it("a replay answers the record also when its container was archived since", async () => {
    const own = await newWorld();
    const { token } = await organizationKey(own);
    const { projectId, teamId } = own.organization;
    const agentBody = keyed({ name: "Kept", teamId, budgetCents: 1 });
    const teamBody = keyed({ name: "Kept" });
    const { agent } = await own.api.ok("createAgent", 201, { token, body: agentBody });
    const { team } = await own.api.ok("createTeam", 201, { token, body: teamBody });
    for (const [name, _id] of [
      ["teams", teamId],
      ["projects", projectId],
    ] as const) {
      const containers = own.service.db.collection<{ _id: string }>(name);
      await containers.updateOne({ _id }, { $set: { archivedAt: new Date() } });
    }
    expect((await own.api.ok("createAgent", 200, { token, body: agentBody })).agent).to.deep.equal(agent);
    expect((await own.api.ok("createTeam", 200, { token, body: teamBody })).team).to.deep.equal(team);
  });

  it("a tool's create is the same one as over REST: either replays the other", async () => {
    const { token } = await organizationKey(world);
    const caller = await McpCaller.connect(world.service.baseUrl, token);
    try {
      for (const kind of SOME_KINDS) {
        const body = kind.body(world, { description: "by tool" });
        const call = async () => {
          const result = await caller.client.callTool({ name: `create_${kind.noun}`, arguments: body });
          expect(result.isError, JSON.stringify(result)).not.to.equal(true);
          return z.record(z.string(), z.unknown()).parse(result.structuredContent)[kind.noun];
        };
        const made = await call();
        expect(await create(kind, 200, token, body)).to.deep.equal(made);
        expect(await call()).to.deep.equal(made);
      }
    } finally {
      await caller.close();
    }
  });
});

/** A project with so many agents in its ledger; they have no records. Its team's id. */
async function fullProject({ organization, service }: World, agents: number): Promise<string> {
  const { organizationId } = organization;
  const [projectId, teamId] = [randomUUID(), randomUUID()];
  const ledger = newLedger(organizationId, projectId);
  for (const agentId of times(agents, () => randomUUID())) {
    const account = { agentId, teamId, name: "Agent", policy: openPolicy, keyId: null };
    judge(ledger, { kind: "open_account", ...account }, Date.now());
  }
  const { addresses, db, temporal } = service.connections;
  const start = { kind: "resume", ledger: packLedger(ledger, Date.now()) } as const;
  await temporal.workflow.start(LEDGER_WORKFLOW, {
    workflowId: ledgerWorkflowId(projectId),
    taskQueue: addresses.taskQueue,
    args: [{ start, settings: LEDGER_SETTINGS }],
  });
  const { projects, teams } = collectionsOf(db);
  const project = await projects.findOne({ _id: organization.projectId });
  const team = await teams.findOne({ _id: organization.teamId });
  if (project === null || team === null) throw new Error("the organization has lost its default containers");
  await projects.insertOne(TEST_ACCESS_PROOFS.proven("project", { ...project, _id: projectId }));
  await teams.insertOne(TEST_ACCESS_PROOFS.proven("team", { ...team, _id: teamId, projectId }));
  return teamId;
}
