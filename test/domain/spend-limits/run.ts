import * as fc from "fast-check";
import { must, mustEqual } from "../../../lab/simulation/audit/violation.ts";
import { zoneAround } from "../../../src/actors/calendar-zone.ts";
import { capturedInFull } from "../../../src/domain/ledger/books.ts";
import {
  type Calendar,
  type Period,
  PERIODS,
  type PerPeriod,
  UTC_CALENDAR,
  windowBounds,
} from "../../../src/domain/ledger/calendar.ts";
import type { LedgerCommand, LedgerReply } from "../../../src/domain/ledger/commands.ts";
import { NO_RAISE_BASIS, raiseBasis } from "../../../src/domain/ledger/raises.ts";
import { type Ledger, levelOf, newLedger } from "../../../src/domain/ledger/state.ts";
import type { SpendLimit, Windows } from "../../../src/domain/ledger/windows.ts";
import { mcOf } from "../../../src/domain/money.ts";
import { HOUR, human, MINUTE, DAY, openPolicy } from "../support/actor.ts";
import type { LedgerDomain } from "../ledger/world.ts";

/** Spend limits of a ledger beside a book that adds up every payment anew after each step. */

/** Shortly before 02:30 in Berlin, on the night when the clocks show it twice. */
const BEGIN = Date.UTC(2026, 9, 24, 23, 50);
const ZONES = ["UTC", "Europe/Berlin", "America/Havana", "Australia/Lord_Howe"] as const;

const limits = fc.uniqueArray(
  fc.record({ period: fc.constantFrom(...PERIODS), limitCents: fc.integer({ min: 0, max: 300 }) }),
  { maxLength: 4, selector: ({ period }) => period },
);
const LEVELS = ["agent", "team", "project"] as const;
type Level = (typeof LEVELS)[number];

type Lasting = number | "for good" | "window";
const pick = fc.nat(30);
const agent = fc.nat(3);

const step = fc.oneof(
  {
    weight: 8,
    arbitrary: fc.record({ kind: fc.constant("pay"), agent, cents: fc.integer({ min: 1, max: 90 }) }),
  },
  {
    weight: 5,
    arbitrary: fc.record({
      kind: fc.constant("wait"),
      ms: fc.oneof(
        fc.constantFrom(20 * MINUTE, HOUR, 7 * HOUR, DAY, 3 * DAY, 20 * DAY, -20 * MINUTE, -30 * HOUR),
        fc.integer({ min: 1, max: 45 * DAY }),
      ),
    }),
  },
  { weight: 3, arbitrary: fc.record({ kind: fc.constantFrom("settle", "approve", "deny", "fail"), pick }) },
  { weight: 2, arbitrary: fc.record({ kind: fc.constant("refund"), pick, part: fc.constantFrom(1, 2) }) },
  {
    weight: 2,
    arbitrary: fc.record({
      kind: fc.constant("limit"),
      level: fc.constantFrom(...LEVELS),
      agent,
      limits,
    }),
  },
  {
    weight: 1,
    arbitrary: fc.record({
      kind: fc.constant("calendar"),
      timezone: fc.constantFrom(...ZONES),
      resetMinutes: fc.constantFrom(0, 30, 150, 240),
      weekStart: fc.nat(6),
      monthDay: fc.integer({ min: 1, max: 28 }),
      yearMonth: fc.integer({ min: 1, max: 12 }),
    }),
  },
  {
    weight: 2,
    arbitrary: fc.record({
      kind: fc.constant("grant"),
      agent,
      cents: fc.integer({ min: 1, max: 300 }),
      lasts: fc.constantFrom<Lasting>("window", "for good", 7 * HOUR, 3 * DAY, 40 * DAY),
    }),
  },
  { weight: 1, arbitrary: fc.record({ kind: fc.constant("roll_over") }) },
);
export type Step = typeof step extends fc.Arbitrary<infer T> ? T : never;
export const steps = fc.array(step, { minLength: 5, maxLength: 50, size: "max" });

/** A limit raised for a time. */
interface Added {
  readonly limit: Period;
  readonly cents: number;
  readonly endsAt: number;
}
const LONGEST = 31 * DAY;
const MOST_INCREASES = 8;

interface Booked {
  readonly id: string;
  readonly agent: number;
  readonly mc: number;
  /** Time at which it counts. */
  at: number;
  /** Returned by its network. */
  creditedMc: number;
  state: "held" | "sending" | "settled" | "ended";
}

const CODES: Readonly<Record<Level, string>> = {
  agent: "SPEND_LIMIT_EXCEEDED",
  team: "TEAM_SPEND_LIMIT_EXCEEDED",
  project: "PROJECT_SPEND_LIMIT_EXCEEDED",
};

