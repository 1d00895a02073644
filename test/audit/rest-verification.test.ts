import { expect } from "chai";
import type { AuditDocument } from "../../src/store/audit-documents.ts";
import { demote, newWorld, times, until, type World } from "../support/world.ts";

describe("verifying the audit log over REST", () => {
  let world: World;
  beforeEach(async () => {
    world = await newWorld();
    for (const index of times(5, (each) => each)) {
      await world.api.made("createTeam", { token: world.token, body: { name: `Team ${String(index)}` } });
    }
    // Entries that are written after their answers.
    await until("the log is at rest", async () => {
      const { verifiedTo } = await verify();
      return verifiedTo === (await verify()).lastSequence ? true : null;
    });
  });

  const verify = (after = 0) =>
    world.api.ok("verifyAuditLog", 200, { token: world.token, query: { after: String(after) } });

  const log = () => world.service.db.collection<AuditDocument>("audit_log");
  const entryAt = async (sequence: number): Promise<AuditDocument> => {
    const { organizationId } = world.organization;
    const entry = await log().findOne({ organizationId, sequence });
    if (entry === null) throw new Error(`there is no entry ${String(sequence)}`);
    return entry;
  };

  it("a log as it was written is unbroken, from its first entry and from any other", async () => {
    const whole = await verify();
    expect(whole).to.deep.include({ unbroken: true, verifiedTo: whole.lastSequence, broken: null });
    expect(whole.lastSequence).to.be.at.least(5);
    for (const after of [1, 3, whole.lastSequence]) {
      expect(await verify(after)).to.deep.include({ unbroken: true, verifiedTo: whole.lastSequence });
    }
  });

  it("a changed entry and a missing one are named, also when the walk begins behind them", async () => {
    const third = await entryAt(3);
    await log().updateOne({ _id: third._id }, { $set: { action: "nothing" } });
    expect((await verify()).broken).to.deep.include({ sequence: 3, problem: "changed" });
    expect(await verify(3)).to.deep.include({ unbroken: false, verifiedTo: 2 });
    expect((await verify(2)).broken?.sequence).to.equal(3);
    await log().replaceOne({ _id: third._id }, third);
    expect((await verify()).unbroken).to.equal(true);
    await log().deleteOne({ _id: third._id });
    expect((await verify()).broken).to.deep.include({ sequence: 3, problem: "removed" });
    expect((await verify(3)).unbroken).to.equal(false);
  });

  it("a log that ends before what was verified is cut", async () => {
    const { lastSequence } = await verify();
    expect((await verify(lastSequence + 1)).broken?.problem).to.equal("cut_tail");
  });

  it("is for owners and admins", async () => {
    await demote(world, "member");
    await world.api.refused("verifyAuditLog", 403, "ROLE_REQUIRED", { token: world.token });
  });
});
