import { expect } from "chai";
import type { MachineArchiver } from "../../src/domain/agent/archive.ts";
import type { AgentReply } from "../../src/domain/agent/commands.ts";
import { lifecycleOf } from "../../src/domain/agent/state.ts";
import { MINUTE, NOON } from "./support/actor.ts";
import { CREATOR, DELIVERY_WINDOW_MS as WINDOW, FIRST_KEY, STRANGER, TestAgent } from "./support/agent.ts";

/**
 * An archive by an organization's key, in every combination of what it depends on: each agent is brought to its state by
 * what can be asked of it, and the answers are written from the rules.
 */
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

const created = (lineageId: string | null = CREATOR): TestAgent => new TestAgent(lineageId);

const use = (agent: TestAgent, keyId = FIRST_KEY): AgentReply => agent.do({ kind: "authenticate", keyId });
const revoke = (agent: TestAgent): AgentReply => agent.do({ kind: "revoke_key" });
const mint = (agent: TestAgent, keyId: string): AgentReply => agent.do({ kind: "mint_key", keyId });
/** The ledger has paused or resumed its account. */
const stand = (agent: TestAgent, status: "active" | "paused", revision: number): AgentReply =>
  agent.do({ kind: "follow_status", status, revision, revokedKeyId: null });
/** What a server asks for when a replay of the create finds the window over. */
const replayCreate = (agent: TestAgent, lineageId = CREATOR): AgentReply =>
  agent.do({ kind: "prove_non_delivery", lineageId });

function archiveBy(agent: TestAgent, lineageId: string, balance: Balance = "zero"): AgentReply {
  return agent.do({ kind: "archive", by: { type: "organization_key", lineageId, balance } });
}

/** An agent's life as a row says, up to the moment of its archive. */
function agentOf(row: Row): TestAgent {
  const agent = created();
  agent.now += MINUTE;
  if (row.key === "used") use(agent);
  if (row.touch === "touched") revoke(agent);
  if (row.window === "closed") {
    agent.now = NOON + WINDOW + 1;
    agent.state.access.bundled.erased = true;
  }
  if (row.proof === "proven") replayCreate(agent);
  return agent;
}

/** The answer in one word. A refusal must have changed nothing, an archive everything that belongs to it. */
function answered(agent: TestAgent, archive: (agent: TestAgent) => AgentReply): string {
  const before = JSON.stringify(agent.state);
  const reply = archive(agent);
  if (reply.kind === "archive_refused") {
    expect(JSON.stringify(agent.state), "a refused archive changed the agent").to.equal(before);
    return reply.code;
  }
  expect(reply).to.deep.equal({ kind: "archive", changed: true });
  const { access, archivedAt, outbox } = agent.state;
  expect([lifecycleOf(agent.state), archivedAt, access.activeKeyId]).to.deep.equal([
    "archived",
    agent.now,
    null,
  ]);
  expect(outbox.map(({ type }) => type)).to.deep.equal(["agent.archived"]);
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
      const answer = answered(agentOf(row), (each) => archiveBy(each, lineageOf(row), row.balance));
      expect(answer).to.equal(expectedOf(row));
    });
  }
});

