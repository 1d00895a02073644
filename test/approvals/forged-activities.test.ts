import { expect } from "chai";
import { type AgentDocument, COLLECTIONS } from "../../src/store/documents.ts";
import { ACTIVITY_INPUTS } from "../../activities/inputs/activity-inputs.ts";
import { INPUT_REFUSED } from "../../activities/inputs/interceptor.ts";
import { newUuid } from "../../src/lib/ids.ts";
import { sideTaskQueue } from "../../src/messages/task-queues.ts";
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

/** What an intruder may have activities do who reaches Temporal and has an agent of their own. */
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
    const ofWebhooks = sideTaskQueue(world.service.connections.addresses.taskQueue, "webhooks");
    const onBoth = [
      ...names.map((name) => ({ name, input })),
      { name: "deliverWebhook", input, taskQueue: ofWebhooks },
      { name: "writeCaps", input: { projectId: { $gt: "" }, caps: [] } },
      { name: "writeCaps", input: { projectId: newUuid(), caps: [{ teamId: { $gt: "" }, cap: {} }] } },
    ];
    expectRefused(await schedule(world.service, onBoth), onBoth.length);
    const { body } = await send(world.service.baseUrl, "/metrics");
    expect(String(body)).to.match(/^spending_control_forged_total\{what="activity"\} [1-9]/m);
  });

  it("no record gets another agent's wallet, organization, project or team, nor another's event", async () => {
    const [mine, theirs] = [await world.agent(), await victims.agent()];
    const [before, foreign] = [await recordOf(mine), await recordOf(theirs)];
    const { name, policy, policyVersion } = before;
    const common = { agentId: mine.id, revision: 1_000, updatedAt: 1, events: [] };
    const keys = { keyId: null, archivedAt: null, authenticatedAt: null };
    const life = { ...common, ...keys, name, walletDetached: false };
    const totals = { spentCents: 0, reservedCents: 0 };
    const money = { ...common, ...totals, status: "paused", policy, policyVersion };
    const { organizationId, projectId, teamId, wallet } = foreign;
    const event = { type: "agent.paused", at: 1, revision: 2 };
    const brought = [
      { wallet },
      { organizationId, projectId, teamId },
      { "key.hash": "x" },
      { events: [{ ...event, id: `evt_${foreign._id}_agent_2` }] },
      { events: [{ ...event, id: `evt_${foreign._id}_account_2` }] },
    ];
    const calls = brought.flatMap((each) => [
      { name: "writeAgent", input: { summary: { ...life, ...each } } },
      { name: "writeAccounts", input: { accounts: [{ ...money, ...each }] } },
    ]);
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
    const calls = profiles.flatMap((profile) => [
      { name: "expireApproval", input: { profile, transactionId: newUuid() } },
      { name: "detachWallet", input: { profile } },
    ]);
    expectRefused(await schedule(world.service, calls), calls.length);
  });

  it("no team is made in another organization's project, and what is as it should be runs", async () => {
    const { organizationId } = world.organization;
    const input = {
      organizationId,
      defaultProjectId: victims.organization.projectId,
      defaultTeamId: newUuid(),
    };
    const agent = await world.agent();
    const [forged, own] = await schedule(world.service, [
      { name: "provisionOrganization", input },
      { name: "closeDeliveryWindow", input: { agentId: agent.id } },
    ]);
    expect(forged?.failure).to.include("has these defaults");
    const teams = world.service.db.collection<{ _id: string }>(COLLECTIONS.teams);
    expect(await teams.findOne({ _id: input.defaultTeamId })).to.equal(null);
    expect(own?.answer).to.equal("committed");
  });
});
