import { isDeepStrictEqual } from "node:util";
import { expect } from "chai";
import type { AgentCommand } from "../../src/domain/agent/commands.ts";
import type { LedgerCommand } from "../../src/domain/ledger/commands.ts";
import { capturedInFull } from "../../src/domain/ledger/books.ts";
import { judge } from "../../src/domain/ledger/judge.ts";
import { packLedger, unpackLedger } from "../../src/domain/ledger/pack.ts";
import type { Ledger } from "../../src/domain/ledger/state.ts";
import { MAX_CENTS, mcOf } from "../../src/domain/money.ts";
import { isAgentCommand } from "../../src/messages/guards/agent-commands.ts";
import { isLedgerCommand } from "../../src/messages/guards/ledger-commands.ts";
import { agentRefusal, ledgerRefusal } from "../../src/messages/guards/batch-refusals.ts";
import { contentOf, TestAccount } from "./support/account.ts";
import { NOON, profile, SECOND } from "./support/actor.ts";
import { agentExamples, alterations, ledgerExamples } from "./support/command-examples.ts";

/** Through JSON, as everything goes through Temporal. */
const sent = (value: unknown): unknown => JSON.parse(JSON.stringify(value) ?? "null");

/** Fields that a command may lack, of those in the examples. */
const OPTIONAL: readonly string[] = [
  "open_account $.policy.spendLimits",
  "open_account $.policy.increases",
  "pay $.request.rulesVersions",
  "pay $.forbidden",
  "pay $.rules",
  "pay $.rules.zones",
  "pay $.rules.similarAt",
  "confirm $.outcome.result.onChain",
  "book $.dropped",
  "authorize $.forbidden",
  "authorize $.rulesVersions",
  "approve $.forbidden",
  "approve $.rulesVersions",
  "grant_raise $.endsAt",
  "change_policy $.patch.budgetCents",
  "change_policy $.patch.autoApprovalThresholdCents",
  "change_policy $.patch.perTransactionLimitCents",
  "change_policy $.patch.dailySpendLimitCents",
  "change_policy $.patch.hourlyVelocityLimit",
  "change_policy $.patch.dailyVelocityLimit",
  "resume $.pausedAt",
  "replace_team $.spendLimits",
];

/** An account with a payment on hold, one under way and one that is over. */
function busyLedger(): { readonly ledger: Ledger; readonly held: string; readonly sending: string } {
  const account = new TestAccount({ autoApprovalThresholdCents: 500 });
  const [held, sending, over] = [account.pay(600), account.pay(100), account.pay(50)];
  account.settle(over.request.transactionId);
  return { ledger: account.ledger, held: held.request.transactionId, sending: sending.request.transactionId };
}

/** A ledger of its own with the same in it. */
const copyOf = (ledger: Ledger): Ledger => ({ ...contentOf(ledger), touched: new Set() });

const pause = { kind: "pause", agentId: profile.agentId };

/** Alterations of commands without the closed payment of a `book`, of which a guard sees the outline. */
const altered = (examples: object) =>
  Object.entries(examples).flatMap(([kind, command]: [string, unknown]) =>
    alterations(sent(command)).flatMap(({ how, value, where }) =>
      where.startsWith("$.closed")
        ? []
        : { how, value, what: `${kind} ${where.replaceAll(/\[\d\]/g, "[]")}` },
    ),
  );

