import { expect } from "chai";
import { handle } from "../../src/domain/agent/decide.ts";
import type { AgentState } from "../../src/domain/agent/state.ts";
import { handleBudget } from "../../src/domain/budget/budget.ts";
import { initialBudgetState } from "../../src/domain/budget/state.ts";
import { BUDGET_BATCH_MAX } from "../../src/messages/budget.ts";
import { SUBMIT_BATCH_MAX } from "../../src/messages/agent.ts";
import { isAgentCommand, isBudgetQueryInput } from "../../src/messages/guards/agent-commands.ts";
import { isBudgetCommand, isPreviewInput } from "../../src/messages/guards/budget-commands.ts";
import { isPayment } from "../../src/messages/guards/payment.ts";
import { agentRefusal, budgetRefusal } from "../../src/messages/guards/refusals.ts";
import { NOON, SECOND, TestActor } from "./support/actor.ts";
import { agentExamples, alterations, budgetExamples } from "./support/command-examples.ts";

/** More than any one command may add to a state that must fit in 2 MiB with 200 payments. */
const GROWTH_BYTES_MAX = 16_000;

const sizeOf = (state: unknown): number => Buffer.byteLength(JSON.stringify(state));

/** Through JSON, as everything goes through Temporal. */
const sent = (value: unknown): unknown => JSON.parse(JSON.stringify(value) ?? "null");

/** No sum has become something else, and nothing is found where nobody has put it. */
function expectSound(state: object, where: string): void {
  const text = JSON.stringify(state, (_name, value: unknown) => {
    if (typeof value === "number" && !Number.isFinite(value)) throw new Error(`${where}: no number`);
    return value;
  });
  const own: unknown = JSON.parse(text);
  expect(state, where).to.deep.equal(own);
}

/** An agent with a payment on hold, one under way and one that is over. */
function busyAgent(): { readonly state: AgentState; readonly held: string; readonly sending: string } {
  const actor = new TestActor({ autoApprovalThresholdCents: 500 });
  const [held, sending, over] = [actor.request(600), actor.request(100), actor.request(50)];
  for (const request of [held, sending, over]) actor.payReply(request);
  const outcome = { result: { status: "settled", final: true } as const, at: NOON };
  for (const revision of [1, 4]) {
    actor.do({ kind: "confirm", transactionId: over.transactionId, revision, outcome });
  }
  return { state: actor.state, held: held.transactionId, sending: sending.transactionId };
}

const refusedOf = (command: unknown) => agentRefusal([command])?.commands;
const pauses = (count: number) => Array.from({ length: count }, () => ({ kind: "pause" }));

