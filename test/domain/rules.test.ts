import { mcOf } from "../../src/domain/money.ts";
import { expect } from "chai";
import {
  type Arbitrary,
  array,
  assert,
  boolean,
  constantFrom,
  integer,
  oneof,
  option,
  property,
  record,
  shuffledSubarray,
  tuple,
} from "fast-check";
import { DateTime } from "luxon";
import { zoneOffsets } from "../../src/lib/zone-offset.ts";
import { comparedPayment, paymentRules, type RuledPayment } from "../../src/domain/rules/checks.ts";
import { flaggedTypes } from "../../src/domain/rules/flags.ts";
import {
  type ApprovalRule,
  readyRules,
  RULE_TYPES,
  type RuleParams,
  type RuleType,
  WEEKDAYS,
} from "../../src/domain/rules/rules.ts";
import { TestAccount } from "./support/account.ts";
import { DAY, HOUR, NOON, SECOND } from "./support/actor.ts";
import { seed } from "../support/seed.ts";

const payment: RuledPayment = {
  rail: "card",
  recipient: "Shop",
  amountMc: mcOf(500),
  merchantCategory: null,
};

function rule<T extends RuleType>(type: T, params: RuleParams[T], enabled?: boolean): ApprovalRule;
function rule(type: RuleType, params: object, enabled = true): object {
  return { id: `rule_${type}`, type, enabled, params };
}

/** Ways to write Acme Corp that people read as the same, or that the rule's own author may have used. */
const EVASIONS: readonly (readonly [how: string, written: string])[] = [
  ["a space at the end", "Acme Corp "],
  ["spaces, a tab and a line end around it", "\t Acme Corp\n"],
  ["two spaces inside", "Acme  Corp"],
  ["a no-break space", "Acme\u00a0Corp"],
  ["a narrow no-break and an ideographic space", "Acme\u202f\u3000Corp"],
  ["a zero-width space", "Ac\u200bme Corp"],
  ["a zero-width joiner and non-joiner", "A\u200dc\u200cme Corp"],
  ["a soft hyphen", "Ac\u00adme Corp"],
  ["a byte-order mark", "\ufeffAcme Corp"],
  ["a variation selector", "Acme\ufe0f Corp"],
  ["a direction mark", "Acme\u200e Corp"],
  ["a tag character", "Acme\u{e0041} Corp"],
  ["full-width letters", "Ａｃｍｅ　Ｃｏｒｐ"],
  ["mathematical letters", "\u{1d400}cme Corp"],
  ["circled letters", "Ⓐcme Corp"],
];

interface Circumstances {
  readonly isNewRecipient: boolean;
  /** Ages of the payments in milliseconds. */
  readonly ages: readonly number[];
  readonly likeAge: number | null;
  readonly now: number;
}

type Row = readonly [
  what: string,
  rule: ApprovalRule,
  change: Partial<RuledPayment & Circumstances>,
  flags: boolean,
];

const NOTHING: Circumstances = { isNewRecipient: false, ages: [], likeAge: null, now: NOON };

/** As the server and then the account judge the rules. */
function flagged(rules: readonly ApprovalRule[], change: Partial<RuledPayment & Circumstances> = {}) {
  const { ages, isNewRecipient, likeAge, now, ...paid } = { ...payment, ...NOTHING, ...change };
  const offsetsOf = (timezone: string) => zoneOffsets(timezone, now - HOUR, now + 2 * HOUR);
  const travelling = paymentRules(readyRules(rules), comparedPayment(paid), { isNewRecipient, offsetsOf });
  if (travelling === undefined) return [];
  const history = {
    countWithin: (windowMs: number) => ages.filter((age) => age < windowMs).length,
    newestSimilarAt: () => (likeAge === null ? null : now - likeAge),
  };
  return flaggedTypes(travelling, history, now);
}

