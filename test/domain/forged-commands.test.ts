import { isDeepStrictEqual } from "node:util";
import { expect } from "chai";
import type { AgentCommand } from "../../src/domain/agent/commands.ts";
import { handle } from "../../src/domain/agent/handle.ts";
import type { LedgerCommand } from "../../src/domain/ledger/commands.ts";
import { capturedInFull } from "../../src/domain/ledger/books.ts";
import { judge } from "../../src/domain/ledger/judge.ts";
import { packLedger, unpackLedger } from "../../src/domain/ledger/pack.ts";
import type { Ledger } from "../../src/domain/ledger/state.ts";
import { MAX_CENTS, mcOf } from "../../src/domain/money.ts";
import { SUBMIT_BATCH_MAX } from "../../src/messages/agent.ts";
import { isAgentCommand } from "../../src/messages/guards/agent-commands.ts";
import { isLedgerCommand } from "../../src/messages/guards/ledger-commands.ts";
import { agentRefusal, ledgerRefusal } from "../../src/messages/guards/batch-refusals.ts";
import { LEDGER_BATCH_MAX, LEDGER_CONFIRMATIONS_MAX } from "../../src/messages/ledger.ts";
import { contentOf, TestAccount } from "./support/account.ts";
import { NOON, profile, SECOND } from "./support/actor.ts";
import { TestAgent } from "./support/agent.ts";
import { agentExamples, alterations, ledgerExamples } from "./support/command-examples.ts";

/** More than any one command may add to a state that must fit in what the engine takes. */
const GROWTH_BYTES_MAX = 16_000;

const sizeOf = (state: unknown): number => Buffer.byteLength(JSON.stringify(state));

/** Through JSON, as everything goes through Temporal. */
const sent = (value: unknown): unknown => JSON.parse(JSON.stringify(value) ?? "null");

/** No sum has become something else, and nothing is found where it was never set. */
function expectSound(state: object, where: string): void {
  const text = JSON.stringify(state, (_name, value: unknown) => {
    if (typeof value === "number" && !Number.isFinite(value)) throw new Error(`${where}: no number`);
    return value;
  });
  const own: unknown = JSON.parse(text);
  expect(state, where).to.deep.equal(own);
}

/** An account with a payment on hold, one under way and one that is over. */
function busyLedger(): { readonly ledger: Ledger; readonly held: string; readonly sending: string } {
  const account = new TestAccount({ autoApprovalThresholdCents: 500 });
  const [held, sending, over] = [account.pay(600), account.pay(100), account.pay(50)];
  account.settle(over.request.transactionId);
  return { ledger: account.ledger, held: held.request.transactionId, sending: sending.request.transactionId };
}

/** A ledger of its own with the same in it. */
const copyOf = (ledger: Ledger): Ledger => ({ ...contentOf(ledger), touched: new Set() });

const refusedOf = (command: unknown) => ledgerRefusal([command])?.commands;
const batchOf = (count: number, command: object) => Array.from({ length: count }, () => command);
const pause = { kind: "pause", agentId: profile.agentId };