/** All but one condition allow; each way in which that one can fail. */
const ALONE: readonly {
  what: string;
  agent: () => TestAgent;
  by?: string;
  balance?: Balance;
  code: string;
}[] = [
  { what: "another lineage asks", agent: () => agentOf(QUALIFIES), by: STRANGER, code: DENIED },
  {
    what: "a person created it",
    agent() {
      const agent = created(null);
      agent.now += WINDOW;
      replayCreate(agent);
      return agent;
    },
    code: DENIED,
  },
  {
    what: "a person revoked its key",
    agent: () => lived((agent) => revoke(agent)),
    code: DENIED,
  },
  {
    what: "a person revoked its key and minted another",
    agent: () => lived((agent) => [revoke(agent), mint(agent, "akey_2")]),
    code: DENIED,
  },
  { what: "its key was used", agent: () => lived((agent) => use(agent)), code: DENIED },
  {
    what: "its key was used for a request that was refused, being paused",
    agent: () => lived((agent) => [stand(agent, "paused", 1), use(agent), stand(agent, "active", 2)]),
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
      const agent = created();
      replayCreate(agent);
      agent.now += WINDOW;
      return agent;
    },
    code: UNPROVEN,
  },
  {
    what: "the only replay after the window was another lineage's",
    agent() {
      const agent = created();
      agent.now += WINDOW;
      replayCreate(agent, STRANGER);
      return agent;
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
function lived(does: (agent: TestAgent) => unknown): TestAgent {
  const agent = created();
  does(agent);
  agent.now += WINDOW;
  replayCreate(agent);
  return agent;
}

describe("machine archive: each condition alone decides", () => {
  it("what changes neither key, money nor proof does not: a paused and renamed agent is archived", () => {
    const agent = lived((each) => [stand(each, "paused", 1), each.do({ kind: "rename", name: "B" })]);
    agent.do({ kind: "confirm_record", revision: agent.state.revision });
    expect(answered(agent, (each) => archiveBy(each, CREATOR))).to.equal("archived");
  });

  for (const { agent, balance, by = CREATOR, code, what } of ALONE) {
    it(`${what}: ${code}`, () => {
      expect(answered(agent(), (each) => archiveBy(each, by, balance))).to.equal(code);
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
      expect(answered(agentOf(row), (each) => archiveBy(each, by, balance))).to.equal(answer);
    }
  });

  it("a person archives whatever a machine may not", () => {
    for (const row of ROWS) {
      const answer = answered(agentOf(row), (agent) => agent.do({ kind: "archive", by: { type: "user" } }));
      expect(answer, JSON.stringify(row)).to.equal("archived");
    }
  });
});

describe("machine archive: the edges of the window, by the agent's own time", () => {
  it("a millisecond before its end a replay proves nothing, and the archive is told to replay", () => {
    const agent = created();
    agent.now = NOON + WINDOW - 1;
    expect(replayCreate(agent)).to.deep.equal({ kind: "non_delivery", windowOver: false, proven: false });
    expect(answered(agent, (each) => archiveBy(each, CREATOR))).to.equal(STILL_DELIVERABLE);
  });

  it("at its end exactly it is unproven, a replay proves it, and it is archived", () => {
    const agent = created();
    agent.now = NOON + WINDOW;
    expect(answered(agent, (each) => archiveBy(each, CREATOR))).to.equal(UNPROVEN);
    expect(replayCreate(agent)).to.deep.equal({ kind: "non_delivery", windowOver: true, proven: true });
    expect(answered(agent, (each) => archiveBy(each, CREATOR))).to.equal("archived");
  });

  it("the proof keeps the time of the first replay that stamped it", () => {
    const agent = created();
    agent.now = NOON + WINDOW;
    replayCreate(agent);
    agent.now += MINUTE;
    expect(replayCreate(agent)).to.deep.equal({ kind: "non_delivery", windowOver: true, proven: true });
    expect(agent.state.access.bundled.provenAt).to.equal(NOON + WINDOW);
  });

  it("a first key erased early proves nothing: only the time says that the window is over", () => {
    const agent = created();
    agent.state.access.bundled.erased = true;
    expect(replayCreate(agent)).to.include({ proven: false });
    expect(answered(agent, (each) => archiveBy(each, CREATOR))).to.equal(STILL_DELIVERABLE);
  });
});

describe("machine archive: of an agent that is archived already", () => {
  for (const archiver of ["a person", "its own lineage"] as const) {
    it(`by ${archiver}: its own lineage is answered 200 and changes nothing, at any balance`, () => {
      const agent = archivedBy(archiver);
      const before = JSON.stringify(agent.state);
      for (const balance of CONDITIONS.balance) {
        expect(archiveBy(agent, CREATOR, balance)).to.deep.equal({ kind: "archive", changed: false });
      }
      expect(JSON.stringify(agent.state)).to.equal(before);
    });

    it(`by ${archiver}: another lineage is denied`, () => {
      const agent = archivedBy(archiver);
      expect(archiveBy(agent, STRANGER)).to.deep.equal({ kind: "archive_refused", code: DENIED });
    });
  }

  it("by a person, in the window and unproven: its own lineage is answered 200 all the same", () => {
    const agent = created();
    use(agent);
    agent.do({ kind: "archive", by: { type: "user" } });
    expect(archiveBy(agent, CREATOR)).to.deep.equal({ kind: "archive", changed: false });
  });

  it("that a person had created: every lineage is denied", () => {
    const agent = created(null);
    agent.do({ kind: "archive", by: { type: "user" } });
    expect(archiveBy(agent, CREATOR)).to.deep.equal({ kind: "archive_refused", code: DENIED });
  });
});

function archivedBy(archiver: "a person" | "its own lineage"): TestAgent {
  const agent = agentOf(QUALIFIES);
  const reply =
    archiver === "a person" ? agent.do({ kind: "archive", by: { type: "user" } }) : archiveBy(agent, CREATOR);
  expect(reply).to.deep.equal({ kind: "archive", changed: true });
  return agent;
}
