import type { CommandOf } from "../../../src/domain/ledger/commands.ts";
import type { RulesVersions } from "../../../src/domain/ledger/payment.ts";
import type { Forbidden } from "../../../src/domain/rules/restrictions.ts";
import type { SpendLimit } from "../../../src/domain/ledger/windows.ts";
import type { Denial, LimitDenial } from "../../../src/domain/ledger/policy.ts";
import {
  type AccountModel,
  HOUR,
  isClosed,
  MC,
  moneyOf,
  type PaymentModel,
  type Verdict,
  wholeCents,
  type LedgerClock,
} from "./account-model.ts";
import { type CountedPart, countedSince, type LimitName, type Used } from "./booked-payment.ts";
import type { StoppedModel } from "./account-audit.ts";
import type { AgentModel } from "./agent-model.ts";
import { addedCents, type IncreaseModel, limitsAt } from "./increases-model.ts";
import { must, mustEqual } from "./violation.ts";
import { minuteOf, partsOf, spendVerdict, windowOf } from "./windows-model.ts";

type UsedSince = (since: number) => number;

/** A project or a team: its cap, and the rules that judge payments under it. */
export interface LevelModel {
  capCents: number | null;
  spendLimits: readonly SpendLimit[];
  increases: readonly IncreaseModel[];
  /** Amounts of its payments, by when they count in windows. */
  readonly parts: Map<string, readonly CountedPart[]>;
  version: number;
  rulesVersion: number;
  spentMc: number;
  reservedMc: number;
}

const newLevel = (): LevelModel => ({
  capCents: null,
  spendLimits: [],
  increases: [],
  parts: new Map(),
  version: 1,
  rulesVersion: 0,
  spentMc: 0,
  reservedMc: 0,
});

/** The auditor's books: every account's, every agent's life, every payment's, and what is used of the caps. */
export class WorldModel {
  readonly clock: LedgerClock = { latest: 0 };
  readonly accounts = new Map<string, AccountModel>();
  readonly lives = new Map<string, AgentModel>();
  readonly payments = new Map<string, PaymentModel>();
  /** Agents stopped by each stop, by its request. */
  readonly stops = new Map<string, readonly StoppedModel[]>();
  readonly #levels = new Map<string | null, LevelModel>();
  readonly #open = new Set<PaymentModel>();
  /** The newest minute in which anything was counted: windows do not go back with the clock. */
  #newestAt = 0;
  /** Recipients that answered restrictions forbid, with the version, by level: the project (null), a team, an agent. */
  readonly restrictions = new Map<
    string | null,
    { readonly version: number; readonly never: ReadonlySet<string> }
  >();
  /** Counts of what has happened. */
  readonly tally = new Map<string, number>();

  /** The project (null), or a team. */
  level(teamId: string | null): LevelModel {
    const known = this.#levels.get(teamId) ?? newLevel();
    this.#levels.set(teamId, known);
    return known;
  }

  payment(transactionId: string): PaymentModel {
    const payment = this.payments.get(transactionId);
    must(payment !== undefined, `${transactionId} was never decided`);
    return payment;
  }

  account(agentId: string): AccountModel {
    const model = this.accounts.get(agentId);
    must(model !== undefined, `no account was opened for ${agentId}`);
    return model;
  }

  life(agentId: string): AgentModel {
    const model = this.lives.get(agentId);
    must(model !== undefined, `${agentId} was never created`);
    return model;
  }

  add(model: AccountModel, payment: PaymentModel): void {
    must(!this.payments.has(payment.id), `${payment.id} was decided twice`);
    this.payments.set(payment.id, payment);
    this.#open.add(payment);
    model.add(payment);
    this.#count(model, payment, 1);
    if (payment.isCounted) this.#counted(payment.createdAt);
  }

  /** Instant that something counts at in windows, where it is counted now. */
  windowsAt(now: number): number {
    return Math.max(now, this.#newestAt);
  }

  #counted(now: number): void {
    this.#newestAt = Math.max(this.#newestAt, minuteOf(now));
  }

