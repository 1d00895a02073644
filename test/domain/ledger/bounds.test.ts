import { expect } from "chai";
import { isDeepStrictEqual } from "node:util";
import type { LedgerCommand, LedgerReply } from "../../../src/domain/ledger/commands.ts";
import { judge } from "../../../src/domain/ledger/judge.ts";
import { HELD_REVISION } from "../../../src/domain/ledger/payment.ts";
import { packLedger, unpackLedger } from "../../../src/domain/ledger/pack.ts";
import { type Account, type Ledger, LEDGER_BOUNDS, newLedger } from "../../../src/domain/ledger/state.ts";
import { addClosedKey } from "../../../src/domain/ledger/closed-keys.ts";
import {
  type Counted,
  countPayment,
  countWithin,
  emptyUsage,
  inBuckets,
} from "../../../src/domain/ledger/usage.ts";
import { ledgerBytes, reweigh } from "../../../src/domain/ledger/weight.ts";
import { paymentRefused } from "../../../src/domain/ledger/capacity.ts";
import { seed } from "../../support/seed.ts";
import { shortOrSoak, someTests } from "../../support/soak.ts";
import { shownOf } from "../support/account.ts";
import { DAY, HOUR, NOON, SECOND } from "../support/actor.ts";
import { Incompressible, packedBytes } from "../support/large-ledger.ts";

/** The engine refuses a larger payload, and ends a workflow that comes with one. */
const ENGINE_BYTES_MAX = 2 * 1_024 * 1_024;
const WELL_UNDER_BYTES = 0.9 * ENGINE_BYTES_MAX;

/** As many as a project may ever have. */
const TEAMS = 2_000;
const REQUESTS_KEPT = 256;
/** Agents that pay in a full project. */
const PAYING = 1_000;
const DROPPED = shortOrSoak(1_000, 20_000);

interface Holder {
  readonly agentId: string;
  readonly keyId: string;
}

/** A project that grows as a project does: by commands, each of which is judged. */
class Project {
  readonly some = new Incompressible(seed);
  readonly ledger: Ledger = newLedger(this.some.uuid(), this.some.uuid());
  readonly teams: readonly string[];
  readonly holders: Holder[] = [];
  now = NOON;

  constructor(teams = TEAMS) {
    this.teams = Array.from({ length: teams }, () => this.some.uuid());
  }

  ask(command: LedgerCommand): LedgerReply {
    this.now += this.some.random.between(1, 20);
    const reply = judge(this.ledger, command, this.now);
    if (reply.kind === "failed") throw new Error(reply.message);
    return reply;
  }

  capTeams(): void {
    const cents = () => this.some.random.between(1e11, 1e12);
    const teams = this.teams.map((teamId) => ({ teamId, capCents: cents() }));
    const { version } = this.ledger.project.cap;
    this.ask({ kind: "replace_project", version, capCents: cents() * 1_000, teams });
  }

  open(name: string): LedgerReply {
    const holder = { agentId: this.some.uuid(), keyId: this.some.id("akey") };
    const teamId = this.some.random.pick(this.teams);
    const policy = { ...this.some.policy(), autoApprovalThresholdCents: 1_000 };
    const reply = this.ask({ kind: "open_account", teamId, name, policy, ...holder });
    if (reply.kind === "opened") this.holders.push(holder);
    return reply;
  }

  holder(place: number): Holder {
    const holder = this.holders[place % this.holders.length];
    if (holder === undefined) throw new Error("there are none");
    return holder;
  }

  /** Above 1,000 cents it is held. */
  pay(
    { agentId, keyId }: Holder,
    amountCents: number,
    characters = 10,
    approvalWindowSeconds = 86_400,
  ): { id: string; reply: LedgerReply } {
    const texts = { purpose: this.some.text(characters), recipient: this.some.text(characters, "letters") };
    const request = this.some.request(amountCents, texts);
    const pay = { kind: "pay", approvalWindowSeconds, recordsCheckedThrough: 1e9 } as const;
    return { id: request.transactionId, reply: this.ask({ ...pay, agentId, keyId, request }) };
  }

