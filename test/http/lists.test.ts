import { expect } from "chai";
import { type OperationId, operationList } from "../../src/contract/registry.ts";
import { elevate, newWorld, type TestAgent, times, type World } from "../support/world.ts";

const UNKNOWN_ID = "01890a5d-ac96-774b-bcce-b302099a8057";

interface Listed {
  readonly id: string;
  readonly createdAt: string;
}

interface Page {
  readonly items: readonly Listed[];
  readonly nextCursor: string | null;
}

type Query = Readonly<Record<string, string>>;
type Read = (query: Query) => Promise<Page>;

const newestFirst = (items: readonly Listed[]): Listed[] =>
  items.toSorted((a, b) => (a.createdAt + a.id < b.createdAt + b.id ? 1 : -1));

/** Tampered with and malformed ones, made of a good one. */
function badCursors(cursor: string): readonly string[] {
  const decoded = Buffer.from(cursor, "base64url").toString();
  // A search may stop at a record that its caller may not see.
  expect(decoded).not.to.match(/(txn|apr)_|\d{13}/);
  const tampered = decoded.replace(/.$/, (last) => (last === "A" ? "Q" : "A"));
  return [
    `${cursor.slice(0, 8)}${cursor[8] === "A" ? "B" : "A"}${cursor.slice(9)}`,
    ...["x", "null", "[]", "{}", "\u0000", "é"].concat("x".repeat(1_000), "x".repeat(1_001)),
    cursor.slice(0, -2),
    ...[tampered, '[["$gt",""],"x"]', "[1]"].map((text) => Buffer.from(text).toString("base64url")),
  ];
}

