import { expect } from "chai";
import * as fc from "fast-check";
import { joined, type RailBooks, REQUESTS_MAX } from "../../../src/domain/ledger/books.ts";
import { judge } from "../../../src/domain/ledger/judge.ts";
import { type Ledger, newLedger } from "../../../src/domain/ledger/state.ts";
import { MAX_CENTS, MAX_MC, MAX_TOTAL_MC, mcOf, remainingOf, usedCents } from "../../../src/domain/money.ts";
import { NOON } from "../support/actor.ts";
import { seed } from "../../support/seed.ts";
import { shortOrSoak } from "../../support/soak.ts";
import { booksScenes } from "./books/actions.ts";
import { BooksRun } from "./books/run.ts";

const SECONDS = shortOrSoak(1, 600);
const LAST_RUN_MS = 300_000;
const FIXED_SEED = 20_261_126;
const FIXED_RUNS = 100;
const FIXED_SEEDS_MAX = 4;

/** What must come up for the property to mean anything. */
const NOTEWORTHY = [
  "armed",
  "denied",
  "asked: granted",
  "asked: ABOVE_PAYMENT",
  "asked: NOT_ACTIVE",
  "asked: LIMIT_EXCEEDED",
  "asked: TOO_LATE",
  "asked: CLOSED",
  "the network stood in",
  "the record was read first",
  "a closed payment was taken back",
  "an account was dropped",
  "an account came back",
  "restored",
  "breach: agent/per_transaction",
  "breach: agent/budget",
  "breach: agent/daily_spend",
  "breach: team/cap",
  "breach: project/cap",
] as const;

const report = (authorization: string): fc.Arbitrary<RailBooks> =>
  fc.record({
    authorization: fc.constant(authorization),
    requests: fc.nat(3),
    authorizedMc: fc.nat(3),
    capturedMc: fc.nat(3),
    creditedMc: fc.nat(3),
    recalledMc: fc.nat(3),
    disputedMc: fc.nat(3),
    isOpen: fc.boolean(),
  });

const limitCents = fc.oneof(fc.integer({ min: 1, max: 20 }), fc.constantFrom(MAX_CENTS - 1, MAX_CENTS));
const POLICY = {
  autoApprovalThresholdCents: null,
  perTransactionLimitCents: null,
  dailySpendLimitCents: null,
  hourlyVelocityLimit: null,
  dailyVelocityLimit: null,
};

const own = { agentId: "agent-1", keyId: "key-1" } as const;

function ledgerOf(budgetCents: number): Ledger {
  const ledger = newLedger("org-1", "project-1");
  const policy = { ...POLICY, budgetCents };
  judge(ledger, { kind: "open_account", ...own, teamId: "team-1", name: "Agent", policy }, NOON);
  return ledger;
}

/** Pays such amounts one after the other; the amounts that were accepted. */
function accepted(ledger: Ledger, amounts: readonly number[]): number[] {
  return amounts.filter((amountMc, number) => {
    const request = {
      transactionId: `txn-${number}`,
      approvalId: `apr-${number}`,
      keyHash: `key-${number}`,
      payloadHash: "payload",
      fingerprint: `like-${number}`,
      proof: "",
      rail: "card",
      amountMc,
      currency: "USD",
      merchantCategory: null,
      recipient: "shop",
      purpose: "rounding",
    } as const;
    const pay = {
      kind: "pay",
      ...own,
      request,
      approvalWindowSeconds: 60,
      recordsCheckedThrough: 0,
    } as const;
    const reply = judge(ledger, pay, NOON);
    expect(reply.kind).to.equal("decided");
    return reply.kind === "decided" && reply.decision.denial === null;
  });
}

describe("the books of payments", function () {
  this.timeout(SECONDS * 1_000 + LAST_RUN_MS);

  it("a join of reports is commutative, associative and idempotent", () => {
    const [one, other, third] = [report("a"), report("a"), report("a")];
    fc.assert(
      fc.property(one, other, third, (a, b, c) => {
        expect(joined(a, b)).to.deep.equal(joined(b, a));
        expect(joined(joined(a, b), c)).to.deep.equal(joined(a, joined(b, c)));
        expect(joined(a, a)).to.deep.equal(a);
      }),
      { seed },
    );
  });

  it(`totals are the network's, and only it exceeds a limit, to the cent (TEST_SEED=${String(seed)})`, () => {
    const property = fc.property(booksScenes, (scene) => new BooksRun(scene).play());
    fc.assert(property, { seed, numRuns: Infinity, interruptAfterTimeLimit: SECONDS * 1_000 });
  });

  it(`amounts below a cent add up, and no limit is exceeded by rounding (TEST_SEED=${String(seed)})`, () => {
    const someMc = fc.array(fc.integer({ min: 1, max: 1_999 }), { minLength: 1, maxLength: 40 });
    const property = fc.property(limitCents, someMc, (limit, few) => {
      const amounts = [Math.max(1, mcOf(limit) - 5_000), ...few];
      let usedMc = 0;
      const isRoomFor = (mc: number): boolean => usedMc + mc <= mcOf(limit);
      const expected = amounts.filter((mc) => isRoomFor(mc) && (usedMc += mc) > 0);
      expect(accepted(ledgerOf(limit), amounts)).to.deep.equal(expected);
      expect(usedCents(usedMc)).to.be.at.most(limit);
      expect(mcOf(remainingOf(limit, usedMc)) + usedMc).to.be.at.most(mcOf(limit));
      expect(mcOf(usedCents(usedMc))).to.be.at.least(usedMc);
    });
    fc.assert(property, { seed });
    expect(Number.isSafeInteger(MAX_TOTAL_MC + MAX_MC)).to.equal(true);
  });

  it("a network's requests about one payment are answered up to a bound", () => {
    const ledger = ledgerOf(MAX_CENTS);
    accepted(ledger, [mcOf(100)]);
    const of = { agentId: own.agentId, transactionId: "txn-0" };
    const outcome = { result: { status: "pending" }, at: NOON } as const;
    judge(ledger, { kind: "confirm", ...of, revision: 0, outcome }, NOON);
    const ask = {
      kind: "authorize",
      ...of,
      authorization: "a",
      amountMc: 1,
      answerBy: NOON,
      merchant: "SHOP",
    } as const;
    const answers = Array.from({ length: REQUESTS_MAX + 1 }, (_each, position) =>
      judge(ledger, { ...ask, position }, NOON),
    ).map((reply) => (reply.kind === "authorization" ? reply.refusal : reply.kind));
    expect(answers.slice(0, -1)).to.deep.equal(Array<null>(REQUESTS_MAX).fill(null));
    expect(answers.at(-1)).to.equal("CLOSED");
  });

  it("the scenes come to everything that matters", () => {
    const seen = new Map<string, number>();
    const property = fc.property(booksScenes, (scene) => {
      const run = new BooksRun(scene);
      run.play();
      for (const [what, count] of run.tally) seen.set(what, (seen.get(what) ?? 0) + count);
    });
    const missing = (): readonly string[] => NOTEWORTHY.filter((what) => !seen.has(what));
    for (let batch = 0; batch < FIXED_SEEDS_MAX && missing().length > 0; batch += 1)
      fc.assert(property, { seed: FIXED_SEED + batch, numRuns: FIXED_RUNS });
    expect(missing()).to.deep.equal([]);
  });
});