  /** The agents take turns until all are refused: the payments of each on hold, and its refusal. */
  exhaust(greedy: readonly Holder[]): { openOf: number[]; refusals: LedgerReply[] } {
    const refusals = new Map<Holder, LedgerReply>();
    while (refusals.size < greedy.length) {
      for (const each of greedy) {
        const { reply } = this.pay(each, 1_001);
        if (reply.kind === "decided") refusals.delete(each);
        else refusals.set(each, reply);
      }
    }
    const openOf = greedy.map(({ agentId }) => this.ledger.accounts.get(agentId)?.open.size ?? 0);
    return { openOf, refusals: [...refusals.values()] };
  }

  settle({ agentId }: Holder, transactionId: string): void {
    const outcome = { result: { status: "settled" }, at: this.now } as const;
    this.ask({ kind: "confirm", agentId, transactionId, revision: 99, outcome });
  }

  /** Archived for good, and all that became of it is in the records. */
  drop({ agentId }: Holder): void {
    this.ask({ kind: "follow_agent", agentId, revision: 1e6, name: "Gone", keyId: null, isArchived: true });
    const revision = this.ledger.accounts.get(agentId)?.revision ?? 0;
    this.ask({ kind: "confirm_records", records: [{ agentId, revision }] });
  }

  answerRequests(count: number): void {
    for (let request = 0; request < count; request += 1) {
      const { agentId } = this.holder(request);
      const { policyVersion: version = 0 } = this.ledger.accounts.get(agentId) ?? {};
      const requestId = this.some.uuid();
      this.ask({ kind: "change_policy", agentId, patch: this.some.policy(), version, requestId });
    }
  }

  expectToFit(what: string): void {
    const bytes = packedBytes(this.ledger, this.now);
    process.stdout.write(`      ${what}: ${Math.round(bytes / 1_024)} KiB\n`);
    expect(bytes, what).to.be.below(WELL_UNDER_BYTES);
  }
}

