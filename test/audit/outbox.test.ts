import { expect } from "chai";
import { AuditAppender, AuditLogUnavailable } from "../../src/audit/chain/appender.ts";
import { actionsOn } from "../../src/client/audit-actions.ts";
import { TimeoutError } from "../../src/lib/with-timeout.ts";
import { AUDIT_OUTBOX, AuditOutbox, type AuditOutboxDocument } from "../../src/audit/audit-outbox.ts";
import { type OperationId, operationList } from "../../src/contract/registry.ts";
import type { AuditRecord } from "../../src/domain/audit/entry.ts";
import { LOOPBACK } from "../support/identity-provider.ts";
import { startTestService, type TestService } from "../support/service.ts";
import { someOrAll } from "../support/soak.ts";
import { elevate, newWorld, times, until, type World } from "../support/world.ts";
import { gate } from "../workflows/support/doubles.ts";
import { breakIn, entriesOf, testSeal } from "./support.ts";
import type { Prepared, WritingRow } from "./write-rows.ts";
import { WRITES } from "./write-table.ts";
import { ContractApi } from "../support/contract-api.ts";

const TRIES_MAX = 5;

/** After so long a server that has begun something is taken for dead. */
const LATER_MS = 61_000;

const project = (world: World, name = "New") => ({ token: world.token, body: { name } });

function expectSaid(said: unknown, expected: object | undefined): void {
  if (expected === undefined) expect(said).to.equal(null);
  else expect(said).to.be.an("object").that.deep.includes(expected);
}

