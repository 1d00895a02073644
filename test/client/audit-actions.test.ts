import { readFile } from "node:fs/promises";
import { expect } from "chai";
import { leavesEntry } from "../../src/audit/record.ts";
import { resourceOf } from "../../src/audit/resource.ts";
import {
  actionLabel,
  actionsOn,
  AUDIT_ACTIONS,
  type AuditEntry,
  entryLabel,
  isUnproved,
  outcomeOf,
  RESOURCE_KINDS,
} from "../../src/client/audit-actions.ts";
import { operationList } from "../../src/contract/registry.ts";
import { sourceFiles } from "../architecture/imports.ts";

const ACTIONS = Object.values(AUDIT_ACTIONS);
const REST = { address: null, surface: "rest", via: "POST /v1/agents/:id/pause" } as const;
const result = (status: number | null, code: string | null = null) => ({ status, code });

type Outcomes = Pick<AuditEntry, "action" | "after" | "decision" | "from" | "result">;
const entry = (fields: Partial<Outcomes>): Outcomes => ({
  action: "pauseAgent",
  after: null,
  decision: null,
  from: REST,
  result: result(200),
  ...fields,
});

const by = (sessionId?: string) =>
  ({ type: "user", id: "u", ...(sessionId === undefined ? {} : { sessionId }) }) as const;

describe("actions of the audit log in words", () => {
  it("every action that leaves an entry has words, and no other", async () => {
    const operations = operationList
      .filter(([id, { http }]) => leavesEntry(id) && http !== null)
      .map(([id]) => id);
    const literals = await Promise.all(
      (await sourceFiles()).map(async (file) => {
        const text = await readFile(file, "utf8");
        // Also where a type lists several: `readonly action: "decidePayment" | "resolvePayment"`.
        return [...text.matchAll(/\baction: ((?:"\w+"(?: \| )?)+)[,;]/g)].flatMap(([, found = ""]) =>
          [...found.matchAll(/\w+/g)].map(([name]) => name),
        );
      }),
    );
    const others = new Set(literals.flat().filter((name) => name !== "deny"));
    expect(Object.keys(AUDIT_ACTIONS).toSorted()).to.deep.equal(
      [...new Set([...operations, ...others])].toSorted(),
    );
  });

  it("no two read alike, done or tried", () => {
    for (const words of [ACTIONS.map(({ done }) => done), ACTIONS.map(({ tried }) => tried)])
      expect(new Set(words).size).to.equal(words.length);
  });

  it("an action is listed under the kind of resource that its route is about", () => {
    for (const [id, operation] of operationList) {
      if (!leavesEntry(id) || operation.http === null) continue;
      const named = { params: {}, answered: null, organizationId: "o", userId: "u" };
      const { type } = resourceOf(operation.http.path, { schema: operation.params, ...named });
      expect(actionsOn(type), `${id} on ${type}`).to.include(id);
      expect(RESOURCE_KINDS).to.have.property(type);
    }
    expect(actionsOn("constructor")).to.deep.equal([]);
  });

  it("an entry says that it was done or tried, with its result and why", () => {
    const decided = (outcome: string, code: string | null = null) =>
      entry({ action: "decidePayment", from: null, decision: { outcome }, result: result(null, code) });
    const cases: readonly (readonly [Outcomes, string, string])[] = [
      [entry({}), "Paused agent", "Done"],
      [entry({ result: result(403, "ROLE_REQUIRED") }), "Tried to pause agent", "Refused role required"],
      [
        entry({ result: result(503, "SERVICE_UNAVAILABLE") }),
        "Tried to pause agent",
        "Failed it may have been done",
      ],
      [entry({ result: result(null) }), "Tried to pause agent", "Unknown begun, and it may have been done"],
      [
        entry({ result: result(403, "ROLE_REQUIRED"), after: { refusals: 7 } }),
        "Tried to pause agent",
        "Refused 7 more: role required",
      ],
      [
        entry({ action: "furtherRefusals", from: null, result: result(null), after: { refusals: 3 } }),
        "Counted further refusals",
        "Refused 3 more",
      ],
      [
        entry({ action: "setPlan", from: { ...REST, surface: "admin" }, result: result(null) }),
        "Changed plan of organization",
        "Done",
      ],
      [decided("approved"), "Judged payment by policy", "Approved"],
      [decided("held"), "Judged payment by policy", "Held requires approval"],
      [decided("denied", "BUDGET_EXCEEDED"), "Judged payment by policy", "Denied budget exceeded"],
      [entry({ action: "constructor" }), "constructor", "Done"],
    ];
    for (const [each, label, outcome] of cases) {
      const { why, word } = outcomeOf(each);
      expect([entryLabel(each), why === null ? word : `${word} ${why}`]).to.deep.equal([label, outcome]);
    }
    expect(actionLabel("updateAgentBudgetPolicy")).to.equal("Changed budget policy of agent");
  });

  it("only a refused request without a session is by somebody who is not proved", () => {
    const wrong = entry({ action: "signIn", result: result(401, "UNAUTHORIZED") });
    const decision = { outcome: "denied" };
    expect(isUnproved({ ...wrong, actor: by() })).to.equal(true);
    expect(isUnproved({ ...wrong, actor: by("s") })).to.equal(false);
    expect(isUnproved({ ...wrong, actor: { type: "agent", id: "a" } })).to.equal(false);
    expect(
      isUnproved({ ...entry({ action: "resolvePayment", from: null, decision }), actor: by() }),
    ).to.equal(false);
  });
});
