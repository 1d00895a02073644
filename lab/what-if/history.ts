import { zoneOffsets } from "../../src/lib/zone-offset.ts";
import { UTC_CALENDAR } from "../../src/domain/ledger/calendar.ts";
import { capturedInFull } from "../../src/domain/ledger/books.ts";
import type { LedgerCommand, LedgerReply } from "../../src/domain/ledger/commands.ts";
import { judge } from "../../src/domain/ledger/judge.ts";
import { decidedPayment } from "../../src/domain/ledger/pay.ts";
import { type Payment, settle, type StoredPayment } from "../../src/domain/ledger/payment.ts";
import type { BudgetPolicy } from "../../src/domain/ledger/policy.ts";
import { LEDGER_BOUNDS, NEW_LEVEL, newAccount, newLedger } from "../../src/domain/ledger/state.ts";
import { mcOf } from "../../src/domain/money.ts";
import { comparedName } from "../../src/domain/rules/compared-name.ts";
import { paymentRules } from "../../src/domain/rules/checks.ts";
import { forbiddenBy, NO_RESTRICTIONS, readyRestrictions } from "../../src/domain/rules/restrictions.ts";
import { type ApprovalRule, readyRules } from "../../src/domain/rules/rules.ts";
import { type PastPayment, payeesOf, requestOf } from "../../src/domain/simulation/past-payment.ts";
import type {
  SimulatedAgent,
  SimulatedLevel,
  SimulatedProject,
} from "../../src/domain/simulation/simulated.ts";
import { Timeline } from "../../src/domain/simulation/timeline.ts";
import type { Random } from "../random.ts";

/**
 * A random project as a ledger has decided it: payments that were let through, held, denied, approved too late, released, charged
 * in part and refunded, under limits, rules and restrictions of every kind.
 */

/** A Sunday before clocks go forward in Europe. */
export const BEGAN_AT = Date.UTC(2026, 2, 1);
const AGENTS = 24;
const TEAMS = ["team-0", "team-1", "team-2"] as const;
const MINUTE_MS = 60_000;
const HOUR_MS = 60 * MINUTE_MS;
const DAY_MS = 24 * HOUR_MS;
const APPROVAL_WINDOW_SECONDS = 86_400;
const NONE = { spentMc: 0, mc: [0, 0, 0, 0, 0] };

export interface History {
  readonly project: SimulatedProject;
  readonly teams: ReadonlyMap<string, SimulatedLevel>;
  readonly agents: readonly SimulatedAgent[];
  /** In the order in which they were made, as records have them in the end. */
  readonly payments: readonly PastPayment[];
  readonly endedAt: number;
}

const rule = (id: number, type: ApprovalRule["type"], params: unknown): ApprovalRule =>
  // The types of a rule and its parameters belong together, which the caller sees to.
  ({ id: `rule_${String(id)}`, type, enabled: true, params }) as ApprovalRule;

const PROJECT_RULES = readyRules([
  rule(1, "amount_above", { amountCents: 9_500 }),
  rule(2, "velocity", { count: 12, windowSeconds: 7_200 }),
  rule(3, "time_window", {
    timezone: "Europe/Berlin",
    days: ["sat"],
    from: "22:00",
    to: "06:00",
    outside: false,
  }),
]);
const TEAM_RULES = readyRules([
  rule(4, "new_recipient", {}),
  rule(5, "duplicate", { windowSeconds: 3_600 }),
  rule(6, "merchant_category", { anyOf: ["7995"] }),
]);

const policyOf = (random: Random, payments: number): BudgetPolicy => ({
  budgetCents: Math.round((random.between(10, 60) * 50 * payments) / AGENTS),
  autoApprovalThresholdCents: random.pick([null, null, 8_000]),
  perTransactionLimitCents: random.pick([null, 9_900]),
  dailySpendLimitCents: random.pick([null, 400_000]),
  hourlyVelocityLimit: random.pick([null, 5]),
  dailyVelocityLimit: random.pick([null, 150]),
  ...(random.chance(0.5) ? { spendLimits: [{ period: "week", limitCents: 600_000 }] } : {}),
});

const level = (capCents: number | null, rules: SimulatedLevel["rules"]): SimulatedLevel => ({
  cap: { capCents, version: 1, spendLimits: [{ period: "day", limitCents: 2_500_000 }] },
  rules,
  restrictions: undefined,
  earlier: NONE,
});

export function historyOf(random: Random, count: number): History {
  const offsets = zoneOffsets("Europe/Berlin", BEGAN_AT - DAY_MS, BEGAN_AT + 400 * DAY_MS, DAY_MS);
  const project: SimulatedProject = {
    ...level(null, PROJECT_RULES),
    calendar: { ...UTC_CALENDAR, resetMinutes: 240, weekStart: 2 },
    approvalWindowSeconds: APPROVAL_WINDOW_SECONDS,
    offsetsOf: () => offsets,
    startsAt: BEGAN_AT,
  };
  const teams = new Map(
    TEAMS.map((team, index) => [
      team,
      level(index === 0 ? count * 500 : null, index === 1 ? TEAM_RULES : []),
    ]),
  );
  const agents = Array.from({ length: AGENTS }, (_, index): SimulatedAgent => ({
    agentId: `agent-${String(index)}`,
    teamId: random.pick(TEAMS),
    policy: policyOf(random, count),
    restrictions: random.chance(0.3)
      ? readyRestrictions({ ...NO_RESTRICTIONS, recipients: { only: null, never: ["Shop 3"] } })
      : undefined,
    earlier: NONE,
  }));
  return new Recording(random, { project, teams, agents }).of(count);
}