describe("commands of an actor's callers, which may be of another version", () => {
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

  it("a field that this version does not know is refused at any depth, and so is a missing one", () => {
    const all = [
      ...altered(ledgerExamples("txn_1")).map((each) => ({ ...each, isTaken: isLedgerCommand(each.value) })),
      ...altered(agentExamples).map((each) => ({ ...each, isTaken: isAgentCommand(each.value) })),
    ];
    expect(all.filter(({ how, isTaken }) => how === "more" && isTaken)).to.deep.equal([]);
    const optional = all.flatMap(({ how, isTaken, what }) => (how === "without" && isTaken ? [what] : []));
    const ofCommands = optional.filter((what) => !what.endsWith(" $.requestId"));
    expect([...new Set(ofCommands)]).to.deep.equal(OPTIONAL);
  });

  it("a changed value is refused by the guard or the ledger, or leaves the ledger sound", () => {
    let taken = 0;
    for (const named of ["held", "sending"] as const) {
      const { [named]: transactionId, ledger } = busyLedger();
      for (const { value, what } of altered(ledgerExamples(transactionId))) {
        if (!isLedgerCommand(value)) continue;
        taken += 1;
        const copy = copyOf(ledger);
        expect(judge(copy, value, NOON + SECOND).kind, what).to.not.equal("failed");
        const packed = packLedger(copy, NOON + SECOND);
        const carried: typeof packed = JSON.parse(JSON.stringify(packed));
        const again = contentOf(unpackLedger(carried, copy.bounds));
        expect(isDeepStrictEqual(again, contentOf(copy)), `${what}, after a roll-over`).to.equal(true);
        for (const { totals } of [copy.project, ...copy.teams.values()])
          expect(Math.min(totals.spentMc, totals.reservedMc), what).to.be.at.least(0);
      }
    }
    expect(taken).to.be.above(100);
  }).timeout(60_000);

  const { approve, book, change_policy, confirm, pay, replace_team } = ledgerExamples("txn_1");
  const [check] = pay.rules?.checks ?? [];

  const rows: readonly [string, unknown][] = [
    ["an unknown kind", { kind: "teleport" }],
    ["a kind that every object has", { kind: "constructor" }],
    ["an unknown rail", { ...pay, request: { ...pay.request, rail: "sepa" } }],
    ["another currency", { ...pay, request: { ...pay.request, currency: "EUR" } }],
    ["an unknown rule", { ...pay, rules: { checks: [{ ...check, type: "phase_of_the_moon" }] } }],
    ["an unknown restriction", { ...pay, forbidden: { ...pay.forbidden, code: "FORBIDDEN" } }],
    ["an unknown period", { ...replace_team, spendLimits: [{ period: "decade", limitCents: 1 }] }],
    ["an unknown outcome", { ...confirm, outcome: { result: { status: "lost" }, at: 1 } }],
    ["an unknown limit", { ...change_policy, patch: { limit: 1 } }],
    ["a policy without a budget", { ...change_policy, patch: { budgetCents: null } }],
    ["an approval without a name", { ...approve, by: null }],
    ["a payment that gives money", { ...pay, request: { ...pay.request, amountMc: -700 } }],
    ["a payment of part of the smallest unit", { ...pay, request: { ...pay.request, amountMc: 0.5 } }],
    ["a cap below nothing", { ...replace_team, capCents: -1 }],
    ["an open payment as a closed one", { ...book, closed: { ...book.closed, phase: "following" } }],
    ["nothing", null],
    ["a text", "pause"],
    ["a list", ["pause"]],
  ];
  for (const [what, command] of rows) {
    it(`${what} is refused`, () => {
      expect(ledgerRefusal([command])).to.deep.equal({ indexes: [0] });
    });
  }

  it("an archive by something else is refused by an agent's actor", () => {
    expect(agentRefusal([{ kind: "archive", by: { type: "system" } }])).to.deep.equal({ indexes: [0] });
  });

  it("texts of any length and kind are taken: whoever made them has bounded them", () => {
    const receipt = JSON.stringify({ note: "\u007f\u{1f4b8}".repeat(1_000) });
    expect(
      isLedgerCommand({ ...confirm, outcome: { result: { status: "settled", receipt }, at: 1 } }),
    ).to.equal(true);
  });

  it("of a batch it says which are refused: the rest can be said again", () => {
    const batch = [pause, { kind: "teleport" }, { kind: "resume" }, pause];
    expect(ledgerRefusal(batch)).to.deep.equal({ indexes: [1, 2] });
    expect(agentRefusal([{ kind: "pause" }])).to.deep.equal({ indexes: [0] });
    expect([ledgerRefusal([pause]), agentRefusal([{ kind: "revoke_key" }])]).to.deep.equal([null, null]);
  });

  it("no batch is refused as a whole", () => {
    for (const batch of [undefined, null, {}, "pause", { length: 1 }])
      expect([ledgerRefusal(batch), agentRefusal(batch)]).to.deep.equal([{ indexes: [] }, { indexes: [] }]);
  });
});