describe("rules: each at, below and above its edge", () => {
  const above = rule("amount_above", { amountCents: 500 });
  const recipients = rule("recipient", { anyOf: ["ACME Ltd", "0xABCDEF0000000000000000000000000000000001"] });
  const named = (name: string) => rule("recipient", { anyOf: [name.normalize("NFC")] });
  const categories = rule("merchant_category", { anyOf: ["5732", "7995"] });
  const others = rule("recipient", { noneOf: ["ACME Ltd"] });
  const otherCategories = rule("merchant_category", { noneOf: ["5732", "7995"] });
  const rails = rule("rail", { anyOf: ["wallet"] });
  const velocity = rule("velocity", { count: 2, windowSeconds: 60 });
  const always = rule("velocity", { count: 0, windowSeconds: 1 });
  const duplicate = rule("duplicate", { windowSeconds: 60 });
  const newcomer = rule("new_recipient", {});

  const rows: readonly Row[] = [
    ["amount_above, one cent below", above, { amountMc: mcOf(499) }, false],
    ["amount_above, at it", above, { amountMc: mcOf(500) }, false],
    ["amount_above, one cent above", above, { amountMc: mcOf(501) }, true],
    ["amount_above 0, one cent", rule("amount_above", { amountCents: 0 }), { amountMc: mcOf(1) }, true],
    ["recipient, by its name", recipients, { recipient: "ACME Ltd" }, true],
    ["recipient, in another case", recipients, { recipient: "acme LTD" }, true],
    ["recipient, an address", recipients, { recipient: `0xabcdef${"0".repeat(33)}1`, rail: "wallet" }, true],
    ["recipient, a name that only begins so", recipients, { recipient: "ACME Ltd." }, false],
    ["recipient, noneOf that has it", others, { recipient: "acme LTD" }, false],
    ["recipient, noneOf that lacks it", others, { recipient: "ACME Ltd." }, true],
    ["merchant_category, noneOf that has it", otherCategories, { merchantCategory: "7995" }, false],
    ["merchant_category, noneOf that lacks it", otherCategories, { merchantCategory: "5733" }, true],
    ["merchant_category, noneOf, without a category", otherCategories, { merchantCategory: null }, true],
    [
      "recipient, in letters beyond ASCII",
      rule("recipient", { anyOf: ["ÄRZTE"] }),
      { recipient: "ärzte" },
      true,
    ],
    ["recipient, encoded in another way", named("Café"), { recipient: "CAFE\u0301" }, true],
    // Only once nothing invisible is between them are the two one letter.
    ["recipient, a soft hyphen before an accent", named("Café"), { recipient: "Cafe\u00ad\u0301" }, true],
    ["recipient, a letter that is two in capitals", named("Straße"), { recipient: "STRASSE" }, true],
    ["recipient, a capital of that letter alone", named("Straße"), { recipient: "STRAẞE" }, true],
    ["recipient, a letter with two small forms", named("ΟΔΟΣ"), { recipient: "οδοσ" }, true],
    ...EVASIONS.map(([how, recipient]): Row => [
      `recipient, ${how}`,
      named("Acme Corp"),
      { recipient },
      true,
    ]),
    [
      "recipient, a space less",
      rule("recipient", { anyOf: ["Acme Corp"] }),
      { recipient: "AcmeCorp" },
      false,
    ],
    [
      "recipient, a letter that looks alike",
      rule("recipient", { anyOf: ["Acme Corp"] }),
      { recipient: "\u0410cme Corp" },
      false,
    ],
    ["recipient, another letter", named("Café"), { recipient: "Cafe" }, false],
    ["merchant_category, the last one named", categories, { merchantCategory: "7995" }, true],
    ["merchant_category, another one", categories, { merchantCategory: "5733" }, false],
    ["merchant_category, none", categories, { merchantCategory: null }, false],
    ["rail, the one named", rails, { rail: "wallet" }, true],
    ["rail, the other one", rails, { rail: "card" }, false],
    ["velocity, payment number count", velocity, { ages: [0] }, false],
    ["velocity, payment number count + 1", velocity, { ages: [0, 1] }, true],
    ["velocity, one of them as old as the window", velocity, { ages: [60 * SECOND, 1] }, false],
    ["velocity, one of them a millisecond younger", velocity, { ages: [60 * SECOND - 1, 1] }, true],
    ["velocity of 0, the first payment", always, {}, true],
    ["duplicate, none alike", duplicate, {}, false],
    [
      "duplicate, a like one a millisecond younger than the window",
      duplicate,
      { likeAge: 60 * SECOND - 1 },
      true,
    ],
    ["duplicate, a like one as old as the window", duplicate, { likeAge: 60 * SECOND }, false],
    ["new_recipient, nothing settled", newcomer, { isNewRecipient: true }, true],
    ["new_recipient, something settled", newcomer, {}, false],
  ];
  for (const [what, set, change, flags] of rows) {
    it(`${what}: ${flags ? "flagged" : "not flagged"}`, () => {
      expect(flagged([set], change)).to.deep.equal(flags ? [set.type] : []);
      expect(flagged([{ ...set, enabled: false }], change), "disabled").to.deep.equal([]);
    });
  }
});

