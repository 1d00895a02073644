import { mcOf } from "../../src/domain/money.ts";
import { expect } from "chai";
import * as fc from "fast-check";
import { packLedger, unpackLedger } from "../../src/domain/ledger/pack.ts";
import { raiseBasis } from "../../src/domain/ledger/raises.ts";
import { countPayment, countWithin, emptyUsage, inBuckets } from "../../src/domain/ledger/usage.ts";
import { seed } from "../support/seed.ts";
import { shortOrSoak } from "../support/soak.ts";
import { TestAccount } from "./support/account.ts";
import { DAY, HOUR, MINUTE, NOON, profile, SECOND } from "./support/actor.ts";

const MIDNIGHT = NOON + 12 * HOUR;

describe("the UTC day", () => {
  it("its spend and count begin anew at midnight UTC, not a millisecond before", () => {
    const account = new TestAccount({ dailySpendLimitCents: 100, dailyVelocityLimit: 1 }, NOON);
    account.paid(100);
    account.now = MIDNIGHT - 1;
    expect(account.pay(1).denial?.code).to.equal("DAILY_SPEND_LIMIT_EXCEEDED");
    account.now = MIDNIGHT;
    expect(account.pay(100).denial).to.equal(null);
    expect(account.pay(0).denial?.code).to.equal("DAILY_VELOCITY_EXCEEDED");
  });

  it("a payment of the last millisecond counts on the day that ends", () => {
    const account = new TestAccount({ dailyVelocityLimit: 1 }, MIDNIGHT - 1);
    expect(account.pay(1).day).to.equal("2026-05-13");
    account.now = MIDNIGHT;
    expect(account.pay(1).day).to.equal("2026-05-14");
  });

  const turns: readonly [string, number, string, string][] = [
    [
      "29 February of a leap year is a day of its own",
      Date.UTC(2028, 1, 28, 23, 59),
      "2028-02-28",
      "2028-02-29",
    ],
    ["after 29 February comes 1 March", Date.UTC(2028, 1, 29, 23, 59), "2028-02-29", "2028-03-01"],
    [
      "without a leap day 28 February is followed by 1 March",
      Date.UTC(2027, 1, 28, 23, 59),
      "2027-02-28",
      "2027-03-01",
    ],
    ["the year turns at midnight UTC", Date.UTC(2026, 11, 31, 23, 59), "2026-12-31", "2027-01-01"],
    ["the spring change of clocks moves nothing", Date.UTC(2026, 2, 29, 23, 59), "2026-03-29", "2026-03-30"],
  ];
  for (const [guarantee, start, first, second] of turns) {
    it(guarantee, () => {
      const account = new TestAccount({ dailySpendLimitCents: 100 }, start);
      expect(account.paid(100).day).to.equal(first);
      expect(account.pay(1).denial?.details?.resetsAt).to.equal(start + MINUTE);
      account.now = start + MINUTE;
      const next = account.pay(100);
      expect([next.denial, next.day]).to.deep.equal([null, second]);
    });
  }

  it("a clock that goes back over midnight lifts no limit: payments count on the new day", () => {
    const account = new TestAccount({ dailySpendLimitCents: 100, dailyVelocityLimit: 2 }, MIDNIGHT);
    account.paid(60);
    account.now = MIDNIGHT - HOUR;
    expect(account.paid(40).day).to.equal("2026-05-14");
    for (const now of [MIDNIGHT - HOUR, MIDNIGHT, MIDNIGHT + DAY - 1]) {
      account.now = now;
      for (const [cents, code] of [
        [1, "DAILY_SPEND_LIMIT_EXCEEDED"],
        [0, "DAILY_VELOCITY_EXCEEDED"],
      ] as const) {
        const { denial } = account.pay(cents);
        expect([denial?.code, denial?.details?.resetsAt]).to.deep.equal([code, MIDNIGHT + DAY]);
      }
    }
    account.now = MIDNIGHT + DAY;
    expect(account.pay(100).denial).to.equal(null);
  });

  it("a roll-over keeps an increase until its end is counted, whatever the clock says", () => {
    const account = new TestAccount({ dailySpendLimitCents: 100 }, MIDNIGHT - HOUR);
    account.paid(100);
    const grant = { kind: "grant_raise", raiseId: "raise", amountMc: mcOf(50), endsAt: MIDNIGHT } as const;
    account.as("raised", account.do({ ...grant, basis: raiseBasis(account.ledger, account.state) }));
    const { increases } = account.state.policy;
    const rolledOver = unpackLedger(packLedger(account.ledger, MIDNIGHT + SECOND));
    expect(increases).to.have.lengthOf(1);
    expect(rolledOver.accounts.get(profile.agentId)?.policy.increases).to.deep.equal(increases);
    account.now = MIDNIGHT;
    account.paid(1);
    const next = unpackLedger(packLedger(account.ledger, MIDNIGHT + SECOND));
    expect(next.accounts.get(profile.agentId)?.policy.increases).to.equal(undefined);
  });

  it("what settles after midnight still counts on the day it was reserved", () => {
    const account = new TestAccount({ dailySpendLimitCents: 100 }, MIDNIGHT - 1);
    const { request } = account.pay(100);
    account.now = MIDNIGHT + 1;
    account.settle(request.transactionId);
    expect(account.totals()).to.include({ spent: 100 });
    expect(account.pay(100).denial).to.equal(null);
  });

  it("what fails after midnight gives nothing to the day that began", () => {
    const account = new TestAccount({ dailySpendLimitCents: 100 }, MIDNIGHT - 1);
    const { request } = account.pay(100);
    account.now = MIDNIGHT;
    account.paid(60);
    account.settle(request.transactionId, { status: "failed", code: "CARD_DECLINED", reason: "Declined." });
    expect(account.totals()).to.deep.equal({ spent: 60, reserved: 0, today: 60, count: 1 });
    expect(account.pay(41).denial?.code).to.equal("DAILY_SPEND_LIMIT_EXCEEDED");
  });

  it("what fails on its day drops out of the day's spend and stays in the counts", () => {
    const account = new TestAccount({ dailySpendLimitCents: 100, dailyVelocityLimit: 2 });
    account.paid(100, { status: "failed", code: "CARD_DECLINED", reason: "Declined." });
    expect(account.totals()).to.deep.equal({ spent: 0, reserved: 0, today: 0, count: 1 });
    expect(account.pay(100).denial).to.equal(null);
    expect(account.pay(0).denial?.code).to.equal("DAILY_VELOCITY_EXCEEDED");
  });
});

