import { expect } from "chai";
import type { Db } from "mongodb";
import { ChangeLog } from "../../src/changes/log.ts";
import { positionAt } from "../../src/changes/position.ts";
import type { SessionPrincipal } from "../../src/identity/session-principal.ts";
import { type StreamConnection, Streams } from "../../src/changes/streams.ts";
import type { StreamEnd } from "../../src/contract/stream.ts";
import { testDatabase, type TestDatabase } from "../support/mongo.ts";
import { times, until } from "../support/world.ts";

/** What a reader has read, as text. */
interface Reader {
  text: string;
  ended: boolean;
  /** What is answered when it is looked at who is behind it. */
  verdict: StreamEnd | null;
  close: (() => void) | null;
}

/** Only what streams ask of a person. */
const person = (organizationId: string, sessionId = "s1"): SessionPrincipal => ({
  type: "session",
  sessionId,
  userId: "u1",
  organizationId,
  email: "",
  name: "",
  role: "owner",
  binding: { type: "organization" },
  organization: {
    _id: organizationId,
    name: "",
    plan: "free",
    restPerMinute: null,
    mcpPerMinute: null,
    status: "ready",
    defaultProjectId: "",
    defaultTeamId: "",
    createdAt: new Date(),
    creation: "",
    readyAt: null,
  },
  signedInAt: new Date(),
  amr: [],
  stepUpExpiresAt: null,
  mustEnrol: false,
});

const approve = (db: Db, id: string, organizationId = "o1") =>
  db.collection<{ _id: string }>("approvals").insertOne(Object.assign({ _id: id }, { organizationId }));

const heard = (reader: Reader, id: string) =>
  until(`${id} heard`, () => Promise.resolve(reader.text.includes(`"${id}"`) ? true : null));

const lastId = ({ text }: Reader): string => [...text.matchAll(/^id: ([0-9a-f]{20})$/gm)].at(-1)?.[1] ?? "";

const at = (second: number) => positionAt({ t: second, i: 1 }, 1);
const change = (second: number, organizationId = "o1", id = `i${String(second)}`) =>
  ({ position: at(second), organizationId, kind: "approvals", id, isMinor: false }) as const;
const idsSince = (log: ChangeLog, second: number, organizationId = "o1") =>
  log.since(organizationId, at(second))?.map(({ id }) => id) ?? null;

async function open(
  streams: Streams,
  organizationId = "o1",
  lastEventId: string | null = null,
  sessionId = "s1",
): Promise<Reader> {
  const reader: Reader = { text: "", ended: false, verdict: null, close: null };
  const line: StreamConnection = {
    send: (text) => (reader.text += text.toString()),
    end(text) {
      reader.text += text;
      reader.ended = true;
    },
    check: () => Promise.resolve(reader.verdict),
  };
  const prepared = await streams.prepare(person(organizationId, sessionId), { kinds: null, lastEventId });
  if (!prepared.ok) throw new Error(prepared.refusal.code);
  const opened = prepared.value.open(line);
  if (!opened.ok) throw new Error(opened.refusal.code);
  reader.close = opened.value;
  await until("ready", () => Promise.resolve(reader.text.includes("event: ready") ? true : null));
  return reader;
}