describe("commands that this service never made", () => {
  it("every command of a ledger is taken, with all its fields and without the optional", () => {
    const examples: LedgerCommand[] = Object.values(ledgerExamples("txn_1"));
    expect(examples.filter((command) => !isLedgerCommand(sent(command)))).to.deep.equal([]);
    const withoutId = examples.map(({ requestId: _id, ...command }) => command);
    expect(withoutId.filter((command) => !isLedgerCommand(sent(command)))).to.deep.equal([]);
    const { rules: _rules, ...pay } = ledgerExamples("txn_1").pay;
    const { rulesVersions: _versions, ...request } = pay.request;
    expect(isLedgerCommand({ ...pay, request })).to.equal(true);
    expect(ledgerRefusal([...examples, { ...pay, request }])).to.equal(null);
  });

  it("a report of an over-capture of the highest payment is taken", () => {
    const account = new TestAccount({ budgetCents: MAX_CENTS });
    const { transactionId } = account.pay(MAX_CENTS).request;
    const capturedMc = 1.2 * mcOf(MAX_CENTS);
    const books = [{ ...capturedInFull(mcOf(MAX_CENTS)), capturedMc }];
    const { agentId } = profile;
    const book = { kind: "book", agentId, transactionId, books, recordsCheckedThrough: 0 } as const;
    expect(isLedgerCommand(sent(book))).to.equal(true);
    account.judge(book);
    expect(account.totals().spent).to.equal(1.2 * MAX_CENTS);
  });

  it("every command of an agent's actor is taken", () => {
    const examples: AgentCommand[] = Object.values(agentExamples);
    expect(examples.filter((command) => !isAgentCommand(sent(command)))).to.deep.equal([]);
    expect(agentRefusal(examples)).to.equal(null);
  });

  it("one to a ledger with anything changed is refused, or does no more than a good one", () => {
    let refused = 0;
    let taken = 0;
    for (const named of ["held", "sending"] as const) {
      const { [named]: transactionId, ledger } = busyLedger();
      const before = sizeOf(packLedger(ledger, NOON + SECOND));
      for (const command of Object.values(ledgerExamples(transactionId))) {
        for (const { value: altered, where } of alterations(sent(command))) {
          if (!isLedgerCommand(altered)) {
            refused += 1;
            continue;
          }
          taken += 1;
          const copy = copyOf(ledger);
          const said = `${command.kind} ${where}`;
          expect(judge(copy, altered, NOON + SECOND).kind, said).to.not.equal("failed");
          const packed = packLedger(copy, NOON + SECOND);
          const carried: typeof packed = JSON.parse(JSON.stringify(packed));
          const again = contentOf(unpackLedger(carried, copy.bounds));
          expect(isDeepStrictEqual(again, contentOf(copy)), `${said}, after a roll-over`).to.equal(true);
          expect(sizeOf(packed) - before, said).to.be.below(GROWTH_BYTES_MAX);
          for (const { totals } of [copy.project, ...copy.teams.values()]) {
            expect(Math.min(totals.spentMc, totals.reservedMc), said).to.be.at.least(0);
          }
        }
      }
    }
    expect(refused).to.be.above(2_000);
    expect(taken).to.be.within(100, 2_500);
  }).timeout(60_000);

  it("one to an agent's actor with anything changed is refused, or does no more than a good one", () => {
    let [refused, taken] = [0, 0];
    for (const command of Object.values(agentExamples)) {
      for (const { value: altered, where } of alterations(sent(command))) {
        if (!isAgentCommand(altered)) {
          refused += 1;
          continue;
        }
        taken += 1;
        const agent = new TestAgent();
        const before = sizeOf(agent.state);
        handle(agent.state, altered, NOON + SECOND);
        expectSound(agent.state, `${command.kind} ${where}`);
        expect(sizeOf(agent.state) - before, where).to.be.below(GROWTH_BYTES_MAX);
      }
    }
    expect(refused).to.be.above(200);
    expect(taken).to.be.above(10);
  });

  const malformed = [{ index: 0, why: "malformed" }];
  const { agentId } = profile;
  const { approve, book, change_policy, pay, replace_team } = ledgerExamples("txn_1");

  const rows: readonly [string, unknown][] = [
    ["an approval without a name", { ...approve, by: null }],
    ["an approval without a name", { kind: "approve", agentId, transactionId: "txn_1", proof: "" }],
    ["an approval in the name of a text", { ...approve, by: "the owner" }],
    ["a command of no agent", { kind: "pause" }],
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
    [
      "a closed payment that holds money, which it would release",
      { ...book, closed: { ...book.closed, status: "pending", books: null } },
    ],
    ["a policy with an unknown limit", { ...change_policy, patch: { limit: 1 } }],
    ["a policy without a budget", { ...change_policy, patch: { budgetCents: null } }],
    ["a cap below nothing", { ...replace_team, capCents: -1 }],
    ["a budget of no agent", { ...replace_team, agents: [{ budgetCents: 1 }] }],
    ["nothing", null],
    ["a text", "pause"],
    ["a list", ["pause"]],
  ];
  for (const [what, command] of rows) {
    it(`${what} is refused as malformed`, () => {
      expect(refusedOf(command)).to.deep.equal(malformed);
    });
  }

  it("an archive by something else is refused by an agent's actor", () => {
    const archive = { kind: "archive", by: { type: "system" } };
    expect(agentRefusal([archive])?.commands).to.deep.equal(malformed);
  });

  it("of a batch it says which are unknown and which malformed: the rest can be said again", () => {
    const batch = [pause, { kind: "teleport" }, { kind: "resume" }, { kind: "constructor" }];
    expect(ledgerRefusal(batch)?.commands).to.deep.equal([
      { index: 1, why: "unknown" },
      { index: 2, why: "malformed" },
      { index: 3, why: "unknown" },
    ]);
    expect(agentRefusal([{ kind: "pause" }])?.commands).to.deep.equal([{ index: 0, why: "unknown" }]);
  });

  it("no batch, and one of more than go together, is refused as a whole", () => {
    const ledgerMax = LEDGER_BATCH_MAX + LEDGER_CONFIRMATIONS_MAX;
    const none = [undefined, null, {}, "pause", { length: 1 }];
    expect(ledgerRefusal(batchOf(ledgerMax, pause))).to.equal(null);
    for (const batch of [...none, batchOf(ledgerMax + 1, pause)]) {
      expect(ledgerRefusal(batch)).to.deep.equal({ commands: [] });
    }
    const revoke = { kind: "revoke_key" };
    expect(agentRefusal(batchOf(SUBMIT_BATCH_MAX, revoke))).to.equal(null);
    for (const batch of [...none, batchOf(SUBMIT_BATCH_MAX + 1, revoke)]) {
      expect(agentRefusal(batch)).to.deep.equal({ commands: [] });
    }
  });
});