describe("rules: what their events and entries say", () => {
  it("types stand once each, in the order of the rules that flag; what does not flag is left out", () => {
    const rules = [
      rule("velocity", { count: 9, windowSeconds: 60 }),
      rule("rail", { anyOf: ["card"] }),
      rule("amount_above", { amountCents: 1_000 }),
      rule("velocity", { count: 1, windowSeconds: 60 }),
      rule("recipient", { anyOf: ["shop"] }),
      rule("rail", { anyOf: ["card", "wallet"] }),
      rule("amount_above", { amountCents: 1 }),
    ];
    expect(flagged(rules, { ages: [1] })).to.deep.equal(["rail", "velocity", "recipient", "amount_above"]);
  });

  it("a payment carries only what its account needs, and nothing of rules that say nothing", () => {
    const zone = { segments: [], untilMs: 0 };
    const findings = { isNewRecipient: false, offsetsOf: () => zone };
    const silent = [
      rule("amount_above", { amountCents: 500 }),
      rule("new_recipient", {}),
      rule("velocity", { count: 1, windowSeconds: 1 }, false),
    ];
    expect(paymentRules([], comparedPayment(payment), findings)).to.equal(undefined);
    expect(paymentRules(readyRules(silent), comparedPayment(payment), findings)).to.equal(undefined);
    const window = { timezone: "Europe/Berlin", from: "08:00", to: "18:00", outside: true };
    const rules = [
      ...silent,
      rule("recipient", { anyOf: ["shop"] }),
      rule("velocity", { count: 5, windowSeconds: 60 }),
      rule("velocity", { count: 6, windowSeconds: 60 }),
      rule("velocity", { count: 5, windowSeconds: 59 }),
      rule("velocity", { count: 4, windowSeconds: 59 }),
      rule("duplicate", { windowSeconds: 60 }),
      rule("duplicate", { windowSeconds: 60 }),
      rule("duplicate", { windowSeconds: 61 }),
      rule("time_window", { ...window, days: ["tue", "mon"] }),
      rule("time_window", { ...window, days: ["mon", "tue"] }),
    ];
    const berlin = { zone: 0, fromMinutes: 480, toMinutes: 1_080, outside: true };
    expect(paymentRules(readyRules(rules), comparedPayment(payment), findings)).to.deep.equal({
      checks: [
        { type: "recipient" },
        { type: "velocity", count: 5, windowSeconds: 60 },
        { type: "velocity", count: 4, windowSeconds: 59 },
        { type: "duplicate", windowSeconds: 60 },
        { type: "duplicate", windowSeconds: 61 },
        { type: "time_window", days: [0, 1], ...berlin },
      ],
      zones: [zone],
    });
  });

  const byRules = { checks: [{ type: "recipient" }, { type: "rail" }] } as const;
  const thresholds: readonly [number | null, number, readonly string[]][] = [
    [null, 1, ["recipient", "rail"]],
    [0, 1, ["agent_threshold", "recipient", "rail"]],
    [500, 500, ["recipient", "rail"]],
    [500, 501, ["agent_threshold", "recipient", "rail"]],
  ];
  for (const [threshold, amountCents, expected] of thresholds) {
    it(`with a threshold of ${threshold}, ${amountCents} is held by ${expected.join(", ")}`, () => {
      const account = new TestAccount({ autoApprovalThresholdCents: threshold });
      const held = account.pay(amountCents, {}, byRules);
      expect([held.status, held.phase]).to.deep.equal(["pending", "held"]);
      expect(held.approval?.flaggedByRuleTypes).to.deep.equal(expected);
    });
  }

  it("a payment that a limit denies is flagged by nothing and not held", () => {
    const account = new TestAccount({ perTransactionLimitCents: 10, autoApprovalThresholdCents: 0 });
    const denied = account.pay(11, {}, byRules);
    expect([denied.status, denied.approval]).to.deep.equal(["denied", null]);
    expect(account.pay(10, {}, byRules).phase).to.equal("held");
  });

  it("a replay is answered before rules matter, whatever they say by then", () => {
    const account = new TestAccount();
    const { request } = account.pay(10);
    const reply = account.payReply({ ...request, transactionId: "txn_again" }, 0, byRules);
    expect(reply).to.deep.include({ kind: "replayed", transactionId: request.transactionId });
  });
});

const clock = (minute: number) =>
  `${String(Math.floor(minute / 60)).padStart(2, "0")}:${String(minute % 60).padStart(2, "0")}`;

const isListed = ({ anyOf, noneOf }: RuleParams["recipient"], isOf: (entry: string) => boolean): boolean =>
  anyOf === undefined ? noneOf?.some(isOf) === false : anyOf.some(isOf);