describe("streams of several processes", () => {
  let database: TestDatabase;
  let processes: Streams[];
  let errors: unknown[];
  beforeEach(async () => {
    database = await testDatabase();
    processes = [];
    errors = [];
    await database.db.collection("agents").insertOne({ name: "somebody else's" });
  });
  afterEach(async () => {
    await Promise.all(processes.map((each) => each.end()));
    await database.close();
  });

  function process(): Streams {
    const made = new Streams({
      db: database.db,
      dataOf: (_organization, _kind, ids, more) => Promise.resolve({ ids, more }),
      onError: (error) => errors.push(error),
    });
    processes.push(made);
    return made;
  }

  /** Ends the change stream on the server, as a failover would. */
  async function breakFeeds(): Promise<void> {
    const admin = database.client.db("admin");
    const ns = `${database.db.databaseName}.$cmd.aggregate`;
    const found = await admin
      .aggregate([
        { $currentOp: { idleCursors: true, allUsers: true } },
        { $match: { ns, "cursor.tailable": true } },
      ])
      .toArray();
    const cursors = found.map(({ cursor }) => cursor.cursorId);
    expect(cursors).not.to.deep.equal([]);
    await database.db.command({ killCursors: "$cmd.aggregate", cursors });
  }

  it("each process tells of what was written through any of them", async () => {
    const readers = await Promise.all([open(process()), open(process())]);
    await approve(database.db, "a1");
    await Promise.all(readers.map((reader) => heard(reader, "a1")));
  });

  it("an organization's many sessions have their share of a process's streams, and others theirs", async () => {
    const streams = process();
    await Promise.all(times(500, (index) => open(streams, "o1", null, `s${String(index)}`)));
    const further: unknown = await open(streams, "o1", null, "another").catch((error: unknown) => error);
    expect(String(further)).to.include("TOO_MANY_STREAMS");
    await open(streams, "o2");
  });

  it("a stream of one process is resumed at another that has only just started", async () => {
    const first = await open(process());
    await approve(database.db, "a1");
    await heard(first, "a1");
    first.close?.();
    await approve(database.db, "a2");
    await approve(database.db, "b2", "o2");
    const resumed = await open(process(), "o1", lastId(first));
    expect(resumed.text).to.contain("event: ready").and.to.contain('"resumed":true');
    expect(resumed.text).to.contain('"a2"').and.not.to.contain('"a1"').and.not.to.contain('"b2"');
  });

  it("a feed that breaks goes on where it was", async () => {
    const reader = await open(process());
    await approve(database.db, "a1");
    await heard(reader, "a1");
    await breakFeeds();
    await approve(database.db, "a2");
    await heard(reader, "a2");
  });

  it("a process that ends says so on every stream, and opens none any more", async () => {
    const streams = process();
    const readers = await Promise.all(times(3, (index) => open(streams, `o${String(index)}`)));
    await streams.end();
    for (const { ended, text } of readers) {
      expect(ended).to.equal(true);
      expect(text)
        .to.contain('event: end\ndata: {"reason":"restart"}')
        .and.to.match(/retry: \d+/);
    }
    const late = await streams.prepare(person("o1"), { kinds: null, lastEventId: null });
    expect(late.ok).to.equal(false);
  });

  it("what could not be read is told once it can be, and no id promises it before", async () => {
    let isDown = true;
    const streams = new Streams({
      db: database.db,
      dataOf: (_organization, _kind, ids, more) =>
        isDown ? Promise.reject(new Error("down")) : Promise.resolve({ ids, more }),
      onError: (error) => errors.push(error),
    });
    processes.push(streams);
    const reader = await open(streams);
    const before = lastId(reader);
    await approve(database.db, "a1");
    await until("it was tried", () => Promise.resolve(errors.length > 0 ? true : null));
    expect(lastId(reader)).to.equal(before);
    isDown = false;
    await heard(reader, "a1");
    expect(lastId(reader) > before).to.equal(true);
  });
});

describe("what is remembered of changes", () => {
  it("each record is remembered once, where it changed last", () => {
    const log = new ChangeLog();
    log.begin(at(1));
    for (const one of [change(2, "o1", "x"), change(3), change(4, "o1", "x")]) log.add(one);
    expect(idsSince(log, 1)).to.deep.equal(["i3", "x"]);
    expect(idsSince(log, 3)).to.deep.equal(["x"]);
    expect(idsSince(log, 4)).to.deep.equal([]);
  });

  it("what happened before it began, or was forgotten, is not known", () => {
    const log = new ChangeLog({ inAll: 100, ofOne: 2 });
    log.begin(at(5));
    expect(idsSince(log, 4)).to.equal(null);
    expect(idsSince(log, 5)).to.deep.equal([]);
    for (const second of [6, 7, 8]) log.add(change(second));
    expect(idsSince(log, 5)).to.equal(null);
    expect(idsSince(log, 6)).to.deep.equal(["i7", "i8"]);
  });

  it("the quietest organization is forgotten first, and no client is told less than there was", () => {
    const log = new ChangeLog({ inAll: 3, ofOne: 3 });
    log.begin(at(1));
    log.add(change(2, "quiet"));
    for (const second of [3, 4, 5]) log.add(change(second, "busy"));
    expect(idsSince(log, 1, "quiet")).to.equal(null);
    expect(idsSince(log, 2, "quiet")).to.deep.equal([]);
    expect(idsSince(log, 2, "busy")).to.deep.equal(["i3", "i4", "i5"]);
    // Not known to have been quiet all the while.
    expect(idsSince(log, 1, "never received")).to.equal(null);
  });
});