const agentId = (number: number): string => `agent-${String(number)}`;
const teamOf = (number: number): number => number % 2;
const teamId = (number: number): string => `team-${String(teamOf(number))}`;

const amountIn = (set: readonly SpendLimit[], limit: Period) =>
  set.find(({ period }) => period === limit)?.limitCents;

export class SpendLimitsRun {
  readonly #domain: LedgerDomain;
  readonly #payments: Booked[] = [];
  readonly #limits = new Map<string, readonly SpendLimit[]>();
  readonly #added = new Map<string, readonly Added[]>();
  #ledger: Ledger = newLedger("org-1", "project-1");
  #now = BEGIN;
  /** The newest minute in which money moved: windows do not go back behind it. */
  #newest = 0;
  #raises = 0;
  #calendar: Calendar = UTC_CALENDAR;
  #kept: PerPeriod = [0, 0, 0, 0, 0];
  #changedAt = 0;
  denials = 0;
  grants = 0;

  constructor(domain: LedgerDomain) {
    this.#domain = domain;
    for (let number = 0; number < 4; number += 1) {
      // The last one asks a person above 40 cents.
      const policy = { ...openPolicy, autoApprovalThresholdCents: number === 3 ? 40 : null };
      const opened = {
        agentId: agentId(number),
        teamId: teamId(number),
        name: "Agent",
        keyId: "akey_1",
        policy,
      };
      this.#judge({ kind: "open_account", ...opened });
    }
  }