/** A ledger that decides, and the records of what it has decided. */
class Recording {
  readonly #random: Random;
  readonly #world: Pick<History, "agents" | "project" | "teams">;
  readonly #ledger = newLedger("", "", { ...LEDGER_BOUNDS, closedKeys: 200 });
  readonly #timeline = new Timeline();
  readonly #records = new Map<string, PastPayment>();
  readonly #settled = new Map<string, number>();
  readonly #alike = new Map<string, number[]>();

  constructor(random: Random, world: Pick<History, "agents" | "project" | "teams">) {
    this.#random = random;
    this.#world = world;
    this.#ledger.calendar = world.project.calendar;
    this.#ledger.project = { ...NEW_LEVEL, cap: world.project.cap };
    for (const [teamId, { cap }] of world.teams) this.#ledger.teams.set(teamId, { ...NEW_LEVEL, cap });
    for (const { agentId, policy, teamId } of world.agents)
      this.#ledger.accounts.set(
        agentId,
        newAccount({ agentId, teamId, name: "", policy, keyId: "key" }, BEGAN_AT),
      );
  }

  of(count: number): History {
    let now = BEGAN_AT + DAY_MS;
    for (let made = 0; made < count; made += 1) {
      // Some of one instant, as in a batch.
      if (!this.#random.chance(0.1)) now += this.#random.between(1, 2 * MINUTE_MS);
      this.#timeline.runUntil(now);
      if (this.#random.chance(0.01)) this.#switch(now);
      this.#pay(String(made), now);
    }
    const endedAt = now + 2 * DAY_MS;
    this.#timeline.runUntil(endedAt);
    return { ...this.#world, payments: [...this.#records.values()], endedAt };
  }

  #switch(now: number): void {
    const { agentId } = this.#random.pick(this.#world.agents);
    this.#submit({ kind: "pause", agentId }, now);
    this.#timeline.at(now + this.#random.between(1, HOUR_MS), (at) => {
      this.#submit({ kind: "resume", agentId }, at);
    });
  }

  #pay(id: string, now: number): void {
    const random = this.#random;
    const agent = random.pick(this.#world.agents);
    const recipient = `Shop ${String(random.between(0, 40))}`;
    const amountMc = mcOf(random.pick([500, 1_000, random.between(1, 10_000)]));
    const resource = random.chance(0.05) ? { resource: `https://s${id.slice(-1)}.example/x` } : {};
    const merchantCategory = random.pick([null, "5734", "7995"]);
    const fingerprint = `${recipient} ${String(amountMc)}`;
    const { agentId } = agent;
    const facts = {
      transactionId: id,
      agentId,
      createdAt: now,
      rail: "card",
      amountMc,
      recipient,
      comparedName: comparedName(recipient),
      merchantCategory,
      fingerprint,
      ...resource,
    } as const;
    const request = requestOf({ ...UNDECIDED, ...facts });
    const reply = this.#submit(
      {
        kind: "pay",
        agentId,
        keyId: "key",
        request,
        approvalWindowSeconds: APPROVAL_WINDOW_SECONDS,
        recordsCheckedThrough: Number.MAX_SAFE_INTEGER,
        ...this.#rulingOn(agent, facts),
      },
      now,
    );
    if (reply.kind === "too_many_open") return;
    if (reply.kind !== "decided") throw new Error(reply.kind);
    const payment = decidedPayment(request, reply.decision);
    this.#record(facts, payment);
    if (payment.phase === "done") this.#confirm(facts, now);
    if (payment.phase === "sending") this.#send(facts, payment, now);
    if (payment.phase === "held") this.#hold(facts, now);
  }

  #rulingOn({ agentId, restrictions, teamId }: SimulatedAgent, facts: Facts) {
    const team = this.#world.teams.get(teamId);
    const shopNames = facts.resource === undefined ? [] : [`host:${new URL(facts.resource).host}`];
    const payment = { ...facts, shopNames };
    const forbidden = forbiddenBy({ agent: restrictions, team: undefined, project: undefined }, payment);
    if (forbidden !== null) return { forbidden };
    const { project } = this.#world;
    const isNewRecipient = payeesOf({ ...UNDECIDED, ...facts }).some(
      (payee) => (this.#settled.get(payee) ?? Infinity) > facts.createdAt,
    );
    const rules = paymentRules([...project.rules, ...(team?.rules ?? [])], payment, {
      isNewRecipient,
      offsetsOf: project.offsetsOf,
    });
    // As the records tell: the newest that was not denied.
    const alike = this.#alike.get(`${agentId} ${facts.fingerprint}`)?.at(-1);
    return rules === undefined ? {} : { rules: alike === undefined ? rules : { ...rules, similarAt: alike } };
  }

  #hold(facts: Facts, now: number): void {
    const random = this.#random;
    const { agentId, transactionId } = facts;
    const command = { agentId, transactionId, by: { userId: "u", name: "" }, proof: "" };
    const choice = random.next();
    const delay = choice < 0.2 ? APPROVAL_WINDOW_SECONDS * 1_000 : random.between(1, 4 * HOUR_MS);
    this.#timeline.at(now + delay, (at) => {
      const reply = this.#submit(
        choice < 0.2
          ? { kind: "expire", agentId, transactionId }
          : choice < 0.3
            ? { kind: "cancel", agentId, transactionId }
            : choice < 0.5
              ? { ...command, kind: "deny", feedback: "" }
              : { ...command, kind: "approve" },
        at,
      );
      if (reply.kind !== "payment") throw new Error(reply.kind);
      this.#record(facts, reply.payment);
      if (reply.payment.phase === "sending") this.#send(facts, reply.payment, at);
      else this.#confirm(facts, at);
    });
  }

  #send(facts: Facts, payment: StoredPayment, now: number): void {
    const random = this.#random;
    const choice = random.next();
    this.#timeline.at(now + random.between(1, 5_000), (at) => {
      if (choice > 0.1) return this.#settle(facts, payment, { status: "settled" }, at);
      if (choice > 0.04)
        return this.#settle(facts, payment, { status: "failed", code: "INSUFFICIENT_FUNDS", reason: "" }, at);
      const { agentId, transactionId } = facts;
      const partly = Math.round(facts.amountMc / 2);
      const reports = [
        { ...capturedInFull(facts.amountMc), capturedMc: partly },
        {
          ...capturedInFull(facts.amountMc),
          capturedMc: partly,
          creditedMc: Math.round(partly / 3),
          requests: 2,
        },
        {
          ...capturedInFull(facts.amountMc),
          capturedMc: facts.amountMc * 2,
          creditedMc: partly,
          requests: 3,
        },
      ].slice(0, random.between(1, 3));
      let closed: StoredPayment | undefined;
      reports.forEach((report, index) => {
        const bookAt = at + index * random.between(1, DAY_MS);
        this.#timeline.at(bookAt, (then) => {
          const reply = this.#submit(
            {
              kind: "book",
              agentId,
              transactionId,
              books: [report],
              recordsCheckedThrough: Number.MAX_SAFE_INTEGER,
              ...(closed === undefined ? {} : { closed }),
            },
            then,
          );
          if (reply.kind !== "payment") throw new Error(reply.kind);
          closed = reply.payment;
          this.#record(facts, reply.payment);
          this.#confirm(facts, then);
        });
      });
    });
  }

  #settle(facts: Facts, payment: StoredPayment, result: Parameters<typeof settle>[1], at: number): void {
    const { agentId, transactionId } = facts;
    this.#record(facts, settle(payment, result, at));
    const revision = Number.MAX_SAFE_INTEGER;
    this.#submit({ kind: "confirm", agentId, transactionId, revision, outcome: { result, at } }, at);
  }

  #confirm({ agentId, transactionId }: Facts, at: number): void {
    const revision = Number.MAX_SAFE_INTEGER;
    this.#submit({ kind: "confirm", agentId, transactionId, revision, outcome: null }, at);
  }

  #record(facts: Facts, payment: StoredPayment | Payment): void {
    const { approval, books, denial, deniedAt, revision, sequence, status, windowAt = null } = payment;
    const past: PastPayment = {
      ...facts,
      books,
      deniedAt,
      revision,
      sequence,
      status,
      windowAt,
      denialCode: denial?.code ?? null,
      wasHeld: approval !== null,
    };
    const known = this.#records.get(facts.transactionId);
    this.#records.set(facts.transactionId, past);
    const key = `${facts.agentId} ${facts.fingerprint}`;
    const alike = this.#alike.get(key) ?? [];
    if (known === undefined && status !== "denied") this.#alike.set(key, [...alike, facts.createdAt]);
    if (known !== undefined && status === "denied")
      this.#alike.set(
        key,
        alike.filter((each) => each !== facts.createdAt),
      );
    if (status !== "approved" && status !== "reversed") return;
    const at = books?.bookings[0]?.at ?? facts.createdAt;
    for (const payee of payeesOf(past))
      this.#settled.set(payee, Math.min(at, this.#settled.get(payee) ?? Infinity));
  }

  #submit(command: LedgerCommand, now: number): LedgerReply {
    const reply = judge(this.#ledger, command, now);
    if (reply.kind === "failed") throw new Error(reply.message);
    return reply;
  }
}

type Facts = Omit<PastPayment, keyof typeof UNDECIDED>;

const UNDECIDED = {
  books: null,
  denialCode: null,
  deniedAt: null,
  revision: 1,
  sequence: 0,
  status: "pending",
  wasHeld: false,
  windowAt: null,
} as const;
