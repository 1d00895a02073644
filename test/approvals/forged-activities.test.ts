import { expect } from "chai";
import { type AgentDocument, COLLECTIONS } from "../../activities/documents.ts";
import { ACTIVITY_INPUTS } from "../../activities/inputs/activity-inputs.ts";
import { INPUT_REFUSED } from "../../activities/inputs/interceptor.ts";
import { newUuid } from "../../server/ids.ts";
import { webhookTaskQueue } from "../../src/messages/delivery.ts";
import { newWorld, type TestAgent, type World } from "../support/world.ts";
import { send } from "../support/wire.ts";
import { schedule, type ScheduledEnd } from "./scheduled.ts";

function expectRefused(ends: readonly ScheduledEnd[], count: number): void {
  expect(ends).to.have.length(count);
  for (const { answer, failure, isRetryable } of ends) {
    expect(failure).to.match(new RegExp(`^${INPUT_REFUSED}: `));
    expect([answer, isRetryable], String(failure)).to.deep.equal([null, false]);
  }
}

const profileOf = ({ _id, name, organizationId, projectId, teamId }: AgentDocument) => ({
  organizationId,
  projectId,
  teamId,
  agentId: _id,
  name,
});

const report = (profile: { agentId: string; teamId: string }) => ({
  agentId: profile.agentId,
  teamId: profile.teamId,
  revision: 9,
  spentCents: 1_000_000,
  reservedCents: 0,
  asks: [],
});

/** What somebody may have activities do who reaches Temporal and has an agent of their own. */
describe("activities that are scheduled past this service", () => {
  let world: World;
  let victims: World;
  before(async () => {
    [world, victims] = [await newWorld(), await newWorld()];
  });

  const agents = () => world.service.db.collection<AgentDocument>(COLLECTIONS.agents);
  const recordOf = async ({ id }: TestAgent): Promise<AgentDocument> => {
    const record = await agents().findOne({ _id: id });
    if (record === null) throw new Error("the agent has a record");
    return record;
  };

  it("every one of them, of both workers, refuses an operator of MongoDB and is not tried again", async () => {
    const names = Object.keys(ACTIVITY_INPUTS);
    const input = { $gt: "" };
    const ofWebhooks = webhookTaskQueue(world.service.connections.addresses.taskQueue);
    const onBoth = [
      ...names.map((name) => ({ name, input })),
      { name: "deliverWebhook", input, taskQueue: ofWebhooks },
      { name: "agentsUnder", input: { projectId: { $gt: "" }, teams: "all" } },
      { name: "agentsUnder", input: { projectId: newUuid(), teams: [{ $gt: "" }] } },
    ];
    expectRefused(await schedule(world.service, onBoth), onBoth.length);
    const { body } = await send(world.service.baseUrl, "/metrics");
    expect(String(body)).to.match(/^spending_control_forged_total\{what="activity"\} [1-9]/m);
  });

  it("no record gets another agent's wallet, organization, project or team, nor another's event", async () => {
    const [mine, theirs] = [await world.agent(), await victims.agent()];
    const [before, foreign] = [await recordOf(mine), await recordOf(theirs)];
    const { lifecycle, name, policy, policyVersion } = before;
    const money = { policy, policyVersion, spentCents: 0, reservedCents: 0 };
    const summary = { name, lifecycle, walletDetached: false, ...money, revision: 1_000, updatedAt: 1 };
    const { organizationId, projectId, teamId, wallet } = foreign;
    const event = { id: `evt_${foreign._id}_2`, type: "agent.paused", at: 1, revision: 2 };
    const forged = [
      { ...summary, wallet },
      { ...summary, organizationId, projectId, teamId },
      { ...summary, "key.hash": "x" },
      { ...summary, events: [event] },
    ];
    const calls = forged.map((each) => ({
      name: "writeAgentSummary",
      input: { agentId: mine.id, summary: each },
    }));
    expectRefused(await schedule(world.service, calls), calls.length);
    expect(await recordOf(mine)).to.deep.equal(before);
  });

  it("an agent that is named under another organization, project or team has nothing done for it", async () => {
    const [mine, theirs] = [await recordOf(await world.agent()), await recordOf(await victims.agent())];
    const { organizationId, projectId, teamId } = theirs;
    const profiles = [{ organizationId }, { projectId }, { teamId }].map((place) => ({
      ...profileOf(mine),
      ...place,
    }));
    const calls = [
      ...profiles.map((profile) => ({ name: "reportToBudget", input: { profile, report: report(profile) } })),
      {
        name: "reportToBudget",
        input: { profile: profileOf(theirs), report: report(profileOf(mine)) },
      },
      ...profiles.map((profile) => ({ name: "detachWallet", input: { profile } })),
    ];
    expectRefused(await schedule(world.service, calls), calls.length);
  });

  it("no team is made in another organization's project, and what is as it should be runs", async () => {
    const { organizationId } = world.organization;
    const input = {
      organizationId,
      defaultProjectId: victims.organization.projectId,
      defaultTeamId: newUuid(),
    };
    const { projectId } = world.organization;
    const agent = await world.agent();
    const [forged, own] = await schedule(world.service, [
      { name: "provisionOrganization", input },
      { name: "agentsUnder", input: { projectId, teams: "all" } },
    ]);
    expect(forged?.failure).to.include("has these defaults");
    const teams = world.service.db.collection<{ _id: string }>(COLLECTIONS.teams);
    expect(await teams.findOne({ _id: input.defaultTeamId })).to.equal(null);
    expect(JSON.stringify(own?.answer)).to.include(agent.id);
  });
});