describe("lists over HTTP", () => {
  const COUNT = 9;
  let world: World;
  let other: World;
  let agent: TestAgent;
  let asker: TestAgent;
  before(async () => {
    [world, other] = [await newWorld(), await newWorld()];
    agent = await world.agent();
    asker = await world.agent({ autoApprovalThresholdCents: 0 });
    await Promise.all(times(COUNT, () => agent.pay({ amountCents: 1 })));
    await Promise.all(times(COUNT, () => asker.pay({ amountCents: 1 })));
    await Promise.all(times(COUNT - 2, () => world.agent()));
  });

  const own = () => ({ token: world.token });
  const lists: readonly (readonly [OperationId, Read, () => Promise<unknown>])[] = [
    [
      "listTransactions",
      async (query) => {
        const { transactions, nextCursor } = await world.api.ok("listTransactions", 200, { ...own(), query });
        return { items: transactions, nextCursor };
      },
      () => agent.pay({ amountCents: 1 }),
    ],
    [
      "listPayments",
      async (query) => {
        const request = { token: agent.key, query };
        const { payments, nextCursor } = await world.api.ok("listPayments", 200, request);
        return { items: payments, nextCursor };
      },
      () => agent.pay({ amountCents: 1 }),
    ],
    [
      "listPendingApprovals",
      async (query) => {
        const { approvals, nextCursor } = await world.api.ok("listPendingApprovals", 200, {
          ...own(),
          query,
        });
        return { items: approvals, nextCursor };
      },
      () => asker.pay({ amountCents: 1 }),
    ],
    [
      "listAgents",
      async (query) => {
        const { agents, nextCursor } = await world.api.ok("listAgents", 200, { ...own(), query });
        return { items: agents, nextCursor };
      },
      () => world.agent(),
    ],
  ];

  /** Every page to the last; something new arrives before each of them. */
  async function walk(read: Read, query: Query, arrive: () => Promise<unknown>): Promise<Listed[]> {
    const items: Listed[] = [];
    let page = await read(query);
    items.push(...page.items);
    while (page.nextCursor !== null) {
      await arrive();
      page = await read({ ...query, cursor: page.nextCursor });
      items.push(...page.items);
    }
    return items;
  }

  for (const [operationId, read, arrive] of lists) {
    describe(operationId, () => {
      it("a walk by cursor meets all that was there once, newest first, though new ones arrive", async () => {
        const there = (await read({ limit: "200" })).items;
        const met = await walk(read, { limit: "4" }, arrive);
        expect(met.map(({ id }) => id)).to.deep.equal(there.map(({ id }) => id));
        expect(met.length).to.be.at.least(COUNT);
        expect(met).to.deep.equal(newestFirst(met));
      });

      it("the last page has no cursor, also when it is exactly full", async () => {
        const all = (await read({ limit: "200" })).items.length;
        expect(await read({ limit: String(all) })).to.deep.include({ nextCursor: null });
        expect((await read({ limit: String(all - 1) })).nextCursor).to.be.a("string");
        expect((await read({})).items.length).to.equal(all);
      });

      it("a cursor that is malformed or tampered with is 400 BAD_CURSOR", async () => {
        const token = operationId === "listPayments" ? agent.key : world.token;
        for (const cursor of badCursors((await read({ limit: "1" })).nextCursor ?? "").slice(0, 2)) {
          await world.api.refused(operationId, 400, "BAD_CURSOR", { token, query: { cursor } });
        }
      });
    });
  }

  it("a limit outside 1 to 200 is refused, not clamped, by every list; without one 50 come", () => {
    const ofLists = operationList.filter(([, operation]) => "limit" in operation.query.shape);
    expect(ofLists).to.have.lengthOf(16);
    for (const [id, { query }] of ofLists) {
      for (const limit of [0, -1, 201, 1.5]) {
        expect(query.safeParse({ limit }).success, `${id} ${String(limit)}`).to.equal(false);
      }
      for (const limit of [1, 200]) expect(query.parse({ limit }), id).to.include({ limit });
      expect(query.parse({}), id).to.include({ limit: 50 });
    }
  });

  it("a limit that is none is 400; so is a parameter that is there twice, or unknown", async () => {
    const wrong = ["limit=0", "limit=-1", "limit=201", "limit=1.5", "limit=", "limit=ten", "limit=1e1"];
    const odd = ["limit=5&limit=5", "Limit=5", "limit[]=5", "limit[$gt]=5", "offset=1", "%00=1"];
    const strange = ["__proto__=1", "constructor=1", "toString=1", "%zz=1"];
    for (const query of [...wrong, ...odd, ...strange]) {
      await world.api.refused("listTransactions", 400, "VALIDATION_FAILED", { ...own(), query });
    }
    for (const limit of ["1", "200"])
      await world.api.ok("listTransactions", 200, { ...own(), query: { limit } });
  });

  it("whatever is made up as a cursor is 400 BAD_CURSOR, and so is a good one sent twice", async () => {
    const { nextCursor } = await world.api.ok("listTransactions", 200, { ...own(), query: { limit: "1" } });
    const cursor = nextCursor ?? "";
    for (const query of [
      ...badCursors(cursor).map((text) => ({ cursor: text })),
      `cursor=${cursor}&cursor=${cursor}`,
    ]) {
      await world.api.refused("listTransactions", 400, "BAD_CURSOR", { ...own(), query });
    }
  });

  it("a cursor is bound to its list, its filters and its organization, not to the page's size", async () => {
    const { nextCursor } = await world.api.ok("listTransactions", 200, { ...own(), query: { limit: "2" } });
    const cursor = nextCursor ?? "";
    await world.api.ok("listTransactions", 200, { ...own(), query: { cursor, limit: "7" } });
    const badCursor = (operationId: OperationId, token: string, query: Query) =>
      world.api.refused(operationId, 400, "BAD_CURSOR", { token, query: { ...query, cursor } });
    await badCursor("listTransactions", world.token, { agent_id: agent.id });
    await badCursor("listTransactions", world.token, { type: "card" });
    await badCursor("listTransactions", world.token, { range: "7d" });
    await badCursor("listTransactions", world.token, { status: "approved" });
    await badCursor("listTransactions", world.token, { projectId: world.organization.projectId });
    await badCursor("listAgents", world.token, {});
    await badCursor("listPendingApprovals", world.token, {});
    await badCursor("listPayments", agent.key, {});
    await badCursor("listTransactions", other.token, {});
    const pending = await world.api.ok("listPendingApprovals", 200, { ...own(), query: { limit: "2" } });
    const query = { cursor: pending.nextCursor ?? "" };
    await world.api.refused("listCompletedApprovals", 400, "BAD_CURSOR", { ...own(), query });
  });

  it("filters narrow; an unknown or foreign id gives an empty list, a malformed one 400", async () => {
    const foreign = await other.agent();
    await foreign.pay();
    const { projectId, teamId } = world.organization;
    const ids = async (operationId: "listTransactions" | "listPendingApprovals", query: Query) => {
      const answer = await world.api.ok(operationId, 200, { ...own(), query: { limit: "200", ...query } });
      return "transactions" in answer ? answer.transactions : answer.approvals;
    };
    for (const operationId of ["listTransactions", "listPendingApprovals"] as const) {
      const all = await ids(operationId, {});
      expect(await ids(operationId, { projectId, teamId })).to.deep.equal(all);
      const ofAsker = await ids(operationId, { agent_id: asker.id });
      expect(ofAsker.length).to.be.at.least(COUNT);
      expect(new Set(ofAsker.map(({ agentId }) => agentId))).to.deep.equal(new Set([asker.id]));
      expect(await ids(operationId, { agentId: asker.id })).to.deep.equal(ofAsker);
      expect(await ids(operationId, { agentId: asker.id, agent_id: asker.id })).to.deep.equal(ofAsker);
      const two = { ...own(), query: { agentId: asker.id, agent_id: agent.id } };
      const { issues } = await world.api.refused(operationId, 400, "VALIDATION_FAILED", two);
      expect(issues?.map(({ path }) => path)).to.deep.equal(["agentId"]);
      for (const name of ["agent_id", "agentId", "projectId", "teamId"]) {
        for (const id of [UNKNOWN_ID, foreign.id, other.organization.teamId, other.organization.projectId]) {
          expect(await ids(operationId, { [name]: id })).to.deep.equal([]);
        }
        const query = { [name]: "general" };
        await world.api.refused(operationId, 400, "VALIDATION_FAILED", { ...own(), query });
      }
    }
    expect(await ids("listTransactions", { type: "wallet" })).to.deep.equal([]);
    const recent = await ids("listTransactions", { range: "7d", type: "card" });
    expect(recent).to.deep.equal(await ids("listTransactions", { range: "all" }));
    for (const query of [{ type: "cash" }, { range: "8d" }, { status: "paid" }]) {
      await world.api.refused("listTransactions", 400, "VALIDATION_FAILED", { ...own(), query });
    }
  });

  it("payments narrow by their status as it is now, in the organization's list and the agent's", async () => {
    const small = await newWorld();
    const payer = await small.agent({ autoApprovalThresholdCents: 500, budgetCents: 1_000 });
    const paid = (await payer.pay()).transaction.id;
    const { transactionId, approvalId } = await payer.hold({ amountCents: 600 });
    const denied = (await payer.pay({ amountCents: 5_000 })).transaction.id;
    const listed = async (status: string) => {
      const query = { status };
      const all = await small.api.ok("listTransactions", 200, { token: small.token, query });
      const { payments } = await small.api.ok("listPayments", 200, { token: payer.key, query });
      expect(payments).to.deep.equal(all.transactions);
      return payments.map(({ id }) => id);
    };
    expect([await listed("approved"), await listed("denied"), await listed("pending")]).to.deep.equal([
      [paid],
      [denied],
      [transactionId],
    ]);
    await small.api.ok("approveApproval", 200, { token: small.token, id: approvalId });
    expect(await listed("pending")).to.deep.equal([]);
    expect(await listed("approved")).to.deep.equal([transactionId, paid]);
    const query = { status: "paid" };
    await small.api.refused("listPayments", 400, "VALIDATION_FAILED", { token: payer.key, query });
  });

  it("a transaction and an approval alone are as they are in their lists", async () => {
    const { transactions } = await world.api.ok("listTransactions", 200, own());
    await asker.pay({ amountCents: 1 });
    const { approvals } = await world.api.ok("listPendingApprovals", 200, own());
    for (const listed of [...transactions.slice(0, 2), ...transactions.slice(-2)]) {
      const { transaction } = await world.api.ok("getTransaction", 200, { ...own(), id: listed.id });
      expect(transaction).to.deep.equal(listed);
    }
    const [pending] = approvals;
    const id = pending?.id ?? "";
    expect((await world.api.ok("getApproval", 200, { ...own(), id })).approval).to.deep.equal(pending);
    const denied = { ...own(), id, body: { feedback: "no" } };
    const { approval } = await world.api.ok("denyApproval", 200, denied);
    expect((await world.api.ok("getApproval", 200, { ...own(), id })).approval).to.deep.equal(approval);
    for (const [operationId, wrong] of [
      ["getTransaction", "txn_0"],
      ["getTransaction", id],
      ["getApproval", "apr_01M80F1SRRDKHTS09FZ6WJCVDW"],
    ] as const) {
      await world.api.refused(operationId, 404, "NOT_FOUND", { ...own(), id: wrong });
    }
  });

  it("agents narrow by team, project and state, and are listed as they are read alone", async () => {
    const small = await newWorld();
    const [one, two] = [await small.agent(), await small.agent()];
    await elevate(small);
    await small.api.ok("pauseAgent", 200, { token: small.token, id: one.id });
    const list = async (query: Query) => {
      const { agents } = await small.api.ok("listAgents", 200, { token: small.token, query });
      return agents.map(({ id }) => id);
    };
    expect(await list({})).to.deep.equal([two.id, one.id]);
    expect(await list({ state: "paused" })).to.deep.equal([one.id]);
    expect(await list({ state: "archived" })).to.deep.equal([]);
    expect(await list({ teamId: small.organization.teamId })).to.deep.equal([two.id, one.id]);
    expect(await list({ teamId: world.organization.teamId })).to.deep.equal([]);
    expect(await list({ projectId: UNKNOWN_ID })).to.deep.equal([]);
    const { agents } = await small.api.ok("listAgents", 200, { token: small.token });
    const { agent: alone } = await small.api.ok("getAgent", 200, { token: small.token, id: two.id });
    expect(agents[0]).to.deep.equal(alone);
  });
});
