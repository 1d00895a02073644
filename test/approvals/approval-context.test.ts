import { expect } from "chai";
import { elevate, newWorld, times, type World } from "../support/world.ts";

describe("what an approval is decided on", () => {
  let world: World;
  before(async () => {
    world = await newWorld();
  });

  const contextOf = (id: string) => world.api.ok("getApprovalContext", 200, { token: world.token, id });

  it("says what approving leaves of the agent's, the team's and the project's money", async () => {
    await elevate(world);
    const { token } = world;
    const { project } = await world.api.made("createProject", { token, body: { name: "P" } });
    const { team } = await world.api.made("createTeam", {
      token,
      body: { name: "T", projectId: project.id },
    });
    const agent = await world.agent({
      teamId: team.id,
      budgetCents: 10_000,
      autoApprovalThresholdCents: 500,
    });
    await world.api.ok("setProjectBudget", 200, {
      token,
      id: project.id,
      body: { capCents: 5_000, teams: [{ teamId: team.id, capCents: null }], version: 1 },
    });
    await agent.pay({ amountCents: 400 });
    const { approvalId } = await agent.hold({ amountCents: 1_000 });
    const before = await contextOf(approvalId);
    expect(before.agent).to.deep.equal({
      limitCents: 10_000,
      spentCents: 400,
      reservedCents: 1_000,
      remainingCents: 8_600,
      remainingIfDeniedCents: 9_600,
    });
    expect(before.team).to.deep.equal({
      limitCents: null,
      spentCents: 400,
      reservedCents: 1_000,
      remainingCents: null,
      remainingIfDeniedCents: null,
    });
    expect(before.project).to.deep.equal({
      limitCents: 5_000,
      spentCents: 400,
      reservedCents: 1_000,
      remainingCents: 3_600,
      remainingIfDeniedCents: 4_600,
    });
    await world.api.ok("approveApproval", 200, { token, id: approvalId });
    const { agent: after } = await contextOf(approvalId);
    expect([after.remainingCents, after.remainingIfDeniedCents]).to.deep.equal([8_600, 8_600]);
  });

  it("shows the agent's last ten payments before it, the newest first, and no other agent's", async () => {
    const agent = await world.agent({ autoApprovalThresholdCents: 1_000 });
    const other = await world.agent();
    await other.pay();
    const paid: string[] = [];
    for (const index of times(11, (each) => each)) {
      paid.unshift((await agent.pay({ amountCents: 1 + index })).transaction.id);
    }
    const { approvalId } = await agent.hold({ amountCents: 2_000 });
    await agent.pay();
    const { lastPayments } = await contextOf(approvalId);
    expect(lastPayments.map(({ id }) => id)).to.deep.equal(paid.slice(0, 10));
  });
});
