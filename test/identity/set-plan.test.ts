import { expect } from "chai";
import { setPlan, type SetPlanInput } from "../../server/admin/set-plan.ts";
import { entriesOf } from "../audit/support.ts";
import { fixture, type Fixture, masterKeyTextOf } from "./support.ts";

describe("npm run admin -- set-plan", () => {
  let the: Fixture;
  before(async () => {
    the = await fixture();
  });
  after(() => the.database.close());

  const set = (input: Partial<SetPlanInput>) => {
    const uri = new URL(String(process.env["TEST_MONGODB_URI"]));
    uri.pathname = `/${the.database.db.databaseName}`;
    const env = { MONGODB_URI: uri.href, MASTER_KEY: masterKeyTextOf("k") };
    return setPlan(env, { organization: the.organizationId, plan: "enterprise", ...input });
  };
  const stored = () => the.collections.organizations.findOne({ _id: the.organizationId });

  it("changes the plan and its limits, with an entry; a custom limit that is not named ends", async () => {
    const organizationId = the.organizationId;
    const custom = { plan: "enterprise", restPerMinute: 7, mcpPerMinute: 8 };
    expect(await set(custom)).to.deep.equal({ organizationId, ...custom });
    expect(await stored()).to.include(custom);
    const limits = { restPerMinute: 7, mcpPerMinute: 3_000 };
    expect(await set({ restPerMinute: 7 })).to.include(limits);
    expect(await set({ plan: "free" })).to.include({ restPerMinute: 100, mcpPerMinute: 60 });
    expect(await stored()).to.include({ plan: "free", restPerMinute: null, mcpPerMinute: null });
    const entries = await entriesOf(the.database.db, organizationId);
    expect(entries.map(({ after, before }) => [before, after])).to.deep.equal([
      [{ plan: "pro", restPerMinute: null, mcpPerMinute: null }, custom],
      [custom, { ...custom, mcpPerMinute: null }],
      [
        { ...custom, mcpPerMinute: null },
        { plan: "free", restPerMinute: null, mcpPerMinute: null },
      ],
    ]);
    expect(entries[0]).to.deep.include({
      action: "setPlan",
      resource: { type: "organization", id: organizationId },
      from: { address: null, surface: "admin", via: "set-plan" },
    });
  });

  for (const [what, input, message] of [
    ["an unknown plan", { plan: "platinum" }, "plan: "],
    ["a custom limit on another plan", { plan: "pro", mcpPerMinute: 5 }, "mcpPerMinute: Custom limits"],
    ["an unknown organization", { organization: "x" }, "There is no organization x."],
  ] as const) {
    it(`refuses ${what}, and changes nothing`, async () => {
      const before = [await stored(), await entriesOf(the.database.db, the.organizationId)];
      const refusal = await set(input).then(() => "it was done", String);
      expect(refusal).to.include(message);
      expect([await stored(), await entriesOf(the.database.db, the.organizationId)]).to.deep.equal(before);
    });
  }
});