describe("a reversal", () => {
  it("on the same UTC day gives back to the budget and to the day's spend, not to the counts", () => {
    const account = new TestAccount({ budgetCents: 100, dailySpendLimitCents: 100, dailyVelocityLimit: 2 });
    const { request } = account.paid(100);
    expect(account.totals()).to.deep.equal({ spent: 100, reserved: 0, today: 100, count: 1 });
    account.network(request.transactionId, { creditedMc: mcOf(100) });
    expect(account.totals()).to.deep.equal({ spent: 0, reserved: 0, today: 0, count: 1 });
    expect(account.pay(100).denial).to.equal(null);
  });

  it("on a later UTC day gives the amount back to the budget only", () => {
    const account = new TestAccount({ budgetCents: 200 }, MIDNIGHT - MINUTE);
    const { request } = account.paid(100);
    account.now = MIDNIGHT + MINUTE;
    account.paid(60);
    account.network(request.transactionId, { creditedMc: mcOf(100) });
    expect(account.totals()).to.deep.equal({ spent: 60, reserved: 0, today: 60, count: 1 });
  });

  it("of a payment that was approved on a later day belongs to the day of approval", () => {
    const account = new TestAccount({ autoApprovalThresholdCents: 0 }, MIDNIGHT - MINUTE);
    const { request } = account.pay(100);
    account.now = MIDNIGHT + MINUTE;
    account.resolve("approve", request.transactionId);
    account.settle(request.transactionId);
    expect(account.totals()).to.include({ spent: 100, today: 100 });
    account.network(request.transactionId, { creditedMc: mcOf(100) });
    expect(account.totals()).to.include({ spent: 0, today: 0 });
  });
});