/** The rules a second time, in the plainest way, with luxon as the clock on the wall. */
function says(one: ApprovalRule, of: RuledPayment & Circumstances): boolean {
  if (!one.enabled) return false;
  switch (one.type) {
    case "amount_above":
      return of.amountMc > mcOf(one.params.amountCents);
    case "new_recipient":
      return of.isNewRecipient;
    case "recipient":
      return isListed(one.params, (name) => name.toUpperCase() === of.recipient.toUpperCase());
    case "merchant_category":
      return isListed(one.params, (code) => code === of.merchantCategory);
    case "rail":
      return one.params.anyOf.some((rail) => rail === of.rail);
    case "velocity": {
      const windowMs = one.params.windowSeconds * SECOND;
      return of.ages.filter((age) => age < windowMs).length + 1 > one.params.count;
    }
    case "duplicate":
      return of.likeAge !== null && of.likeAge < one.params.windowSeconds * SECOND;
    case "time_window": {
      const { days, from, outside, timezone, to } = one.params;
      const wall = DateTime.fromMillis(of.now, { zone: timezone });
      const time = wall.toFormat("HH:mm");
      const has = (weekday: number) => days.some((day) => WEEKDAYS.indexOf(day) === (weekday + 6) % 7);
      const inside =
        from < to
          ? has(wall.weekday) && from <= time && time < to
          : (time >= from && has(wall.weekday)) || (time < to && time < from && has(wall.weekday + 6));
      return inside !== outside;
    }
  }
}

function asRules(rules: object[]): ApprovalRule[];
function asRules(rules: object[]): object[] {
  return rules;
}

const listOf = (entries: Arbitrary<string>) => {
  const some = array(entries, { minLength: 1, maxLength: 2 });
  return oneof(record({ anyOf: some }), record({ noneOf: some }));
};

describe("rules: any set of them", () => {
  const windowSeconds = integer({ min: 1, max: 120 });
  const names = constantFrom("shop", "SHOP", "other");
  const minutes = integer({ min: 0, max: 95 }).map((quarter) => clock(quarter * 15));
  const paramsOf = {
    amount_above: record({ amountCents: integer({ min: 498, max: 502 }) }),
    new_recipient: record({}),
    recipient: listOf(names),
    merchant_category: listOf(constantFrom("5732", "7995")),
    rail: record({ anyOf: array(constantFrom("card", "wallet"), { minLength: 1, maxLength: 2 }) }),
    velocity: record({ count: integer({ min: 0, max: 3 }), windowSeconds }),
    duplicate: record({ windowSeconds }),
    time_window: record({
      timezone: constantFrom("Europe/Berlin", "America/New_York", "Australia/Lord_Howe", "UTC"),
      days: shuffledSubarray([...WEEKDAYS], { minLength: 1 }),
      from: minutes,
      to: minutes,
      outside: boolean(),
    }),
  };
  const anyRule = constantFrom(...RULE_TYPES).chain((type) =>
    record({
      id: constantFrom("rule_x"),
      type: constantFrom(type),
      enabled: boolean(),
      params: paramsOf[type],
    }),
  );
  const anyRules = array(anyRule, { maxLength: 12 }).map(asRules);
  const circumstances = record({
    isNewRecipient: boolean(),
    ages: array(integer({ min: 0, max: 130_000 }), { maxLength: 4 }),
    likeAge: option(integer({ min: 0, max: 130_000 }), { nil: null }),
    // Around the changes of clocks in spring and autumn, and on a leap day.
    now: tuple(
      constantFrom("2026-03-29", "2026-10-25", "2026-03-08", "2026-11-01", "2026-04-05", "2028-02-29"),
      integer({ min: 0, max: DAY - 1 }),
    ).map(([date, ms]) => Date.parse(date) + ms),
    recipient: names,
    amountMc: integer({ min: 498, max: 502 }).map(mcOf),
    merchantCategory: constantFrom(null, "5732", "7995"),
    rail: constantFrom("card", "wallet"),
  });

  it(`flags what each of them says by itself, each type once and in order (seed ${seed})`, () => {
    const every = property(anyRules, circumstances, (rules, of) => {
      const expected = [...new Set(rules.filter((one) => says(one, of)).map(({ type }) => type))];
      expect(flagged(rules, of)).to.deep.equal(expected);
    });
    assert(every, { seed, numRuns: 3_000 });
  }).timeout(300_000);

  it(`rules flag the same in whatever order they are judged (TEST_SEED=${seed})`, () => {
    const every = property(anyRules, circumstances, (rules, of) => {
      const forwards = flagged(rules, of);
      expect(flagged(rules.toReversed(), of).toSorted()).to.deep.equal(forwards.toSorted());
    });
    assert(every, { seed, numRuns: 1_000 });
  }).timeout(300_000);
});