  /** Runs begin with a day that resets in the hour that is about to be repeated. */
  #begin(): void {
    const settings = { resetMinutes: 150, weekStart: 0, monthDay: 1, yearMonth: 1 };
    this.#setCalendar({ kind: "calendar", timezone: "Europe/Berlin", ...settings });
  }

  play(run: readonly Step[]): void {
    this.#begin();
    for (const each of run) {
      this.#act(each);
      this.#audit();
    }
  }

  #judge(command: LedgerCommand): LedgerReply {
    return this.#domain.judge(this.#ledger, command, this.#now);
  }

  get #at(): number {
    return Math.max(this.#now, this.#newest);
  }

  #moved(): void {
    this.#newest = Math.floor(this.#at / MINUTE) * MINUTE;
  }

  #act(act: Step): void {
    switch (act.kind) {
      case "wait":
        this.#now += "ms" in act ? act.ms : 0;
        return;
      case "pay":
        return "cents" in act ? this.#pay(act.agent, act.cents) : undefined;
      case "grant":
        return "lasts" in act ? this.#grant(act.agent, act.cents, act.lasts) : undefined;
      case "limit":
        return "limits" in act ? this.#limit(act.level, act.agent, act.limits) : undefined;
      case "calendar":
        return "timezone" in act ? this.#setCalendar(act) : undefined;
      case "roll_over":
        this.#ledger = this.#domain.unpack(
          JSON.parse(JSON.stringify(this.#domain.pack(this.#ledger, this.#now))),
        );
        return;
      default:
        return "pick" in act ? this.#resolve(act) : undefined;
    }
  }

  #pay(number: number, cents: number): void {
    const id = `txn-${String(this.#payments.length)}`;
    const expected = this.#expectedDenial(number, mcOf(cents));
    const reply = this.#judge({
      kind: "pay",
      agentId: agentId(number),
      keyId: "akey_1",
      approvalWindowSeconds: 1_000_000_000,
      recordsCheckedThrough: 0,
      request: {
        transactionId: id,
        approvalId: `apr-${id}`,
        keyHash: `key-${id}`,
        payloadHash: id,
        rail: "card",
        amountMc: mcOf(cents),
        currency: "USD",
        recipient: "shop",
        merchantCategory: null,
        purpose: "x",
        fingerprint: id,
        proof: "",
      },
    });
    must(reply.kind === "decided", `a payment was ${reply.kind}`);
    const { approval, denial } = reply.decision;
    mustEqual([denial?.code, denial?.details?.period], expected, "what denied a payment");
    if (denial !== null) {
      this.denials += 1;
      must((denial.details?.resetsAt ?? 0) > this.#at, "a limit resets in the past");
    }
    const state = denial !== null ? "ended" : approval === null ? "sending" : "held";
    this.#payments.push({ id, agent: number, mc: mcOf(cents), at: this.#at, creditedMc: 0, state });
    if (state !== "ended") this.#moved();
  }

  #resolve({ kind, pick: at, ...more }: { readonly kind: string; readonly pick: number }): void {
    const payment = this.#payments[at % Math.max(1, this.#payments.length)];
    if (payment === undefined) return;
    const { agent: number, id, mc, state } = payment;
    const named = { agentId: agentId(number), transactionId: id };
    if (state === "held" && kind === "approve") return this.#approve(payment);
    if (state === "held" && kind === "deny") {
      this.#judge({ kind: "deny", ...named, by: human, feedback: "no", proof: "" });
      payment.state = "ended";
      return this.#moved();
    }
    if (state === "sending" && (kind === "settle" || kind === "fail")) {
      const failed = { status: "failed", code: "CARD_DECLINED", reason: "no" } as const;
      const result = kind === "settle" ? ({ status: "settled" } as const) : failed;
      this.#judge({ kind: "confirm", ...named, revision: 0, outcome: { result, at: this.#now } });
      payment.state = kind === "settle" ? "settled" : "ended";
      return this.#moved();
    }
    if (state !== "settled" || kind !== "refund" || !("part" in more)) return;
    const creditedMc = more.part === 1 ? mc : Math.max(payment.creditedMc, Math.floor(mc / 2));
    if (creditedMc <= payment.creditedMc) return;
    const books = [{ ...capturedInFull(mc), creditedMc }];
    this.#judge({ kind: "book", ...named, books, recordsCheckedThrough: 0 });
    payment.creditedMc = creditedMc;
    this.#moved();
  }

  #approve(payment: Booked): void {
    const { agent: number, id, mc } = payment;
    const expected = this.#expectedDenial(number, mc, payment);
    const named = { agentId: agentId(number), transactionId: id };
    const reply = this.#judge({ kind: "approve", ...named, by: human, proof: "" });
    must(reply.kind === "payment", `an approval was ${reply.kind}`);
    const { denial } = reply.payment;
    mustEqual([denial?.code, denial?.details?.period], expected, "what failed an approval");
    payment.state = denial === null ? "sending" : "ended";
    payment.at = this.#at;
    this.#moved();
  }

  #limit(level: Level, number: number, set: readonly SpendLimit[]): void {
    const spendLimits = set.map(({ limitCents, period }) => ({ period, limitCents }));
    if (level === "agent") {
      const version = this.#ledger.accounts.get(agentId(number))?.policyVersion ?? 0;
      this.#judge({ kind: "change_policy", agentId: agentId(number), version, patch: { spendLimits } });
    } else if (level === "team") {
      const { version } = levelOf(this.#ledger, teamId(number)).cap;
      const replaced = { capCents: null, agents: [], spendLimits };
      this.#judge({ kind: "replace_team", teamId: teamId(number), version, ...replaced });
    } else {
      const { version } = this.#ledger.project.cap;
      this.#judge({ kind: "replace_project", version, capCents: null, teams: [], spendLimits });
    }
    const name = this.#nameOf(level, number);
    const before = this.#limits.get(name) ?? [];
    const kept = this.#activeOf(name).filter(
      ({ limit }) => amountIn(before, limit) === amountIn(spendLimits, limit),
    );
    this.#limits.set(name, spendLimits);
    this.#added.set(name, kept);
  }

  #activeOf(name: string): readonly Added[] {
    return (this.#added.get(name) ?? []).filter(({ endsAt }) => endsAt > this.#at);
  }

  #limitNow(name: string, { limitCents, period }: SpendLimit): number {
    return this.#activeOf(name).reduce(
      (sum, { cents, limit }) => (limit === period ? sum + cents : sum),
      limitCents,
    );
  }

  /** Every limit that lacks something for the amount is raised by just that, in one decision, or none is. */
  #grant(number: number, cents: number, lasts: Lasting): void {
    const expected = this.#expectedRaises(number, cents, lasts);
    const until = lasts === "window" ? {} : { endsAt: lasts === "for good" ? null : this.#now + lasts };
    this.#raises += 1;
    const raiseId = `raise-${String(this.#raises)}`;
    const account = this.#ledger.accounts.get(agentId(number));
    const grant = {
      kind: "grant_raise",
      agentId: agentId(number),
      raiseId,
      amountMc: mcOf(cents),
      basis: account === undefined ? NO_RAISE_BASIS : raiseBasis(this.#ledger, account),
      ...until,
    } as const;
    const reply = this.#judge(grant);
    if (expected.length === 0) return must(reply.kind === "raise_not_needed", `a grant was ${reply.kind}`);
    const isFull = LEVELS.some((level) => {
      const added = expected.filter((each) => each.level === level && each.endsAt !== null);
      return this.#activeOf(this.#nameOf(level, number)).length + added.length > MOST_INCREASES;
    });
    const isOver = expected.some(({ endsAt }) => endsAt !== null && endsAt <= this.#at);
    if (isFull || isOver) return must(reply.kind === "raise_impossible", `a grant was ${reply.kind}`);
    must(reply.kind === "raised", `a grant was ${reply.kind}`);
    mustEqual(reply.grant.raised, expected, "what a grant has raised");
    this.grants += 1;
    for (const { endsAt, fromCents, level, limit, toCents } of expected)
      this.#raise(this.#nameOf(level, number), { limit, cents: toCents - fromCents }, endsAt);
    const again = this.#judge(grant);
    must(again.kind === "raised" && again.caps.length === 0, "a repeated grant raised again");
  }

  #expectedRaises(number: number, cents: number, lasts: Lasting) {
    const { ends } = windowBounds(this.#calendar, this.#at);
    const starts = this.#starts();
    return LEVELS.flatMap((level) =>
      PERIODS.flatMap((limit, place) => {
        const name = this.#nameOf(level, number);
        const set = this.#limits.get(name)?.find(({ period }) => period === limit);
        if (set === undefined) return [];
        const fromCents = this.#limitNow(name, set);
        const missing = this.#used(level, number, starts[place] ?? 0) + mcOf(cents) - mcOf(fromCents);
        if (missing <= 0) return [];
        const until = typeof lasts === "number" ? this.#now + lasts : (ends[place] ?? 0);
        const endsAt = lasts === "for good" ? null : Math.min(until, this.#at + LONGEST);
        return [{ level, limit, fromCents, toCents: fromCents + Math.ceil(missing / 1_000), endsAt }];
      }),
    );
  }

  #raise(name: string, { cents, limit }: Omit<Added, "endsAt">, endsAt: number | null): void {
    if (endsAt !== null)
      return void this.#added.set(name, [...(this.#added.get(name) ?? []), { limit, cents, endsAt }]);
    const set = this.#limits.get(name) ?? [];
    const raised = set.map((each) =>
      each.period === limit ? { ...each, limitCents: each.limitCents + cents } : each,
    );
    this.#limits.set(name, raised);
  }

  #setCalendar({
    kind: _kind,
    timezone,
    ...settings
  }: Pick<Calendar, "monthDay" | "resetMinutes" | "timezone" | "weekStart" | "yearMonth"> & {
    readonly kind: string;
  }): void {
    const kept = this.#starts();
    const { version } = this.#ledger.calendar;
    const zone = zoneAround(timezone, new Date(this.#now));
    this.#judge({ kind: "replace_calendar", version, ...settings, ...zone });
    [this.#kept, this.#changedAt] = [kept, this.#at];
    this.#calendar = { ...UTC_CALENDAR, ...settings, ...zone };
    this.#moved();
  }

  /** Nothing is forgotten before the first boundary after a change of the calendar. */
  #starts(): PerPeriod {
    const { starts } = windowBounds(this.#calendar, this.#at);
    return starts.map((start, place) => (start > this.#changedAt ? start : (this.#kept[place] ?? 0)));
  }

  #nameOf(level: Level, number: number): string {
    if (level === "project") return "project";
    return level === "team" ? teamId(number) : agentId(number);
  }

  /** Every payment of a level that counts since an instant, added up. */
  #used(level: Level, number: number, since: number, but: Booked | null = null): number {
    const own = this.#nameOf(level, number);
    return this.#payments
      .filter((each) => each !== but && this.#nameOf(level, each.agent) === own)
      .filter(({ at, state }) => state !== "ended" && at >= since)
      .reduce((sum, { creditedMc, mc }) => sum + mc - creditedMc, 0);
  }

  #expectedDenial(
    number: number,
    mc: number,
    own: Booked | null = null,
  ): [string | undefined, string | undefined] {
    const starts = this.#starts();
    for (const level of LEVELS) {
      const set = this.#limits.get(this.#nameOf(level, number)) ?? [];
      for (const period of PERIODS.toReversed()) {
        const limit = set.find((each) => each.period === period);
        const used = this.#used(level, number, starts[PERIODS.indexOf(period)] ?? 0, own);
        const name = this.#nameOf(level, number);
        if (limit !== undefined && used + mc > mcOf(this.#limitNow(name, limit)))
          return [CODES[level], period];
      }
    }
    return [undefined, undefined];
  }

  #audit(): void {
    const starts = this.#starts();
    const check = (level: Level, number: number, { at, mc }: Windows): void => {
      for (const [place, period] of PERIODS.entries()) {
        const since = starts[place] ?? 0;
        const counted = at >= since ? mc[place] : 0;
        mustEqual(
          counted,
          this.#used(level, number, since),
          `the ${period} of ${this.#nameOf(level, number)}`,
        );
      }
    };
    for (let number = 0; number < 4; number += 1) {
      const account = this.#ledger.accounts.get(agentId(number));
      must(account !== undefined, "an account is gone");
      check("agent", number, account.usage.windows);
      check("team", number, levelOf(this.#ledger, teamId(number)).windows);
    }
    check("project", 0, this.#ledger.project.windows);
  }
}