describe("the rolling hour", () => {
  it("a payment exactly 3,600,000 ms old has left it; one a millisecond younger has not", () => {
    const account = new TestAccount({ hourlyVelocityLimit: 1 });
    account.paid(1);
    account.now = NOON + HOUR - 1;
    const denied = account.pay(1);
    expect(denied.denial?.code).to.equal("HOURLY_VELOCITY_EXCEEDED");
    expect(denied.denial?.details?.resetsAt).to.equal(NOON + HOUR);
    account.now = NOON + HOUR;
    expect(account.pay(1).denial).to.equal(null);
  });

  it("rolls over midnight: yesterday's last payments still count in it", () => {
    const account = new TestAccount({ hourlyVelocityLimit: 1, dailyVelocityLimit: 1 }, MIDNIGHT - MINUTE);
    account.paid(1);
    account.now = MIDNIGHT + MINUTE;
    expect(account.pay(1).denial?.code).to.equal("HOURLY_VELOCITY_EXCEEDED");
  });

  it("each denied payment leaves it as it was, so that trying does not lengthen the wait", () => {
    const account = new TestAccount({ hourlyVelocityLimit: 1 });
    account.paid(1);
    for (let minute = 1; minute < 60; minute += 1) {
      account.now = NOON + minute * MINUTE;
      expect(account.pay(1).denial?.details?.resetsAt).to.equal(NOON + HOUR);
    }
    account.now = NOON + HOUR;
    expect(account.pay(1).denial).to.equal(null);
  });

  it("under a high limit it never counts too few (5,000 payments), and at most 4 % too long", () => {
    const account = new TestAccount({ hourlyVelocityLimit: 5_000 });
    for (let payment = 0; payment < 4_990; payment += 1) {
      account.now += 500;
      countPayment(account.state.usage, account.now);
    }
    for (let payment = 0; payment < 10; payment += 1) {
      account.now += 500;
      expect(account.paid(0).denial).to.equal(null);
    }
    expect(account.pay(0).denial?.code).to.equal("HOURLY_VELOCITY_EXCEEDED");
    expect(account.state.usage.counts.length).to.be.below(300);
    account.now += 1.04 * HOUR;
    expect(account.pay(0).denial).to.equal(null);
  });

  it("a payment counts for 31 days, the longest window of a rule, and not a millisecond longer", () => {
    const usage = emptyUsage();
    countPayment(usage, NOON);
    expect(countWithin(usage, 31 * DAY, NOON + 31 * DAY - 1)).to.equal(1);
    expect(inBuckets(usage, NOON + 31 * DAY - 1)).to.have.length(1);
    expect(inBuckets(usage, NOON + 31 * DAY)).to.deep.equal([]);
  });

  it("on approval a payment does not count against itself, whatever bucket it is in by then", () => {
    const account = new TestAccount({ hourlyVelocityLimit: 30, autoApprovalThresholdCents: 5 });
    account.now += 20 * SECOND;
    const { request } = account.pay(6);
    for (let later = 0; later < 29; later += 1) {
      account.now += 2 * MINUTE;
      account.paid(1);
    }
    account.now = NOON + 20 * SECOND + HOUR;
    expect(account.resolve("approve", request.transactionId).payment.denial).to.equal(null);
  });

  const windowsMs = [MINUTE, 10 * MINUTE, HOUR, 2 * HOUR, DAY, 7 * DAY, 31 * DAY];
  const histories = fc.record({
    /** Gaps between payments, about as long as the scale, from a millisecond to a day. */
    scaleMs: fc.integer({ min: 0, max: 27 }).map((bits) => 2 ** bits),
    gaps: fc.array(fc.double({ min: 0, max: 2, noNaN: true }), { minLength: 1, maxLength: 400, size: "max" }),
    inForce: fc.subarray(windowsMs.filter((windowMs) => windowMs > HOUR)),
    idleMs: fc.constantFrom(0, 1, MINUTE, HOUR, DAY, 30 * DAY),
    /** From the middle on. */
    coarser: fc.constantFrom(1, 1, 2, 16),
  });

  it(`counts never fewer than there were, and at most one bucket more (TEST_SEED=${seed})`, () => {
    fc.assert(
      fc.property(histories, ({ coarser, gaps, idleMs, inForce, scaleMs }) => {
        const usage = emptyUsage();
        const made: number[] = [];
        let now = NOON;
        for (const gap of gaps) {
          now += Math.round(gap * scaleMs);
          made.push(now);
          countPayment(usage, now, inForce, made.length < gaps.length / 2 ? 1 : coarser);
        }
        for (const at of [now, now + idleMs]) {
          usage.counts = inBuckets(usage, at);
          for (const windowMs of windowsMs) {
            const within = (ms: number): number => made.filter((each) => each > at - ms).length;
            const isInForce = windowMs <= HOUR || inForce.includes(windowMs);
            const longest = windowMs * (1 + Math.min(1, coarser * (isInForce ? 1 / 32 : 1 / 4)));
            expect(countWithin(usage, windowMs, at)).to.be.within(within(windowMs), within(longest));
          }
        }
      }),
      { seed, numRuns: shortOrSoak(60, 2_000) },
    );
  });

  it("keeps a bounded number of counts, whatever is paid: below 500", () => {
    const usage = emptyUsage();
    let now = NOON;
    for (let payment = 0; payment < 40_000; payment += 1) {
      now += payment < 20_000 ? 2 * MINUTE : 50;
      countPayment(usage, now, [DAY]);
    }
    expect(usage.counts.length).to.be.below(500);
    expect(inBuckets(usage, now + 40 * DAY)).to.deep.equal([]);
  });
});
