import { expect } from "chai";
import * as fc from "fast-check";
import { type AuditChange, changesOf, decisionFacts, referencesIn } from "../../src/client/audit-changes.ts";
import { seed } from "../support/seed.ts";
import { shortOrSoak } from "../support/soak.ts";

const money = (cents: number) => ({ kind: "money", cents });
const text = (words: string) => ({ kind: "text", text: words });
const record = (type: string, id: string) => ({ kind: "reference", of: { type, id } });
const NONE = { kind: "none" };

/** Changes by their fields: `field: [was, is]`, with the record that a field is of before it. */
const shown = (changes: readonly AuditChange[]) =>
  Object.fromEntries(
    changes.map(({ is, of, path, was }) => [`${of === null ? "" : `${of.id}/`}${path.join(".")}`, [was, is]]),
  );

const ruleAbove = (id: string, amountCents: number) => ({
  id,
  type: "amount_above",
  enabled: true,
  params: { amountCents },
});

const CASES: readonly (readonly [string, unknown, unknown, object])[] = [
  ["nothing at all", null, null, {}],
  ["equal values in another order of fields", { a: 1, b: { c: 1, d: 2 } }, { b: { d: 2, c: 1 }, a: 1 }, {}],
  ["a version alone", { name: "A", version: 1 }, { name: "A", version: 2 }, {}],
  [
    "a policy",
    { budgetCents: 1_000, dailySpendLimitCents: null, version: 1 },
    { budgetCents: 700, dailySpendLimitCents: 50, version: 2 },
    { budgetCents: [[money(1_000)], [money(700)]], dailySpendLimitCents: [[NONE], [money(50)]] },
  ],
  [
    "what is created",
    null,
    { name: "New", isActive: true },
    { name: [[], [text("New")]], isActive: [[], [{ kind: "flag", value: true }]] },
  ],
  ["what is removed", { email: "a@b" }, null, { email: [[text("a@b")], []] }],
  [
    "times and spans",
    { at: "2026-03-29T01:00:00.000Z" },
    { at: null, windowSeconds: 60 },
    {
      at: [[{ kind: "time", iso: "2026-03-29T01:00:00.000Z" }], [NONE]],
      windowSeconds: [[], [{ kind: "span", seconds: 60 }]],
    },
  ],
  [
    "a list",
    { eventTypes: ["a", "b", "b"] },
    { eventTypes: ["b", "c"] },
    { eventTypes: [[text("a"), text("b")], [text("c")]] },
  ],
  [
    "a list's order",
    { days: ["a", "b"] },
    { days: ["b", "a"] },
    {
      days: [
        [text("a"), text("b")],
        [text("b"), text("a")],
      ],
    },
  ],
  [
    "a list that had no bound",
    { scopes: null },
    { scopes: [] },
    { scopes: [[NONE], [{ kind: "group", fields: [] }]] },
  ],
  [
    "agents that were paused",
    { active: ["x"] },
    { paused: ["x"] },
    { active: [[record("agent", "x")], []], paused: [[], [record("agent", "x")]] },
  ],
  ["a count of paused agents", null, { paused: 2 }, { paused: [[], [{ kind: "number", value: 2 }]] }],
  [
    "a budget's children",
    {
      capCents: null,
      agents: [
        { agentId: "x", budgetCents: 1 },
        { agentId: "y", budgetCents: 2 },
      ],
    },
    {
      capCents: null,
      agents: [
        { agentId: "y", budgetCents: 3 },
        { agentId: "x", budgetCents: 1 },
      ],
    },
    { "y/agents.budgetCents": [[money(2)], [money(3)]] },
  ],
  [
    "a child that is new",
    { teams: [] },
    { teams: [{ teamId: "t", capCents: 5 }] },
    {
      teams: [
        [],
        [
          {
            kind: "group",
            fields: [
              { field: "teamId", value: record("team", "t") },
              { field: "capCents", value: money(5) },
            ],
          },
        ],
      ],
    },
  ],
  [
    "rules",
    { rules: [ruleAbove("r", 1), ruleAbove("s", 2)] },
    { rules: [ruleAbove("s", 2), ruleAbove("r", 3)] },
    { rules: [[{ kind: "rule", rule: ruleAbove("r", 1) }], [{ kind: "rule", rule: ruleAbove("r", 3) }]] },
  ],
  [
    "a binding",
    null,
    { binding: { type: "team", id: "t" }, keyId: "okey_1" },
    { binding: [[], [record("team", "t")]], keyId: [[], [record("organization_key", "okey_1")]] },
  ],
  [
    "a secret, if there ever was one",
    { secret: { a: 1 } },
    { secret: "x", resetToken: ["y"], newPassword: "z" },
    {
      secret: [[{ kind: "hidden" }], [{ kind: "hidden" }]],
      resetToken: [[], [{ kind: "hidden" }]],
      newPassword: [[], [{ kind: "hidden" }]],
    },
  ],
];