describe("how much a ledger holds", function () {
  this.timeout(300_000);

  const project = new Project();
  const { ledger } = project;

  it(`10,000 accounts in 2,000 capped teams fit; no more are opened (TEST_SEED=${seed})`, () => {
    project.capTeams();
    project.capTeams();
    for (let account = 0; account < LEDGER_BOUNDS.accounts; account += 1) {
      expect(project.open(`Agent ${account}`).kind).to.equal("opened");
    }
    expect(project.open("One more")).to.deep.equal({ kind: "project_full", bound: "accounts" });
    project.expectToFit("idle");
  });

  it("thousands that were archived and dropped leave nothing but their number", () => {
    const before = packedBytes(ledger, project.now);
    for (let dropped = 0; dropped < DROPPED; dropped += 1) {
      project.drop(project.holder(0));
      project.holders.shift();
      expect(project.open(`Agent ${dropped}`).kind).to.equal("opened");
    }
    expect(ledger.accounts.size).to.equal(LEDGER_BOUNDS.accounts);
    expect(ledger.droppedAccounts).to.equal(DROPPED);
    expect(packedBytes(ledger, project.now) - before).to.be.below(before / 50);
  });

  it("with a tenth of them busy, all keys remembered and all first answers kept, it fits", () => {
    const busy = LEDGER_BOUNDS.accounts / 10;
    for (let payment = 0; payment < 10 * busy; payment += 1) {
      const holder = project.holder(payment % busy);
      const { id, reply } = project.pay(holder, 1_000);
      expect(reply.kind).to.equal("decided");
      project.settle(holder, id);
    }
    project.answerRequests(2 * REQUESTS_KEPT);
    expect(ledger.keys.count).to.be.within(0.9 * LEDGER_BOUNDS.closedKeys, LEDGER_BOUNDS.closedKeys);
    expect(ledger.replies.size).to.equal(REQUESTS_KEPT);
    project.expectToFit("a tenth busy");
  });

  it("payments with the longest texts are accepted until they would not fit, and then refused", () => {
    let [accepted, refusedOnes] = [0, 0];
    const held: (readonly [holder: Holder, id: string])[] = [];
    while (refusedOnes === 0) {
      const holder = project.holder(LEDGER_BOUNDS.accounts / 2 + accepted);
      const { id, reply } = project.pay(holder, 1_001, 200);
      if (reply.kind === "decided") held.push([holder, id]);
      else expect(reply).to.include({ kind: "too_many_open", of: "project", bound: "bytes" });
      if (reply.kind === "decided") accepted += 1;
      else refusedOnes += 1;
    }
    process.stdout.write(`      ${accepted} on hold with the longest texts\n`);
    expect(project.open("One more").kind).to.equal("project_full");
    project.expectToFit("full");
    let denied = 0;
    for (const [{ agentId }, transactionId] of held) {
      const by = { userId: project.some.uuid(), name: project.some.text(100) };
      const feedback = project.some.text(1_000);
      const reply = project.ask({
        kind: "deny",
        agentId,
        transactionId,
        by,
        feedback,
        proof: project.some.proof(),
      });
      if (reply.kind === "payment") denied += 1;
      else expect(reply).to.include({ kind: "too_many_open", of: "project", bound: "bytes" });
    }
    process.stdout.write(`      ${denied} denied with the longest feedback\n`);
    expect(denied).to.be.within(1, held.length - 1);
    project.expectToFit("full, and denied");
  });

  it("what has no room is cancelled, expired or settled all the same; then there is room again", () => {
    const open = [...ledger.accounts.values()].flatMap((account) =>
      [...account.open.values()].map(
        ({ payment }) => [account.agentId, payment.request.transactionId] as const,
      ),
    );
    for (const [agentId, transactionId] of open) {
      project.ask({ kind: "cancel", agentId, transactionId });
    }
    project.expectToFit("all cancelled");
    for (const [agentId, transactionId] of open) {
      project.ask({ kind: "confirm", agentId, transactionId, revision: 99, outcome: null });
    }
    expect(ledger.openPayments).to.equal(0);
    expect(project.pay(project.holder(0), 1_000, 200).reply.kind).to.equal("decided");
  });

  it("a roll-over of all of it brings back what there was", () => {
    project.now += 10 * SECOND;
    const packed = packLedger(ledger, project.now);
    const carried: typeof packed = JSON.parse(JSON.stringify(packed));
    const again = shownOf(unpackLedger(carried));
    const { accounts: _accounts, keys: _keys, weighedAt: _at, weightBytes: _bytes, ...rest } = again;
    const { accounts, keys, weighedAt: _then, weightBytes: _before, ...expected } = shownOf(ledger);
    expect(isDeepStrictEqual(rest, expected)).to.equal(true);
    expect([again.accounts.size, again.keys.count]).to.deep.equal([accounts.size, keys.count]);
    expect(isDeepStrictEqual(again.keys.byAgent, keys.byAgent)).to.equal(true);
  });

  someTests(1, {
    "2,000 payments with ordinary texts are open at once, and the next one is refused": () => {
      const young = new Project();
      for (let account = 0; account <= LEDGER_BOUNDS.openOfProject; account += 1)
        young.open(`Agent ${account}`);
      for (let open = 0; open < LEDGER_BOUNDS.openOfProject; open += 1) {
        expect(young.pay(young.holder(open), 1_001, 20).reply.kind).to.equal("decided");
      }
      const { reply } = young.pay(young.holder(LEDGER_BOUNDS.openOfProject), 1_001, 20);
      expect(reply).to.include({ kind: "too_many_open", of: "project", bound: "payments" });
      young.expectToFit("2,000 open");
    },
    "ten greedy agents leave room for others, and are told of the first end in the project": () => {
      const shared = new Project();
      for (let account = 0; account < 12; account += 1) shared.open(`Agent ${account}`);
      const [early, other, ...greedy] = shared.holders;
      if (early === undefined || other === undefined) throw new Error("there are twelve");
      expect(shared.pay(early, 1_001, 10, 60).reply.kind).to.equal("decided");
      const endsBy = shared.now + 60 * SECOND;
      const { openOf, refusals } = shared.exhaust(greedy);
      for (const open of openOf) expect(open).to.be.within(142, 143);
      for (const refusal of refusals) {
        expect(refusal).to.deep.equal({
          kind: "too_many_open",
          of: "agent",
          bound: "payments",
          freesAt: endsBy,
        });
      }
      expect(shared.pay(other, 1_001).reply.kind).to.equal("decided");
    },
    "a hundred agents that fill up one after another leave a tenth for others": () => {
      const shared = new Project();
      for (let account = 0; account < 101; account += 1) shared.open(`Agent ${account}`);
      const [other, ...greedy] = shared.holders;
      if (other === undefined) throw new Error("there are more");
      for (const each of greedy) shared.exhaust([each]);
      const { openPayments } = shared.ledger;
      expect(openPayments).to.be.within(
        0.9 * LEDGER_BOUNDS.openOfProject,
        0.95 * LEDGER_BOUNDS.openOfProject,
      );
      expect(shared.pay(other, 1_001).reply.kind).to.equal("decided");
    },
    "in a project of many agents ten greedy ones leave others bytes for their payments": () => {
      const large = new Project();
      while (large.open("x".repeat(100)).kind === "opened");
      const [other, ...rest] = large.holders;
      if (other === undefined) throw new Error("there are more");
      for (const each of rest.slice(0, 10)) {
        const { refusals } = large.exhaust([each]);
        expect(refusals[0]).to.include({ kind: "too_many_open", of: "agent" });
      }
      expect(large.pay(other, 1_001, 10).reply.kind).to.equal("decided");
    },
  });

  it("10,000 agents that each paid 100 times a day for 60 days take less than 1.5 MB and pay on", () => {
    const large = new Project();
    for (let account = 0; account < LEDGER_BOUNDS.accounts; account += 1) large.open(`Agent ${account}`);
    payForMonths(large);
    expectAllToPay(large);
    const bytes = packedBytes(large.ledger, large.now);
    process.stdout.write(
      `      10,000 that paid: ${Math.round(bytes / 1_000)} kB, weighed ${Math.round(ledgerBytes(large.ledger) / 1_000)} kB\n`,
    );
    expect(bytes).to.be.below(1_500_000);
    expect(ledgerBytes(large.ledger)).to.be.within(bytes, 1.5 * bytes);
  });

  for (const [letters, teams, least] of [
    [18, TEAMS, 9_500],
    [54, TEAMS / 2, 7_500],
    [100, 1, 5_500],
  ] as const) {
    it(`agents with names of ${letters} letters, opened until refused in ${teams} teams, pay for ever`, () => {
      const large = new Project(teams);
      large.capTeams();
      const name = (): string => large.some.text(letters, "letters");
      while (large.open(name()).kind === "opened");
      process.stdout.write(`      ${large.holders.length} agents with names of ${letters} letters\n`);
      expect(large.holders.length).to.be.within(least, LEDGER_BOUNDS.accounts);
      large.answerRequests(REQUESTS_KEPT);
      payForMonths(large);
      expectAllToPay(large);
      large.expectToFit("after 60 days");
    });
  }

  it("counts alone never fill a ledger, which counts too long before it refuses, never too short", () => {
    const hot = new Project();
    hot.capTeams();
    while (hot.open(hot.some.text(18, "letters")).kind === "opened");
    const counts = payForMonths(hot, { perDay: 300, windowsMs: [DAY, 7 * DAY, 31 * DAY], mostMc: 999 });
    expectAllToPay(hot);
    const [account] = ledgerAccounts(hot);
    if (account === undefined) throw new Error("there are thousands");
    expect(account.usage.counts.length).to.be.below(counts.length / 2);
    for (const windowMs of [HOUR, DAY, 7 * DAY]) {
      const counted = countWithin(account.usage, windowMs, hot.now);
      expect(counted).to.be.at.least(countWithin({ counts }, windowMs, hot.now));
      expect(counted).to.be.at.most(countWithin({ counts }, 1.5 * windowMs, hot.now));
    }
    hot.expectToFit("hot");
    const again = unpackLedger(packLedger(hot.ledger, hot.now)).accounts.get(account.agentId)?.usage;
    expect(again?.counts).to.deep.equal(inBuckets(account.usage, hot.now));
    expect(again?.coarser).to.equal(account.usage.coarser).and.to.be.above(1);
  });

  it("an agent whose payments have long texts is refused alone, and told what frees it", () => {
    const shared = new Project();
    for (let account = 0; account < 10; account += 1) shared.open(`Agent ${account}`);
    const [greedy, other] = [shared.holder(0), shared.holder(1)];
    let reply: LedgerReply | null = null;
    let accepted = 0;
    while (reply === null) {
      const { reply: each } = shared.pay(greedy, 1_001, 500);
      if (each.kind === "decided") accepted += 1;
      else reply = each;
    }
    expect(reply).to.include({ kind: "too_many_open", of: "agent", bound: "bytes" });
    expect(reply)
      .to.have.property("freesAt")
      .that.is.within(shared.now + 86_000_000, shared.now + 86_400_000);
    expect(accepted).to.be.within(40, LEDGER_BOUNDS.openOfAgent - 1);
    expect(ledgerBytes(shared.ledger)).to.be.below(LEDGER_BOUNDS.paidBelowBytes / 10);
    expect(shared.pay(other, 1_001, 500).reply.kind).to.equal("decided");
  });

  it("payments on hold with long texts weigh little once they are recorded", () => {
    const shared = new Project();
    for (let account = 0; account < 3; account += 1) shared.open(`Agent ${account}`);
    const before = ledgerBytes(shared.ledger);
    for (let payment = 0; payment < 2 * LEDGER_BOUNDS.openOfAgent; payment += 1) {
      const { agentId } = shared.holder(payment % 2);
      const { id, reply } = shared.pay(shared.holder(payment % 2), 1_001, 500);
      expect(reply.kind).to.equal("decided");
      shared.ask({ kind: "confirm", agentId, transactionId: id, revision: HELD_REVISION, outcome: null });
    }
    expect(shared.ledger.openPayments).to.equal(2 * LEDGER_BOUNDS.openOfAgent);
    expect(ledgerBytes(shared.ledger) - before).to.be.below(2 * LEDGER_BOUNDS.openOfAgent * 500);
    shared.expectToFit("400 on hold");
  });

  it("counts that nothing read are carried over as they are, for a day", () => {
    const idle = new Project();
    idle.open("Agent");
    for (const { usage } of ledgerAccounts(idle))
      for (let payment = 0; payment < 200; payment += 1) countPayment(usage, idle.now + payment * 60_000);
    const packedAt = idle.now + 200 * 60_000;
    const packed = packLedger(idle.ledger, packedAt);
    const later = packLedger(unpackLedger(packed), packedAt + DAY - 1);
    expect(later.counts).to.equal(packed.counts).and.not.to.equal("");
    expect(countsIn(unpackLedger(later))).to.deep.equal(countsIn(unpackLedger(packed)));
    expect(packLedger(unpackLedger(later), packedAt + DAY).counts).not.to.equal(packed.counts);
    expect(packLedger(unpackLedger(later), packedAt + 40 * DAY).counts).to.equal("");
    const changed = unpackLedger(later);
    for (const { usage } of changed.accounts.values()) countPayment(usage, packedAt + DAY);
    const [counts = []] = countsIn(unpackLedger(packLedger(changed, packedAt + DAY)));
    expect(counts.reduce((sum, [, count]) => sum + count, 0)).to.equal(201);
  });

  it("what has expired frees room by itself: a full ledger is weighed anew before it refuses", () => {
    const idle = new Project();
    idle.open("Agent");
    for (const account of ledgerAccounts(idle)) {
      for (let payment = 0; payment < 200; payment += 1)
        countPayment(account.usage, idle.now + payment * 60_000);
    }
    reweigh(idle.ledger, idle.now);
    const { weightBytes } = idle.ledger;
    const bounds = { ...LEDGER_BOUNDS, paidBelowBytes: ledgerBytes(idle.ledger) };
    const full: Ledger = { ...idle.ledger, bounds };
    const [account] = full.accounts.values();
    if (account === undefined) throw new Error("there is one");
    const refusal = { kind: "too_many_open", of: "project", bound: "bytes", freesAt: null };
    expect(paymentRefused(full, account, idle.now)).to.deep.equal(refusal);
    expect(paymentRefused(full, account, idle.now + 40 * DAY)).to.equal(null);
    expect(full.weightBytes).to.be.below(weightBytes);
  });
});