  change(
    model: AccountModel,
    payment: PaymentModel,
    how: { readonly by: "person" | "rail" | "books"; readonly change: () => void; readonly now: number },
  ): void {
    const [was, windowAt, { day }] = [moneyOf(payment), payment.books.windowAt, payment.books];
    this.#open.add(payment);
    this.#count(model, payment, -1);
    model.change(payment, how);
    this.#count(model, payment, 1);
    const is = moneyOf(payment);
    const isMoved = was.reservedMc !== is.reservedMc || was.spentMc !== is.spentMc;
    if (isMoved || day !== payment.books.day || windowAt !== payment.books.windowAt) this.#counted(how.now);
  }

  #count({ parts, teamId }: AccountModel, payment: PaymentModel, sign: 1 | -1): void {
    const { reservedMc, spentMc } = moneyOf(payment);
    for (const each of [parts, this.level(null).parts, this.level(teamId).parts])
      each.set(payment.id, partsOf(payment));
    for (const level of [this.level(null), this.level(teamId)]) {
      level.reservedMc += sign * reservedMc;
      level.spentMc += sign * spentMc;
    }
  }

  /** Returns the use of every limit that counts for a payment. */
  used(model: AccountModel, payment: PaymentModel, day: string, at: number): Used[] {
    const { increases, policy } = model;
    const dailyCents =
      policy.dailySpendLimitCents === null
        ? null
        : policy.dailySpendLimitCents + addedCents(increases, "daily_spend", at);
    const { reservedMc, spentMc } = moneyOf(payment);
    const [team, project] = [this.level(model.teamId), this.level(null)];
    const limits: readonly (readonly [LimitName, number | null, number])[] = [
      ["agent/per_transaction", policy.perTransactionLimitCents, reservedMc + spentMc],
      ["agent/budget", policy.budgetCents, model.usedMc],
      ["agent/daily_spend", dailyCents, model.spentOn(day, null)],
      ["team/cap", team.capCents, team.spentMc + team.reservedMc],
      ["project/cap", project.capCents, project.spentMc + project.reservedMc],
    ];
    const ofWindows = [
      ["agent", limitsAt(policy.spendLimits, increases, at), (since: number) => model.countedSince(since)],
      ...([["team", team] as const, ["project", project] as const] as const).map(
        ([name, each]) =>
          [
            name,
            limitsAt(each.spendLimits, each.increases, at),
            (since: number) => countedSince(each.parts.values(), since),
          ] as const,
      ),
    ] as const;
    const windows = ofWindows.flatMap(([level, spendLimits, since]) =>
      spendLimits.map(
        ({ limitCents, period }) =>
          [`${level}/${period}` as const, limitCents, since(windowOf(period, at)[0])] as const,
      ),
    );
    return [...limits, ...windows].map(([limit, cents, usedMc]) => ({
      limit,
      usedMc,
      limitMc: cents === null ? null : cents * MC,
    }));
  }

  openCount(): number {
    for (const payment of this.#open) if (isClosed(payment)) this.#open.delete(payment);
    return this.#open.size;
  }

  /**
   * Returns the first objection of the limits of all levels, in their order; `own` not counted. `seen` is the code
   * that was answered, since an hour may count a little longer, and never shorter.
   */
  verdict(
    model: AccountModel,
    amountMc: number,
    now: number,
    {
      forbidden,
      own = null,
      seen,
    }: {
      readonly forbidden?: Forbidden | undefined;
      readonly own?: PaymentModel | null;
      readonly seen: string | null;
    },
  ): Verdict | null {
    if (forbidden !== undefined && model.status === "active") return { code: forbidden.code, details: null };
    const at = this.windowsAt(now);
    const spend = (code: string, limits: readonly SpendLimit[] | undefined, usedSince: UsedSince) =>
      spendVerdict(code, limits, {
        amountMc,
        at,
        usedSince: (since) => usedSince(since) - (own === null ? 0 : countedSince([partsOf(own)], since)),
      });
    const ofAgent = (): Verdict | null =>
      spend("SPEND_LIMIT_EXCEEDED", limitsAt(model.policy.spendLimits, model.increases, at), (since) =>
        model.countedSince(since),
      );
    const ofLevel = (code: string, { increases, parts, spendLimits }: LevelModel): Verdict | null =>
      spend(code, limitsAt(spendLimits, increases, at), (since) => countedSince(parts.values(), since));
    const verdictOf = (hourMs: number): Verdict | null =>
      model.verdict(amountMc, now, { hourMs, own, spend: ofAgent, windowsAt: at }) ??
      this.#capVerdict(model.teamId, amountMc, own, ofLevel);
    const exact = verdictOf(HOUR);
    const longestHourMs = model.longestMs(HOUR, now);
    return (exact?.code ?? null) === seen ? exact : verdictOf(longestHourMs);
  }

  #capVerdict(
    teamId: string,
    amountMc: number,
    own: PaymentModel | null,
    spend: (code: string, level: LevelModel) => Verdict | null,
  ): Verdict | null {
    for (const [name, level] of [
      ["TEAM", this.level(teamId)],
      ["PROJECT", this.level(null)],
    ] as const) {
      const { capCents, reservedMc, spentMc } = level;
      const usedMc = spentMc + reservedMc - (own?.amountMc ?? 0);
      if (capCents !== null && usedMc + amountMc > capCents * MC) {
        const remaining = wholeCents(capCents * MC - usedMc);
        return { code: `${name}_CAP_EXCEEDED`, details: { limit: capCents, remaining, resetsAt: null } };
      }
      const bySpend = spend(`${name}_SPEND_LIMIT_EXCEEDED`, level);
      if (bySpend !== null) return bySpend;
    }
    return null;
  }

  /** Whether a judgement by these versions of rules is outdated; newer ones raise what the ledger knows. */
  isOutdated(model: AccountModel, versions: RulesVersions | undefined): boolean {
    const levels = [
      [this.level(null), versions?.project ?? 0],
      [this.level(model.teamId), versions?.team ?? 0],
      [model, versions?.agent ?? 0],
    ] as const;
    if (levels.some(([level, judged]) => judged < level.rulesVersion)) return true;
    for (const [level, judged] of levels) level.rulesVersion = Math.max(level.rulesVersion, judged);
    return false;
  }

  /** Restrictions that were answered are the ones that judged, unless newer ones did. */
  expectRestricted(
    model: AccountModel,
    recipient: string | null,
    { forbidden, rulesVersions }: Pick<CommandOf<"approve">, "forbidden" | "rulesVersions">,
  ): void {
    const judged = [
      [null, rulesVersions?.project],
      [model.teamId, rulesVersions?.team],
      [model.agentId, rulesVersions?.agent],
    ] as const;
    for (const [level, version] of judged) {
      const answered = this.restrictions.get(level);
      if (answered === undefined || version !== answered.version || recipient === null) continue;
      const isForbidden = answered.never.has(recipient);
      must(!isForbidden || forbidden !== undefined, "a payment passed restrictions that were answered");
    }
  }

  count(what: string): void {
    this.tally.set(what, (this.tally.get(what) ?? 0) + 1);
  }
}

export function expectDenial(
  denial: Denial | LimitDenial | null,
  verdict: Verdict | null,
  what: string,
): void {
  mustEqual(denial?.code ?? null, verdict?.code ?? null, what);
  const [said, expected] = [denial?.details ?? null, verdict?.details ?? null];
  const [soonest, resetsAt] = [expected?.resetsAt ?? null, said?.resetsAt ?? null];
  if (said === null || expected === null || soonest === null || resetsAt === null)
    return mustEqual(said, expected, `${what}, the details`);
  const laterMs = resetsAt - soonest;
  must(laterMs >= 0 && laterMs <= (verdict?.laterMs ?? 0), `${what}, when it resets`);
  mustEqual(said, { ...expected, resetsAt: said.resetsAt }, `${what}, the details`);
}