/** Facts of a decision that a limit denied. */
const factsOf = (code: string) =>
  shown(decisionFacts({ code, details: { limit: 5, remaining: 1, resetsAt: null } }));

describe("the change that an entry of the audit log records", () => {
  for (const [name, before, after, expected] of CASES) {
    it(`${name}: its old and new values`, () => {
      expect(shown(changesOf(before, after))).to.deep.equal(expected);
    });
  }

  it("a decision's limit is an amount, unless it counts payments", () => {
    expect(factsOf("BUDGET_EXCEEDED")).to.deep.equal({
      code: [[], [text("BUDGET_EXCEEDED")]],
      "details.limitCents": [[], [money(5)]],
      "details.remainingCents": [[], [money(1)]],
    });
    expect(factsOf("HOURLY_VELOCITY_EXCEEDED")).to.deep.include({
      "details.limit": [[], [{ kind: "number", value: 5 }]],
    });
    expect(decisionFacts(null)).to.deep.equal([]);
  });

  it("names every record that it shows", () => {
    const after = {
      agents: [{ agentId: "a", budgetCents: 1 }],
      decisions: [{ id: "p", decision: "approve" }],
      scopeType: "team",
      scopeIds: ["t"],
    };
    expect(referencesIn({ after })).to.deep.equal([
      { type: "agent", id: "a" },
      { type: "approval", id: "p" },
      { type: "team", id: "t" },
    ]);
  });

  it("nothing is shown exactly where nothing differs, and all of it is where it does", () => {
    const scalar = fc.oneof(fc.constant(null), fc.boolean(), fc.nat(3), fc.constantFrom("x", "y"));
    const value = fc.oneof(
      scalar,
      fc.array(scalar, { maxLength: 3 }),
      fc.dictionary(fc.constantFrom("c", "d"), scalar, { minKeys: 1 }),
    );
    const fields = fc.dictionary(fc.constantFrom("a", "b", "e"), value);
    fc.assert(
      fc.property(fields, fields, (before, after) => {
        const named = new Set(changesOf(before, after).map(({ path }) => path[0]));
        const differing = Object.keys({ ...before, ...after }).filter(
          (name) => !same(before[name], after[name]),
        );
        expect([...named]).to.have.members(differing);
        // The other way round, old and new change places.
        const swapped = shown(changesOf(after, before));
        const turned = Object.entries(shown(changesOf(before, after))).map(([name, sides]) => [
          name,
          sides.toReversed(),
        ]);
        expect(swapped).to.deep.equal(Object.fromEntries(turned));
      }),
      { seed, numRuns: shortOrSoak(2_000, 100_000) },
    );
  });
});

function same(one: unknown, other: unknown): boolean {
  try {
    expect(one).to.deep.equal(other);
    return true;
  } catch {
    return false;
  }
}