/** Accounts and keys become as they are after 60 days of so many payments a day. Returns the first one's counts. */
function payForMonths(
  project: Project,
  { mostMc = 0, perDay = 100, windowsMs = [] as readonly number[] } = {},
): readonly Counted[] {
  const { random } = project.some;
  const began = project.now;
  project.now = began + 60 * DAY;
  // As many histories as take their time to make; the rest are those of others, with counts of their own.
  const histories = Array.from({ length: Math.ceil(1_000 / perDay) }, () => {
    const usage = emptyUsage();
    let payments = 0;
    for (let at = began; at < project.now; at += random.between(1, (2 * DAY) / perDay)) {
      payments += 1;
      if (at > began + 28 * DAY) countPayment(usage, at, windowsMs);
    }
    return { ...usage, payments };
  });
  const mc = (mostCents: number): number => random.between(1, mostCents) * 1_000 + random.between(0, mostMc);
  for (const account of ledgerAccounts(project)) {
    const { payments, ...usage } = random.pick(histories);
    const counts = usage.counts.map(
      ([at, count]) => [at, Math.max(1, count + random.between(-1, 1))] as const,
    );
    const [day, month] = [mc(1_000), mc(30_000)];
    const week = day + mc(6_000);
    account.usage = {
      ...usage,
      counts,
      spentMc: 2 * month,
      day: { ...usage.day, amountMc: day },
      windows: { at: project.now, mc: [day, week, week + month, week + 2 * month, week + 2 * month] },
    };
    Object.assign(account, { sequence: payments, closed: payments, evictedThrough: payments - 1 });
    Object.assign(account, { revision: 2 * payments, confirmedRevision: 2 * payments });
    account.updatedAt = project.now - random.between(1, DAY);
  }
  for (let key = 0; key < LEDGER_BOUNDS.closedKeys; key += 1) {
    const { agentId } = project.holder(key);
    const closedAs = project.ledger.accounts.get(agentId)?.closed ?? 0;
    const closed = [closedAs, project.now - key, project.some.hash(), 3] as const;
    const closing = { agentId, keyHash: project.some.hash(), key: closed };
    addClosedKey(project.ledger.keys, closing, LEDGER_BOUNDS.closedKeys);
  }
  const [counts = []] = countsIn(project.ledger);
  reweigh(project.ledger, project.now);
  project.ask({ kind: "confirm_records", records: [] });
  // Another minute has to pass before a ledger is weighed again.
  project.now += 60 * SECOND;
  return counts;
}

/** One agent after the other pays, and each tenth payment stays on hold. */
function expectAllToPay(project: Project): void {
  for (let payment = 0; payment < PAYING; payment += 1) {
    const holder = project.holder(payment);
    const isHeld = payment % 10 === 0;
    const { id, reply } = project.pay(holder, isHeld ? 1_001 : 1_000);
    expect(reply.kind).to.equal("decided");
    if (!isHeld) project.settle(holder, id);
  }
}

const countsIn = (ledger: Ledger) => [...ledger.accounts.values()].map(({ usage }) => usage.counts);

const ledgerAccounts = ({ ledger }: Project): Iterable<Account> => ledger.accounts.values();
