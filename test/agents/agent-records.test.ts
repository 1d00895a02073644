import { AgentPlaces } from "../../src/agents/agent-places.ts";
import { TEST_ACCESS_PROOFS, TEST_AGENT_PROOFS, TEST_PAYMENT_PROOFS } from "../support/access-proofs.ts";
import { expect } from "chai";
import type { AgentDocument, EventDocument } from "../../src/store/documents.ts";
import { COLLECTIONS } from "../../src/store/documents.ts";
import { EventJournal } from "../../src/store/journal.ts";
import { MongoProjections } from "../../src/store/projections.ts";
import type { AgentSummary } from "../../src/domain/agent/state.ts";
import type { AccountSummary } from "../../src/domain/ledger/state.ts";
import { openPolicy } from "../domain/support/actor.ts";
import { type TestDatabase, testDatabase } from "../support/mongo.ts";

const AT = new Date("2026-05-13T12:00:00.000Z");

const life = (agentId: string, change: Partial<AgentSummary> = {}): AgentSummary => ({
  agentId,
  name: "Agent",
  archivedAt: null,
  walletDetached: false,
  keyId: null,
  authenticatedAt: null,
  revision: 2,
  updatedAt: AT.getTime(),
  events: [],
  ...change,
});

const money = (agentId: string, change: Partial<AccountSummary> = {}): AccountSummary => ({
  agentId,
  status: "paused",
  policy: openPolicy,
  policyVersion: 1,
  spentCents: 0,
  reservedCents: 0,
  revokedKeyId: null,
  revision: 2,
  updatedAt: AT.getTime(),
  events: [],
  ...change,
});

/** An agent's record follows its actor and its ledger, each by revisions of its own. */
describe("agents' records", () => {
  let database: TestDatabase;

  before(async () => {
    database = await testDatabase();
  });
  after(() => database.close());

  const agents = () => database.db.collection<AgentDocument>(COLLECTIONS.agents);
  const events = () => database.db.collection<EventDocument>(COLLECTIONS.events);

  async function newAgent(_id: string, change: Partial<AgentDocument> = {}): Promise<void> {
    await agents().insertOne({
      _id,
      organizationId: "org-1",
      projectId: "project-1",
      teamId: "team-1",
      name: "Agent",
      description: null,
      scopes: null,
      lifecycle: "active",
      policy: openPolicy,
      policyVersion: 1,
      spentCents: 0,
      reservedCents: 0,
      wallet: null,
      key: null,
      createdBy: { type: "user", id: "user-1" },
      createdByLineage: null,
      createdAt: AT,
      proof: "",
      updatedAt: AT,
      archivedAt: null,
      walletDetached: false,
      revision: 1,
      accountRevision: 1,
      accountStatus: "active",
      accountProof: "",
      ...change,
    });
  }

  const projections = () =>
    new MongoProjections({
      accessProofs: TEST_ACCESS_PROOFS,
      booked: { exceed: () => Promise.resolve(false) },
      db: database.db,
      journal: new EventJournal(database.db, TEST_ACCESS_PROOFS),
      places: new AgentPlaces(database.db, TEST_AGENT_PROOFS),
      proofs: TEST_PAYMENT_PROOFS,
    });

  it("what actor and ledger write keeps apart, in whatever order, and older ones change nothing", async () => {
    await newAgent("both");
    const written = projections();
    await written.writeAccount(money("both", { spentCents: 5, revision: 3 }));
    await written.writeAgent(life("both", { name: "Renamed" }));
    await written.writeAccount(money("both", { spentCents: 4, status: "active" }));
    await written.writeAgent(life("both", { name: "Older", revision: 1 }));
    const { accountRevision, lifecycle, name, revision, spentCents } =
      (await agents().findOne({ _id: "both" })) ?? {};
    expect({ accountRevision, lifecycle, name, revision, spentCents }).to.deep.equal({
      accountRevision: 3,
      lifecycle: "paused",
      name: "Renamed",
      revision: 2,
      spentCents: 5,
    });
  });

  it("an archived agent stays so, whatever its ledger says later of its account", async () => {
    await newAgent("ended");
    await projections().writeAgent(life("ended", { archivedAt: AT.getTime() }));
    for (const [revision, status] of [
      [2, "active"],
      [3, "paused"],
      [4, "closed"],
    ] as const) {
      await projections().writeAccount(money("ended", { status, revision, spentCents: revision }));
      const { lifecycle, spentCents } = (await agents().findOne({ _id: "ended" })) ?? {};
      expect({ lifecycle, spentCents }).to.deep.equal({ lifecycle: "archived", spentCents: revision });
    }
  });

  it("an event shows the agent as it was then, even when told after the agent was archived", async () => {
    await newAgent("late", { lifecycle: "archived", archivedAt: AT, revision: 3 });
    const paused = { id: "evt_late_account_2", type: "agent.paused", at: AT.getTime(), revision: 2 } as const;
    const ended = { id: "evt_late_agent_3", type: "agent.archived", at: AT.getTime(), revision: 3 } as const;
    await projections().writeAccount(money("late", { events: [paused] }));
    await projections().writeAgent(life("late", { events: [ended] }));
    const shown = await events().find({ agentId: "late" }).sort({ _id: 1 }).toArray();
    expect(shown.map(({ data }) => [data.agent?.["lifecycle"], data.agent?.["archivedAt"]])).to.deep.equal([
      ["paused", null],
      ["archived", AT],
    ]);
  });

  it("what a summary brings along besides what it may say is not written", async () => {
    await newAgent("mine");
    const wallet = { address: "0x1", chainCaip2: "eip155:1", owner: "0x2", spender: "0x3", factory: "0x4" };
    const forged = {
      organizationId: "org-2",
      projectId: "project-2",
      teamId: "team-2",
      wallet,
      scopes: null,
    };
    const before = await agents().findOne({ _id: "mine" });
    await projections().writeAgent({ ...life("mine"), ...forged });
    await projections().writeAccount({ ...money("mine"), ...forged });
    const {
      authenticatedAt: _first,
      candidateKeys: _none,
      accountProof,
      ...after
    } = (await agents().findOne({ _id: "mine" })) ?? {};
    const { accountProof: proofBefore, ...rest } = before ?? {};
    const told = { lifecycle: "paused", accountStatus: "paused", revision: 2, accountRevision: 2 };
    expect(after).to.deep.equal({ ...rest, ...told });
    expect(accountProof).not.to.equal(proofBefore);
  });
});
