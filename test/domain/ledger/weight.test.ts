import { expect } from "chai";
import * as fc from "fast-check";
import { AUTHORIZATIONS_MAX } from "../../../src/domain/ledger/books.ts";
import { judge } from "../../../src/domain/ledger/judge.ts";
import { NO_RAISE_BASIS, raiseBasis } from "../../../src/domain/ledger/raises.ts";
import { type Ledger, LEDGER_BOUNDS, levelOf, newLedger } from "../../../src/domain/ledger/state.ts";
import { ledgerBytes } from "../../../src/domain/ledger/weight.ts";
import type { LedgerReply } from "../../../src/domain/ledger/commands.ts";
import { seed } from "../../support/seed.ts";
import { shortOrSoak } from "../../support/soak.ts";
import { DAY, MINUTE, NOON, openPolicy } from "../support/actor.ts";
import { Incompressible, packedBytes } from "../support/large-ledger.ts";

const SCRIPTS = ["letters", "three bytes", "pairs"] as const;

/** Some accounts, each with so many payments that were settled, and that are open, with texts of these lengths. */
const mixtures = fc.record({
  seed: fc.nat(),
  accounts: fc.integer({ min: 1, max: 60 }),
  settled: fc.nat(30),
  open: fc.nat(6),
  name: fc.constantFrom(1, 20, 200),
  texts: fc.constantFrom(0, 2, 20, 500),
  script: fc.constantFrom(...SCRIPTS),
  isDenied: fc.boolean(),
  /** Reports of the network on each open payment. */
  reports: fc.constantFrom(0, 0, 0, 1, 5, 20),
  isPaused: fc.boolean(),
  /** Raises that were granted for each account, of all its levels. */
  raises: fc.constantFrom(0, 0, 1, 8),
});
type Mixture = typeof mixtures extends fc.Arbitrary<infer M> ? M : never;

function ledgerOf(mixture: Mixture): { ledger: Ledger; now: number } {
  const some = new Incompressible(mixture.seed);
  const { script } = mixture;
  const text = (length: number): string => some.text(length, script);
  // No keys: those are bounded by their number.
  const ledger = newLedger(some.uuid(), some.uuid(), { ...LEDGER_BOUNDS, closedKeys: 0 });
  let now = NOON;
  const ask = (command: Parameters<typeof judge>[1]): LedgerReply => {
    now += some.random.between(1, MINUTE);
    const reply = judge(ledger, command, now);
    if (reply.kind === "failed") throw new Error(reply.message);
    return reply;
  };
  const amountMc = (): number => some.random.between(1, 1_000_000_000);
  const report = (agentId: string, transactionId: string): void => {
    const ids = Array.from({ length: AUTHORIZATIONS_MAX }, () => some.id("auth"));
    let sums = { capturedMc: 0, creditedMc: 0, recalledMc: 0, disputedMc: 0 };
    for (let requests = 1; requests <= mixture.reports; requests += 1) {
      const { capturedMc, creditedMc, disputedMc, recalledMc } = sums;
      sums = {
        capturedMc: capturedMc + amountMc(),
        creditedMc: creditedMc + amountMc(),
        recalledMc: recalledMc + amountMc(),
        disputedMc: disputedMc + amountMc(),
      };
      const authorization = ids[requests % ids.length] ?? "";
      const books = [{ authorization, requests, authorizedMc: amountMc(), ...sums, isOpen: true }];
      ask({ kind: "book", agentId, transactionId, books, recordsCheckedThrough: 0 });
    }
  };
  const teamId = some.uuid();
  const raise = (agentId: string): void => {
    const spendLimits = [{ period: "month", limitCents: 1 }] as const;
    for (let raised = 0; raised < mixture.raises; raised += 1) {
      const version = ledger.accounts.get(agentId)?.policyVersion ?? 0;
      if (raised === 0) ask({ kind: "change_policy", agentId, version, patch: { spendLimits } });
      const cap = { capCents: null, version: levelOf(ledger, teamId).cap.version, agents: [] };
      if (raised === 0) ask({ kind: "replace_team", teamId, ...cap, spendLimits });
      const raisedMc = 1_000_000_000_000 * (raised + 1) + amountMc();
      const endsAt = now + some.random.between(DAY, 20 * DAY);
      const account = ledger.accounts.get(agentId);
      const basis = account === undefined ? NO_RAISE_BASIS : raiseBasis(ledger, account);
      ask({ kind: "grant_raise", agentId, raiseId: some.uuid(), amountMc: raisedMc, endsAt, basis });
    }
  };
  for (let account = 0; account < mixture.accounts; account += 1) {
    const [agentId, keyId] = [some.uuid(), some.id("akey")];
    const policy = { ...openPolicy, ...some.policy(), autoApprovalThresholdCents: 0 };
    ask({ kind: "open_account", agentId, teamId, keyId, name: text(mixture.name), policy });
    const pay = {
      kind: "pay",
      agentId,
      keyId,
      approvalWindowSeconds: 86_400,
      recordsCheckedThrough: 1e9,
    } as const;
    for (let payment = 0; payment < mixture.settled + mixture.open; payment += 1) {
      const texts = { purpose: text(mixture.texts), recipient: text(Math.ceil(mixture.texts / 5) * 2) };
      const request = some.request(some.random.between(1, 1_000_000), texts);
      const { transactionId } = request;
      const rules = { checks: [{ type: "rail" }, { type: "new_recipient" }] } as const;
      ask({ ...pay, request, rules });
      const by = { userId: some.uuid(), name: text(Math.ceil(mixture.texts / 4) * 2) };
      const [proof, feedback] = [some.proof(), text(2 * mixture.texts)];
      const isEnded = payment < mixture.settled || mixture.isDenied;
      if (isEnded) ask({ kind: "deny", agentId, transactionId, by, feedback, proof });
      else if (mixture.reports > 0) {
        ask({ kind: "approve", agentId, transactionId, by, proof });
        report(agentId, transactionId);
      }
      if (payment < mixture.settled)
        ask({ kind: "confirm", agentId, transactionId, revision: 99, outcome: null });
    }
    if (mixture.isPaused) ask({ kind: "pause", agentId });
    raise(agentId);
  }
  return { ledger, now };
}

describe("the weight of a ledger", () => {
  it(`is never less than what it takes packed and compressed (TEST_SEED=${seed})`, () => {
    let closest = 0;
    const property = fc.property(mixtures, (mixture) => {
      const { ledger, now } = ledgerOf(mixture);
      const bytes = packedBytes(ledger, now);
      closest = Math.max(closest, bytes / ledgerBytes(ledger));
      expect(bytes).to.be.at.most(ledgerBytes(ledger));
    });
    fc.assert(property, { seed, numRuns: shortOrSoak(20, 300) });
    expect(closest, "an estimate that is no use").to.be.above(0.6);
  }).timeout(120_000);
});
