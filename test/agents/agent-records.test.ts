import { expect } from "chai";
import type { AgentDocument, EventDocument } from "../../activities/documents.ts";
import { COLLECTIONS } from "../../activities/documents.ts";
import { EventJournal } from "../../activities/journal.ts";
import { MongoProjections } from "../../activities/projections.ts";
import type { WrittenSummary } from "../../src/domain/agent/state.ts";
import { openPolicy } from "../domain/support/actor.ts";
import { type TestDatabase, testDatabase } from "../support/mongo.ts";

const AT = new Date("2026-05-13T12:00:00.000Z");

const summary = (change: Partial<WrittenSummary> = {}): WrittenSummary => ({
  name: "Agent",
  lifecycle: "paused",
  walletDetached: false,
  policy: openPolicy,
  policyVersion: 1,
  spentCents: 0,
  reservedCents: 0,
  revision: 2,
  updatedAt: AT.getTime(),
  ...change,
});

/** An agent's record follows its actor, whichever version of the service has said what is to be written. */
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
      updatedAt: AT,
      archivedAt: null,
      revision: 1,
      ...change,
    });
  }

  const projections = () => new MongoProjections(database.db, new EventJournal(database.db));

  it("a write that an earlier version scheduled is done, and marks no agent archived or used", async () => {
    await newAgent("before");
    await projections().writeAgentSummary("before", summary());
    const { archivedAt, authenticatedAt, lifecycle } = (await agents().findOne({ _id: "before" })) ?? {};
    expect({ archivedAt, authenticatedAt, lifecycle }).to.deep.equal({
      archivedAt: null,
      authenticatedAt: null,
      lifecycle: "paused",
    });
  });

  it("an event shows the agent as it was then, even when told after the agent was archived", async () => {
    await newAgent("late", { lifecycle: "archived", archivedAt: AT, revision: 3 });
    const told = [
      { id: "evt_late_2", type: "agent.paused", at: AT.getTime(), revision: 2 },
      { id: "evt_late_3", type: "agent.archived", at: AT.getTime(), revision: 3 },
    ] as const;
    await projections().writeAgentSummary("late", summary({ events: told }));
    const shown = await events().find({ agentId: "late" }).sort({ _id: 1 }).toArray();
    expect(shown.map(({ data }) => [data.agent?.["lifecycle"], data.agent?.["archivedAt"]])).to.deep.equal([
      ["paused", null],
      ["archived", AT],
    ]);
  });

  it("what a summary brings along besides what an actor says is not written", async () => {
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
    await projections().writeAgentSummary("mine", { ...summary(), ...forged });
    const { authenticatedAt: _first, ...after } = (await agents().findOne({ _id: "mine" })) ?? {};
    const told = { lifecycle: "paused", revision: 2, walletDetached: false };
    expect(after).to.deep.equal({ ...before, ...told });
  });
});