describe("commands that nobody here has made", () => {
  it("every command of an agent's actor is taken, with all its fields and without the optional", () => {
    const examples = Object.values(agentExamples("txn_1"));
    expect(examples.filter((command) => !isAgentCommand(sent(command)))).to.deep.equal([]);
    const { rules: _rules, ...pay } = agentExamples("txn_1").pay;
    const { likenessHash: _likeness, rulesVersions: _versions, ...request } = pay.request;
    expect(isAgentCommand({ ...pay, request })).to.equal(true);
    expect(agentRefusal([...examples, { ...pay, request }])).to.equal(null);
  });

  it("one with anything changed is refused, or does no more than a good one: it never throws", () => {
    let refused = 0;
    let taken = 0;
    for (const named of ["held", "sending"] as const) {
      const { [named]: transactionId, state } = busyAgent();
      const before = sizeOf(state);
      for (const command of Object.values(agentExamples(transactionId))) {
        for (const { value, where } of alterations(command)) {
          const altered = sent(value);
          if (!isAgentCommand(altered)) {
            refused += 1;
            continue;
          }
          taken += 1;
          const copy = structuredClone(state);
          handle(copy, altered, NOON + SECOND);
          const said = `${command.kind} ${where}`;
          expectSound(copy, said);
          expect(sizeOf(copy) - before, said).to.be.below(GROWTH_BYTES_MAX);
          expect(copy.usage.reservedCents, said).to.be.at.least(0);
          expect(copy.usage.spentCents, said).to.be.at.least(0);
        }
      }
    }
    expect(refused).to.be.above(2_000);
    expect(taken).to.be.within(100, 1_000);
  });

  it("a budget takes its commands; one with anything changed neither throws nor spoils its state", () => {
    expect(budgetRefusal(Object.values(budgetExamples))).to.equal(null);
    let refused = 0;
    for (const command of Object.values(budgetExamples)) {
      for (const { value, where } of alterations(command)) {
        const altered = sent(value);
        if (!isBudgetCommand(altered)) {
          refused += 1;
          continue;
        }
        const state = initialBudgetState("organization-1", "project-1");
        handleBudget(state, { ...budgetExamples.replace_project, capCents: 1_000 }, NOON);
        handleBudget(state, altered, NOON);
        expectSound(state, `${command.kind} ${where}`);
        expect(sizeOf(state), where).to.be.below(GROWTH_BYTES_MAX);
      }
    }
    expect(refused).to.be.above(500);
  });

  const malformed = [{ index: 0, why: "malformed" }];
  const { approve, pay } = agentExamples("txn_1");

  const rows: readonly [string, unknown][] = [
    ["an approval in nobody's name", { ...approve, by: null }],
    ["an approval without a name", { kind: "approve", transactionId: "txn_1", proof: "" }],
    ["an approval in the name of a text", { ...approve, by: "the owner" }],
    ["a payment that gives money", { ...pay, request: { ...pay.request, amountCents: -700 } }],
    ["a payment of part of a cent", { ...pay, request: { ...pay.request, amountCents: 0.5 } }],
    [
      "a payment under a name that every object has",
      {
        ...pay,
        request: { ...pay.request, keyHash: "constructor" },
      },
    ],
    ["a payment that is kept for ever", { ...pay, approvalWindowSeconds: 1e15 }],
    ["a payment with more than there is room for", { ...pay, request: { ...pay.request, more: "x" } }],
    ["a policy with a limit that nobody knows", { kind: "change_policy", version: 1, patch: { limit: 1 } }],
    ["a policy without a budget", { kind: "change_policy", version: 1, patch: { budgetCents: null } }],
    ["an archive by something else", { kind: "archive", by: { type: "system" } }],
    ["nothing", null],
    ["a text", "pause"],
    ["a list", ["pause"]],
  ];
  for (const [what, command] of rows) {
    it(`${what} is refused as malformed`, () => {
      expect(refusedOf(command)).to.deep.equal(malformed);
    });
  }

  it("of a batch it says which are unknown and which malformed: the rest can be said again", () => {
    const batch = [{ kind: "pause" }, { kind: "teleport" }, { kind: "rename" }, { kind: "constructor" }];
    expect(agentRefusal(batch)?.commands).to.deep.equal([
      { index: 1, why: "unknown" },
      { index: 2, why: "malformed" },
      { index: 3, why: "unknown" },
    ]);
    expect(budgetRefusal([{ kind: "pause" }])?.commands).to.deep.equal([{ index: 0, why: "unknown" }]);
  });

  it("no batch, and one of more than go together, is refused as a whole", () => {
    expect(agentRefusal(pauses(SUBMIT_BATCH_MAX))).to.equal(null);
    for (const batch of [undefined, null, {}, "pause", { length: 1 }, pauses(SUBMIT_BATCH_MAX + 1)]) {
      expect(agentRefusal(batch)).to.deep.equal({ commands: [] });
    }
    const enrols = Array.from({ length: BUDGET_BATCH_MAX + 1 }, () => budgetExamples.enrol);
    expect(budgetRefusal(enrols)).to.deep.equal({ commands: [] });
  });

  it("a payment as its actor tells of it is one at every step, and with anything missing none", () => {
    const actor = new TestActor({ autoApprovalThresholdCents: 500 });
    const payments = [actor.pay(100), actor.pay(600), actor.pay(200_000)];
    const [, held] = payments;
    if (held === undefined) throw new Error("there are three");
    payments.push(actor.resolve("approve", held.request.transactionId).payment);
    expect(payments.filter((payment) => !isPayment(sent(payment)))).to.deep.equal([]);
    const required = Object.keys(held).filter((name) => !["policyVersion"].includes(name));
    for (const name of required) {
      const { [name as keyof typeof held]: _left, ...rest } = held;
      expect(isPayment(rest), name).to.equal(false);
    }
  });

  it("questions are judged, too", () => {
    const { request, rules } = agentExamples("txn_1").pay;
    const { amountCents, rail, recipient } = request;
    const payment = { amountCents, rail, recipient, ...(rules === undefined ? {} : { rules }) };
    for (const query of [{ now: NOON }, { now: NOON, payment: null }, { now: NOON, payment }]) {
      expect(isBudgetQueryInput(query)).to.equal(true);
    }
    for (const query of [undefined, null, {}, { now: "noon" }, { now: NOON, payment: {} }]) {
      expect(isBudgetQueryInput(query)).to.equal(false);
    }
    const { report } = budgetExamples.report;
    expect(isPreviewInput({ report, amountCents: null })).to.equal(true);
    expect(isPreviewInput({ report: null, amountCents: null })).to.equal(false);
  });
});