describe("the audit outbox", () => {
  let service: TestService;
  /** The server dies between a write and its entry, but for its process: told what it would have appended. */
  let cut: AuditRecord[] | null = null;
  /** What is appended, as it should be. */
  let appended: AuditRecord[] = [];
  /** It dies before or after the commit of a transaction. */
  let dies: "before the commit" | "after the commit" | null = null;
  /** The next transaction waits there before it begins. */
  let stalling: { readonly reached: ReturnType<typeof gate>; readonly wake: ReturnType<typeof gate> } | null =
    null;

  before(async () => {
    service = await startTestService({
      clientDocuments: LOOPBACK,
      decorateBackends: (backends) => ({
        ...backends,
        auditLog: {
          append(record, when) {
            if (cut === null) {
              appended.push(record);
              return backends.auditLog.append(record, when);
            }
            cut.push(record);
            return Promise.reject(new AuditLogUnavailable("the server is gone"));
          },
        },
        async transaction(work) {
          const stalled = stalling;
          stalling = null;
          stalled?.reached.open();
          await stalled?.wake.opened;
          const value = await backends.transaction(async (session) => {
            const written = await work(session);
            if (dies === "before the commit") throw new TimeoutError("the server is gone");
            return written;
          });
          if (dies === "after the commit") throw new TimeoutError("the server is gone");
          return value;
        },
      }),
    });
  });
  after(() => service?.stop());
  afterEach(() => {
    cut = null;
    appended = [];
    dies = null;
  });

  const seal = () => testSeal(service.env["MASTER_KEY"] ?? "");
  const records = () => service.db.collection<AuditOutboxDocument>(AUDIT_OUTBOX);

  /** Another server, which looks for what others have left. */
  const anotherServer = (laterMs = LATER_MS): AuditOutbox => serverAt(() => new Date(Date.now() + laterMs));

  function serverAt(clock: () => Date): AuditOutbox {
    const { db } = service;
    const log = new AuditAppender(db, seal());
    return new AuditOutbox({ db, log, seal: seal(), clock, onWarning: () => undefined });
  }

  /** The chain of an organization, which must be whole. */
  async function chainOf(organizationId: string) {
    const entries = await entriesOf(service.db, organizationId);
    expect(breakIn(entries, seal())).to.equal(null);
    return entries;
  }

  /** What a call is to append when its server dies. */
  async function cutOff(id: OperationId, { byTool, request }: Prepared): Promise<AuditRecord> {
    cut = [];
    if (byTool === undefined) {
      const answer = await new ContractApi(service.baseUrl).call(id, request);
      expect(answer.status, JSON.stringify(answer.body)).to.equal(503);
    } else await byTool();
    // On a busy machine it may be answered before it is done.
    const record = await until("it is about to append its entry", () => Promise.resolve(cut?.[0] ?? null));
    expect(cut).to.have.length(1);
    cut = null;
    return record;
  }

  it("knows every operation of the contract that changes something", () => {
    const changing = operationList.filter(([id, { access, http, tool }]) => {
      if (access.kind === "agent" || id.startsWith("simulate")) return false;
      return http === null ? tool?.hints.readOnly === false : http.method !== "get";
    });
    expect(Object.keys(WRITES).toSorted()).to.deep.equal(changing.map(([id]) => id).toSorted());
  });

  const rows = operationList.flatMap(([id]) => {
    const row = WRITES[id];
    return row === undefined || row.kind === "harmless" ? [] : [[id, row] as const];
  });

  describe("a server that dies between a write and its entry leaves it to another one:", () => {
    const ordered: readonly (readonly [OperationId, WritingRow])[] = rows.toSorted(
      ([one], [other]) => Number(other === "setUp") - Number(one === "setUp"),
    );
    const ofKind = (kind: WritingRow["kind"], count: number) =>
      someOrAll(
        ordered.filter(([, row]) => row.kind === kind),
        count,
      );
    for (const [id, row] of [...ofKind("committed", 5), ...ofKind("begun", 4)]) {
      it(id, async () => {
        let prepared = await row.prepare(service);
        let record = await cutOff(id, prepared);
        // On a busy machine it may have been given up before its write.
        for (let tries = 1; record.result.code !== null && tries < TRIES_MAX; tries += 1) {
          prepared = await row.prepare(service);
          record = await cutOff(id, prepared);
        }
        const { entryKey, organizationId } = record;
        expect((await records().findOne({ _id: entryKey }))?.kind).to.equal(row.kind);
        const isEntry = (entry: { readonly entryKey: string }) => entry.entryKey === entryKey;
        expect((await chainOf(organizationId)).filter(isEntry)).to.deep.equal([]);
        await anotherServer().sweep();
        await anotherServer().sweep();
        const [entry, ...more] = (await chainOf(organizationId)).filter(isEntry);
        expect(more).to.deep.equal([]);
        expect(entry?.action).to.equal(id.replace(/ByTool$/, ""));
        expect(actionsOn(entry?.resource.type ?? "")).to.include(entry?.action);
        // Of what an actor decides, it is unknown whether it has.
        expect(entry?.result.code).to.equal(null);
        expect(entry?.result.status === null).to.equal(row.kind === "begun");
        expectSaid(entry?.before, prepared.before);
        expectSaid(entry?.after, prepared.after);
        expect(await records().findOne({ _id: entryKey })).to.equal(null);
      });
    }
  });

  const begunRows = rows.filter(([, { kind }]) => kind === "begun");
  // What is committed has one record, whether its server dies or not; of what an actor decides, this one is made of its answer.
  describe("what an actor has decided and was answered has an entry that says as much:", () => {
    for (const [id, row] of someOrAll(begunRows, 3)) {
      it(id, async () => {
        const prepared = await row.prepare(service);
        appended = [];
        const answer = await new ContractApi(service.baseUrl).call(id, prepared.request);
        expect(answer.status, JSON.stringify(answer.body)).to.be.within(200, 299);
        const said = appended.filter(({ action }) => action === id);
        expect(said).to.have.length(1);
        expect(said[0]?.result).to.deep.equal({ status: answer.status, code: null });
        expectSaid(said[0]?.before, prepared.before);
        expectSaid(said[0]?.after, prepared.after);
      });
    }
  });

  describe("whatever happens to a write and its entry,", () => {
    let world: World;
    let earlier: number;
    before(async () => {
      world = await newWorld(service);
    });
    beforeEach(async () => {
      earlier = (await allCreated()).length;
    });

    const allCreated = async () =>
      (await chainOf(world.organization.organizationId)).filter(({ action }) => action === "createProject");
    /** Entries of this test's projects. */
    const created = async () => (await allCreated()).slice(earlier);
    const projects = () =>
      service.db.collection("projects").countDocuments({ organizationId: world.organization.organizationId });

    it("a write that is not committed leaves no entry but that of its answer", async () => {
      const before = await projects();
      dies = "before the commit";
      await world.api.refused("createProject", 503, "SERVICE_UNAVAILABLE", project(world));
      dies = null;
      await anotherServer().sweep();
      const said = (await created()).map(({ after, result: { status } }) => ({ after, status }));
      expect(said).to.deep.equal([{ after: null, status: 503 }]);
      expect(await projects()).to.equal(before);
    });

    it("a change that stalls until its caller was answered 503 is not made", async () => {
      const { token } = world;
      const { id, name } = (await world.api.ok("createProject", 201, project(world))).project;
      const late = { token, id, body: { name: "Late" } };
      const stall = { reached: gate(), wake: gate() };
      stalling = stall;
      const answered = world.api.refused("updateProject", 503, "SERVICE_UNAVAILABLE", late);
      await stall.reached.opened;
      await answered;
      stall.wake.open();
      await until("its entry is appended", async () =>
        appended.some(({ action }) => action === "updateProject") ? true : null,
      );
      expect((await world.api.ok("getProject", 200, { token, id })).project.name).to.equal(name);
    });

    it("a write that is committed after its 503 has one entry, of what was done", async () => {
      const before = await projects();
      dies = "after the commit";
      await world.api.refused("createProject", 503, "SERVICE_UNAVAILABLE", project(world));
      dies = null;
      await anotherServer().sweep();
      const said = (await created()).map(({ after, result: { status } }) => ({ after, status }));
      expect(said).to.deep.equal([{ after: { name: "New", description: null }, status: 201 }]);
      expect(await projects()).to.equal(before + 1);
    });

    it("what several servers find at once is in the chain once, in its order", async () => {
      const keys: string[] = [];
      for (const turn of times(5, (each) => each)) {
        keys.push((await cutOff("createProject", { request: project(world, `No. ${turn}`) })).entryKey);
      }
      await Promise.all(times(3, () => anotherServer().sweep()));
      expect((await created()).map(({ entryKey }) => entryKey)).to.deep.equal(keys);
    });

    it("what was only begun is left to its own server for a minute, also by one that starts", async () => {
      const { id } = await world.agent();
      const { entryKey } = await cutOff("pauseAgent", { request: { token: world.token, id } });
      const begun = await records().findOne({ _id: entryKey });
      if (begun === null) throw new Error("it was begun");
      await serverAt(() => new Date(begun.insertedAt.getTime() + 59_000)).sweep("start");
      expect(await records().findOne({ _id: entryKey })).to.deep.equal(begun);
    });

    it("a server that starts has put into the chain what another has left before it serves", async () => {
      const { entryKey } = await cutOff("createProject", { request: project(world) });
      await anotherServer(0).sweep("start");
      expect((await created()).map((entry) => entry.entryKey)).to.deep.equal([entryKey]);
    });

    it("what a server has left whose clock ran ahead is appended long before its time comes", async () => {
      const { entryKey } = await cutOff("createProject", { request: project(world) });
      await anotherServer(-3_600_000).sweep();
      expect((await created()).map((entry) => entry.entryKey)).to.deep.equal([entryKey]);
    });

    it("who writes to the database alone gets nothing into a chain by it", async () => {
      const { entryKey } = await cutOff("createProject", { request: project(world) });
      const found = await records().findOne({ _id: entryKey });
      if (found === null) throw new Error("it is there");
      const content = found.content.replace("createProject", "archiveProject");
      await records().updateOne({ _id: entryKey }, { $set: { content } });
      expect((await anotherServer().sweep()).left).to.equal(1);
      expect(await created()).to.deep.equal([]);
      await records().updateOne({ _id: entryKey }, { $set: { content: found.content } });
      expect((await anotherServer().sweep()).left).to.equal(0);
      expect(await created()).to.have.length(1);
    });

    it("a record of a refused request that is put back is sealed as no entry", async () => {
      const { id } = await world.agent();
      await elevate(world);
      const inserted = records().watch([{ $match: { operationType: "insert" } }]);
      await inserted.tryNext();
      // The agent has a key: only its actor knows, so the request is begun.
      await world.api.refused("mintAgentKey", 409, "KEY_ALREADY_EXISTS", { token: world.token, id });
      const seen = await inserted.next();
      await inserted.close();
      if (seen.operationType !== "insert") throw new Error("the request was begun");
      const record = seen.fullDocument;
      const isGone = async () => ((await records().findOne({ _id: record._id })) === null ? true : null);
      await until("its record is removed", isGone);
      await records().insertOne(record);
      expect((await anotherServer().sweep()).left).to.equal(0);
      expect(await isGone()).to.equal(true);
      const entries = await chainOf(world.organization.organizationId);
      const minted = entries.filter(({ action }) => action === "mintAgentKey");
      expect(minted.map(({ after, result }) => [after, result.code])).to.deep.equal([
        [null, "KEY_ALREADY_EXISTS"],
      ]);
    });

    it("an answered write leaves nothing there", async () => {
      const { id } = await world.agent();
      await world.api.ok("createProject", 201, project(world));
      await world.api.ok("pauseAgent", 200, { token: world.token, id });
      const its = { content: { $regex: world.organization.organizationId } };
      await until("it is empty", async () => ((await records().findOne(its)) === null ? true : null));
    });

    it("twenty writes of one organization at once all come through, each with its entry", async () => {
      await Promise.all(
        times(20, (each) =>
          world.api.ok("createProject", 201, {
            token: world.token,
            body: { name: `No. ${each}`, idempotencyKey: `${each}` },
          }),
        ),
      );
      const made = (await created()).filter(({ result }) => result.status === 201);
      expect(made).to.have.length(20);
    });
  });
});
