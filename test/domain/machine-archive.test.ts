import { expect } from "chai";
import type { MachineArchiver } from "../../src/domain/agent/archive.ts";
import type { AgentReply } from "../../src/domain/agent/commands.ts";
import { MINUTE, NOON, openPolicy, TestActor } from "./support/actor.ts";

/**
 * An archive by an organization's key, in every combination of what it depends on: each agent is brought to its state by
 * what can be asked of it, and the answers are written from the rules.
 */
const WINDOW = 30 * MINUTE;
const CREATOR = "lineage-creator";
const STRANGER = "lineage-stranger";
const FIRST_KEY = "akey_first";

const DENIED = "MACHINE_ARCHIVE_DENIED";
const STILL_DELIVERABLE = "KEY_STILL_DELIVERABLE";
const UNPROVEN = "KEY_DELIVERY_UNPROVEN";
const UNVERIFIABLE = "BALANCE_UNVERIFIABLE";

type Balance = MachineArchiver["balance"];

/** Each condition, from the agent's and its archiver's side; the first value is the one that allows. */
const CONDITIONS = {
  lineage: ["own", "other"],
  window: ["closed", "open"],
  proof: ["proven", "unproven"],
  key: ["unused", "used"],
  touch: ["untouched", "touched"],
  balance: ["zero", "not_zero", "unreadable"],
} as const;

type Row = { readonly [C in keyof typeof CONDITIONS]: (typeof CONDITIONS)[C][number] };

const QUALIFIES: Row = {
  lineage: "own",
  window: "closed",
  proof: "proven",
  key: "unused",
  touch: "untouched",
  balance: "zero",
};

const ROWS: readonly Row[] = CONDITIONS.lineage.flatMap((lineage) =>
  CONDITIONS.window.flatMap((window) =>
    CONDITIONS.proof.flatMap((proof) =>
      CONDITIONS.key.flatMap((key) =>
        CONDITIONS.touch.flatMap((touch) =>
          CONDITIONS.balance.map((balance) => ({ lineage, window, proof, key, touch, balance })),
        ),
      ),
    ),
  ),
);

/** What is checked, in this order, a line each; none fails: the agent is archived. */
const ORDER: readonly (readonly [fails: (row: Row) => boolean, code: string])[] = [
  [(row) => row.lineage === "other", DENIED],
  [(row) => row.touch === "touched", DENIED],
  [(row) => row.key === "used", DENIED],
  [(row) => row.window === "open", STILL_DELIVERABLE],
  [(row) => row.proof === "unproven", UNPROVEN],
  [(row) => row.balance === "unreadable", UNVERIFIABLE],
  [(row) => row.balance === "not_zero", DENIED],
];

const expectedOf = (row: Row): string => ORDER.find(([fails]) => fails(row))?.[1] ?? "archived";

const created = (lineageId: string | null = CREATOR): TestActor =>
  new TestActor({}, NOON, { keyId: FIRST_KEY, lineageId, deliverableUntil: NOON + WINDOW });

const use = (actor: TestActor, keyId = FIRST_KEY): AgentReply => actor.do({ kind: "authenticate", keyId });
const revoke = (actor: TestActor): AgentReply => actor.do({ kind: "revoke_key", recordedKeyId: null });
const mint = (actor: TestActor, keyId: string): AgentReply =>
  actor.do({ kind: "mint_key", keyId, recordedKeyId: null });
/** What a server asks for when a replay of the create finds the window over. */
const replayCreate = (actor: TestActor, lineageId = CREATOR): AgentReply =>
  actor.do({ kind: "prove_non_delivery", lineageId });

function archiveBy(actor: TestActor, lineageId: string, balance: Balance = "zero"): AgentReply {
  return actor.do({ kind: "archive", by: { type: "organization_key", lineageId, balance } });
}

/** An agent's life as a row says, up to the moment of its archive. */
function agentOf(row: Row): TestActor {
  const actor = created();
  actor.now += MINUTE;
  if (row.key === "used") use(actor);
  if (row.touch === "touched") revoke(actor);
  if (row.window === "closed") {
    actor.now = NOON + WINDOW + 1;
    actor.do({ kind: "confirm_erased" });
  }
  if (row.proof === "proven") replayCreate(actor);
  return actor;
}

/** The answer in one word. A refusal must have changed nothing, an archive everything that belongs to it. */
function answered(actor: TestActor, archive: (actor: TestActor) => AgentReply): string {
  const before = JSON.stringify(actor.state);
  const reply = archive(actor);
  if (reply.kind === "archive_refused") {
    expect(JSON.stringify(actor.state), "a refused archive changed the agent").to.equal(before);
    return reply.code;
  }
  expect(reply).to.deep.equal({ kind: "archive", changed: true });
  const { access, archivedAt, lifecycle, outbox } = actor.state;
  expect([lifecycle, archivedAt, access?.activeKeyId]).to.deep.equal(["archived", actor.now, null]);
  expect(outbox?.map(({ type }) => type)).to.deep.equal(["agent.archived"]);
  return "archived";
}

