import { randomUUID } from "node:crypto";
import { expect } from "chai";
import { operations } from "../../src/contract/registry.ts";
import { ORGANIZATION_SCOPES } from "../../src/contract/types.ts";
import { mintKey } from "../authorization/scene.ts";
import { counts, newWorld, type World } from "../support/world.ts";
import { McpCaller } from "./support.ts";

const { checkPayment, createCardPayment, getProjectApprovalRules } = operations;
const { output } = getProjectApprovalRules;

const above = (amountCents: number) => ({ type: "amount_above", params: { amountCents } });

describe("approval rules as tools", () => {
  let world: World;
  let mcp: McpCaller;
  before(async () => {
    world = await newWorld();
    mcp = await McpCaller.connect(world.service.baseUrl, await mintKey(world, ORGANIZATION_SCOPES));
  });
  after(() => mcp.close());

  for (const noun of ["project", "team"] as const) {
    it(`a ${noun}'s are read, set by their version, and refused as over REST`, async () => {
      const name = { name: "Container", idempotencyKey: randomUUID() };
      const { token } = world;
      const id =
        noun === "project"
          ? (await world.api.ok("createProject", 201, { token, body: name })).project.id
          : (await world.api.ok("createTeam", 201, { token, body: name })).team.id;
      const target = noun === "project" ? { projectId: id } : { teamId: id };
      const [get, set] = [`get_${noun}_approval_rules`, `set_${noun}_approval_rules`] as const;
      expect(await mcp.ok(output, get, target)).to.deep.equal({ rules: [], version: 1 });
      const made = await mcp.ok(output, set, { ...target, rules: [above(1)], version: 1 });
      expect(made.version).to.equal(2);
      const operation = noun === "project" ? "getProjectApprovalRules" : "getTeamApprovalRules";
      expect(await world.api.ok(operation, 200, { token, id })).to.deep.equal(made);
      expect(await mcp.ok(output, get, target)).to.deep.equal(made);
      await mcp.refused(set, "STALE_APPROVAL_RULES", { ...target, rules: [], version: 1 });
      const { issues } = await mcp.refused(set, "VALIDATION_FAILED", {
        ...target,
        rules: [{ type: "rail", params: { anyOf: [] } }],
        version: 2,
      });
      expect(issues?.map(({ path }) => path)).to.deep.equal(["rules.0.params.anyOf"]);
    });
  }
});

describe("check_payment under rules", () => {
  it("says what the payment then gets, for every type and at both levels, and has no effect", async () => {
    const world = await newWorld();
    const { projectId, teamId } = world.organization;
    const { token } = world;
    const day = { timezone: "UTC", days: ["mon", "tue", "wed", "thu", "fri", "sat", "sun"], from: "00:00" };
    const ofProject = [
      { type: "new_recipient", params: {} },
      { type: "velocity", params: { count: 4, windowSeconds: 60 } },
      { type: "time_window", params: { ...day, to: "24:00" } },
      above(500),
    ];
    const ofTeam = [
      { type: "duplicate", params: { windowSeconds: 60 } },
      { type: "recipient", params: { anyOf: ["CASINO"] } },
      { type: "merchant_category", params: { anyOf: ["7995"] } },
    ];
    const put = (rules: readonly object[]) => ({ token, body: { rules, version: 1 } });
    await world.api.ok("setProjectApprovalRules", 200, { id: projectId, ...put(ofProject) });
    await world.api.ok("setTeamApprovalRules", 200, { id: teamId, ...put(ofTeam) });
    const agent = await world.agent({ autoApprovalThresholdCents: 400, budgetCents: 3_000 });
    const mcp = await McpCaller.connect(world.service.baseUrl, agent.key);
    try {
      const seen = new Set<string>();
      for (const fields of [
        { amountCents: 1, merchant: "shop" },
        { amountCents: 1, merchant: "SHOP" },
        { amountCents: 450, merchant: "casino", merchantCategory: "7995" },
        { amountCents: 501, merchant: "shop" },
        { amountCents: 2, merchant: "shop" },
        { amountCents: 2_900, merchant: "shop" },
      ]) {
        const wish = { ...fields, purpose: "x", idempotencyKey: randomUUID() };
        const before = await counts(world);
        const checked = await mcp.ok(checkPayment.output, "check_payment", { rail: "card", ...wish });
        expect(await counts(world)).to.deep.equal(before);
        const { approval, transaction } = await mcp.ok(createCardPayment.output, "create_card_payment", wish);
        const decision = transaction.status === "pending" ? "held" : transaction.status;
        expect(checked).to.deep.include({ decision, denialCode: transaction.denialCode });
        expect(checked.flaggedByRuleTypes).to.deep.equal(approval?.flaggedByRuleTypes ?? []);
        for (const type of checked.flaggedByRuleTypes) seen.add(type);
        if (approval !== null && fields.amountCents === 1) {
          await world.api.ok("approveApproval", 200, { token, id: approval.id });
        }
      }
      expect([...seen].toSorted()).to.deep.equal([
        "agent_threshold",
        "amount_above",
        "duplicate",
        "merchant_category",
        "new_recipient",
        "recipient",
        "velocity",
      ]);
    } finally {
      await mcp.close();
    }
  });
});