const lineageOf = ({ lineage }: Row): string => (lineage === "own" ? CREATOR : STRANGER);

describe("machine archive: each lineage, window, proof, key, touch and balance together", () => {
  it("every combination is there once, and one alone of them is archived", () => {
    expect(ROWS).to.have.length(96);
    expect(new Set(ROWS.map((row) => JSON.stringify(row))).size).to.equal(96);
    expect(ROWS.filter((row) => expectedOf(row) === "archived")).to.deep.equal([QUALIFIES]);
  });

  for (const row of ROWS) {
    const { balance, key, lineage, proof, touch, window } = row;
    const title = `${lineage}, ${window}, ${proof}, ${key}, ${touch}, ${balance}`;
    it(`${title}: ${expectedOf(row)}`, () => {
      const answer = answered(agentOf(row), (actor) => archiveBy(actor, lineageOf(row), row.balance));
      expect(answer).to.equal(expectedOf(row));
    });
  }
});

/** All but one condition allow; each way in which that one can fail. */
const ALONE: readonly {
  what: string;
  agent: () => TestActor;
  by?: string;
  balance?: Balance;
  code: string;
}[] = [
  { what: "another lineage asks", agent: () => agentOf(QUALIFIES), by: STRANGER, code: DENIED },
  {
    what: "a person created it",
    agent() {
      const actor = created(null);
      actor.now += WINDOW;
      replayCreate(actor);
      return actor;
    },
    code: DENIED,
  },
  {
    what: "its actor is from before it knew who had created it",
    agent() {
      const actor = new TestActor();
      actor.now += WINDOW;
      replayCreate(actor);
      return actor;
    },
    code: DENIED,
  },
  {
    what: "a person revoked its key",
    agent: () => lived((actor) => revoke(actor)),
    code: DENIED,
  },
  {
    what: "a person revoked its key and minted another",
    agent: () => lived((actor) => [revoke(actor), mint(actor, "akey_2")]),
    code: DENIED,
  },
  { what: "its key was used", agent: () => lived((actor) => use(actor)), code: DENIED },
  {
    what: "its key was used for a request that was refused, being paused",
    agent: () => lived((actor) => [actor.do({ kind: "pause" }), use(actor), actor.do({ kind: "resume" })]),
    code: DENIED,
  },
  { what: "it has paid", agent: () => lived((actor) => actor.paid(100)), code: DENIED },
  {
    what: "it was denied a payment",
    agent: () => lived((actor) => actor.pay(openPolicy.budgetCents + 1)),
    code: DENIED,
  },
  {
    what: "the window is open",
    agent: () => agentOf({ ...QUALIFIES, window: "open" }),
    code: STILL_DELIVERABLE,
  },
  {
    what: "no replay was answered after the window",
    agent: () => agentOf({ ...QUALIFIES, proof: "unproven" }),
    code: UNPROVEN,
  },
  {
    what: "the only replay was answered in the window",
    agent() {
      const actor = created();
      replayCreate(actor);
      actor.now += WINDOW;
      return actor;
    },
    code: UNPROVEN,
  },
  {
    what: "the only replay after the window was another lineage's",
    agent() {
      const actor = created();
      actor.now += WINDOW;
      replayCreate(actor, STRANGER);
      return actor;
    },
    code: UNPROVEN,
  },
  {
    what: "the balance is unreadable",
    agent: () => agentOf(QUALIFIES),
    balance: "unreadable",
    code: UNVERIFIABLE,
  },
  {
    what: "the balance is not zero",
    agent: () => agentOf(QUALIFIES),
    balance: "not_zero",
    code: DENIED,
  },
];

/** An agent that qualifies but for what was done to it in the window. */
function lived(does: (actor: TestActor) => unknown): TestActor {
  const actor = created();
  does(actor);
  actor.now += WINDOW;
  replayCreate(actor);
  return actor;
}

describe("machine archive: each condition alone decides", () => {
  it("what changes neither key, money nor proof does not: a paused and renamed agent is archived", () => {
    const actor = lived((agent) => [agent.do({ kind: "pause" }), agent.do({ kind: "rename", name: "B" })]);
    actor.do({ kind: "confirm_summary", revision: actor.state.revision });
    expect(answered(actor, (agent) => archiveBy(agent, CREATOR))).to.equal("archived");
  });

  for (const { agent, balance, by = CREATOR, code, what } of ALONE) {
    it(`${what}: ${code}`, () => {
      expect(answered(agent(), (actor) => archiveBy(actor, by, balance))).to.equal(code);
    });
  }

  it("the first refusal in the fixed order answers, whatever fails after it", () => {
    const worst: Row = {
      lineage: "other",
      touch: "touched",
      key: "used",
      window: "open",
      proof: "unproven",
      balance: "unreadable",
    };
    // Mended one after another in this order; each time the next one answers.
    const steps: readonly (readonly [Partial<Row>, string])[] = [
      [{}, DENIED],
      [{ lineage: "own" }, DENIED],
      [{ touch: "untouched" }, DENIED],
      [{ key: "unused" }, STILL_DELIVERABLE],
      [{ window: "closed" }, UNPROVEN],
      [{ proof: "proven" }, UNVERIFIABLE],
      [{ balance: "not_zero" }, DENIED],
      [{ balance: "zero" }, "archived"],
    ];
    let row = worst;
    for (const [mended, answer] of steps) {
      row = { ...row, ...mended };
      const by = lineageOf(row);
      const { balance } = row;
      expect(answered(agentOf(row), (actor) => archiveBy(actor, by, balance))).to.equal(answer);
    }
  });

  it("a person archives whatever a machine may not", () => {
    for (const row of ROWS) {
      const answer = answered(agentOf(row), (actor) => actor.do({ kind: "archive", by: { type: "user" } }));
      expect(answer, JSON.stringify(row)).to.equal("archived");
    }
  });
});

describe("machine archive: the edges of the window, by the actor's own time", () => {
  it("a millisecond before its end a replay proves nothing, and the archive is told to replay", () => {
    const actor = created();
    actor.now = NOON + WINDOW - 1;
    expect(replayCreate(actor)).to.deep.equal({ kind: "non_delivery", windowOver: false, proven: false });
    expect(answered(actor, (agent) => archiveBy(agent, CREATOR))).to.equal(STILL_DELIVERABLE);
  });

  it("at its end exactly it is unproven, a replay proves it, and it is archived", () => {
    const actor = created();
    actor.now = NOON + WINDOW;
    expect(answered(actor, (agent) => archiveBy(agent, CREATOR))).to.equal(UNPROVEN);
    expect(replayCreate(actor)).to.deep.equal({ kind: "non_delivery", windowOver: true, proven: true });
    expect(answered(actor, (agent) => archiveBy(agent, CREATOR))).to.equal("archived");
  });

  it("the proof keeps the time of the first replay that stamped it", () => {
    const actor = created();
    actor.now = NOON + WINDOW;
    replayCreate(actor);
    actor.now += MINUTE;
    expect(replayCreate(actor)).to.deep.equal({ kind: "non_delivery", windowOver: true, proven: true });
    expect(actor.state.access?.bundled?.provenAt).to.equal(NOON + WINDOW);
  });

  it("a first key erased early proves nothing: only the time says that the window is over", () => {
    const actor = created();
    actor.do({ kind: "confirm_erased" });
    expect(replayCreate(actor)).to.include({ proven: false });
    expect(answered(actor, (agent) => archiveBy(agent, CREATOR))).to.equal(STILL_DELIVERABLE);
  });
});

describe("machine archive: of an agent that is archived already", () => {
  for (const archiver of ["a person", "its own lineage"] as const) {
    it(`by ${archiver}: its own lineage is answered 200 and changes nothing, at any balance`, () => {
      const actor = archivedBy(archiver);
      const before = JSON.stringify(actor.state);
      for (const balance of CONDITIONS.balance) {
        expect(archiveBy(actor, CREATOR, balance)).to.deep.equal({ kind: "archive", changed: false });
      }
      expect(JSON.stringify(actor.state)).to.equal(before);
    });

    it(`by ${archiver}: another lineage is denied`, () => {
      const actor = archivedBy(archiver);
      expect(archiveBy(actor, STRANGER)).to.deep.equal({ kind: "archive_refused", code: DENIED });
    });
  }

  it("by a person, in the window and unproven: its own lineage is answered 200 all the same", () => {
    const actor = created();
    use(actor);
    actor.do({ kind: "archive", by: { type: "user" } });
    expect(archiveBy(actor, CREATOR)).to.deep.equal({ kind: "archive", changed: false });
  });

  it("that a person had created, or nobody knows who: every lineage is denied", () => {
    for (const actor of [created(null), new TestActor()]) {
      actor.do({ kind: "archive", by: { type: "user" } });
      expect(archiveBy(actor, CREATOR)).to.deep.equal({ kind: "archive_refused", code: DENIED });
    }
  });
});

function archivedBy(archiver: "a person" | "its own lineage"): TestActor {
  const actor = agentOf(QUALIFIES);
  const reply =
    archiver === "a person" ? actor.do({ kind: "archive", by: { type: "user" } }) : archiveBy(actor, CREATOR);
  expect(reply).to.deep.equal({ kind: "archive", changed: true });
  return actor;
}
