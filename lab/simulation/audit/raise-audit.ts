import type { CommandOf, LedgerReply } from "../../../src/domain/ledger/commands.ts";
import type { SpendLimit } from "../../../src/domain/ledger/windows.ts";
import { type AccountModel, MC, type RaiseModel } from "./account-model.ts";
import { countedSince } from "./booked-payment.ts";
import type { LevelModel, WorldModel } from "./books.ts";
import {
  activeAt,
  addedCents,
  type IncreasedLimit,
  type IncreaseModel,
  limitsAt,
} from "./increases-model.ts";
import { must, mustEqual } from "./violation.ts";
import { windowOf } from "./windows-model.ts";

const LONGEST_MS = 31 * 24 * 3_600_000;
/** Increases at once of one agent, team or project. */
const INCREASES_MAX = 8;

type Raise = RaiseModel["raised"][number];
type Level = Raise["level"];

/** A limit with its use. */
interface Limit extends Pick<Raise, "level" | "limit"> {
  readonly limitCents: number;
  readonly usedMc: number;
  /** End of its window; null: it has none. */
  readonly resetsAt: number | null;
}

/** Expectations about raises: all that lacks is raised by just that, at all levels at once, and once for each decision. */
export class RaiseAudit {
  readonly #books: WorldModel;

  constructor(books: WorldModel) {
    this.#books = books;
  }

  expectGranted(command: CommandOf<"grant_raise">, reply: LedgerReply, now: number): void {
    const { agentId, basis, raiseId } = command;
    const model = this.#books.account(agentId);
    if (model.status === "closed") return mustEqual(reply.kind, "no_account", "a closed account's raise");
    const newest = model.newestRaise;
    if (newest?.raiseId === raiseId && newest.number === basis.grants + 1) {
      this.#books.count("raise: again");
      mustEqual(reply.kind, newest.outcome, "the answer to a grant that came again");
      return must(reply.kind !== "raised" || reply.caps.length === 0, "a repeated grant raised again");
    }
    const [team, project] = [this.#books.level(model.teamId), this.#books.level(null)];
    const known = [newest?.number ?? 0, model.version, team.version, project.version];
    const decidedOn = [basis.grants, basis.policyVersion, basis.teamVersion, basis.projectVersion];
    if (known.some((version, place) => version !== decidedOn[place])) {
      this.#books.count("raise: stale");
      return mustEqual(reply.kind, "raise_stale", "a grant on limits that were set since");
    }
    const at = this.#books.windowsAt(now);
    const raised = this.#expected(model, command, now, at);
    const outcome = this.#outcome(model, raised, at);
    model.newestRaise = { raiseId, number: basis.grants + 1, outcome, raised };
    this.#books.count(`raise: ${outcome}`);
    mustEqual(reply.kind, outcome, `a raise of ${agentId}`);
    if (reply.kind !== "raised") return;
    mustEqual(inOrder(reply.grant.raised), inOrder(raised), `the limits of ${agentId} that are raised`);
    this.#raise(model, raised, raiseId, at);
  }

  #outcome(model: AccountModel, raised: readonly Raise[], at: number): RaiseModel["outcome"] {
    if (raised.length === 0) return "raise_not_needed";
    const isOver = raised.some(({ endsAt }) => endsAt !== null && endsAt <= at);
    const increased = [
      ["agent", model.increases],
      ["team", this.#books.level(model.teamId).increases],
      ["project", this.#books.level(null).increases],
    ] as const;
    const isFull = increased.some(([level, increases]) => {
      const added = raised.filter((each) => each.level === level && each.endsAt !== null);
      return activeAt(increases, at).length + added.length > INCREASES_MAX;
    });
    return isOver || isFull ? "raise_impossible" : "raised";
  }

  #expected(
    model: AccountModel,
    { amountMc, endsAt }: CommandOf<"grant_raise">,
    now: number,
    at: number,
  ): readonly Raise[] {
    return this.#limits(model, now, at).flatMap(
      ({ level, limit, limitCents: fromCents, resetsAt, usedMc }) => {
        const missingCents = Math.ceil((usedMc + amountMc) / MC - fromCents);
        if (missingCents <= 0) return [];
        const until = endsAt === undefined ? resetsAt : endsAt;
        const ends = resetsAt === null || until === null ? null : Math.min(until, at + LONGEST_MS);
        return [{ level, limit, fromCents, toCents: fromCents + missingCents, endsAt: ends }];
      },
    );
  }

  #limits(model: AccountModel, now: number, at: number): readonly Limit[] {
    const { policy } = model;
    const plain = (level: Level, limit: Limit["limit"], cents: number | null, usedMc: number): Limit[] =>
      cents === null ? [] : [{ level, limit, limitCents: cents, usedMc, resetsAt: null }];
    const daily = plain(
      "agent",
      "daily_spend",
      policy.dailySpendLimitCents,
      model.spentOn(model.dayOf(now), null),
    );
    return [
      ...plain("agent", "per_transaction", policy.perTransactionLimitCents, 0),
      ...plain("agent", "budget", policy.budgetCents, model.usedMc),
      ...daily.map((limit) => ({
        ...limit,
        limitCents: limit.limitCents + addedCents(model.increases, "daily_spend", at),
        resetsAt: model.dayEndsAt(now),
      })),
      ...windowed("agent", limitsAt(policy.spendLimits, model.increases, at), at, (since) =>
        model.countedSince(since),
      ),
      ...(["team", "project"] as const).flatMap((level) => {
        const { capCents, increases, parts, reservedMc, spendLimits, spentMc } = this.#levelOf(model, level);
        return [
          ...plain(level, "cap", capCents, spentMc + reservedMc),
          ...windowed(level, limitsAt(spendLimits, increases, at), at, (since) =>
            countedSince(parts.values(), since),
          ),
        ];
      }),
    ];
  }

  #levelOf(model: AccountModel, level: "team" | "project"): LevelModel {
    return this.#books.level(level === "team" ? model.teamId : null);
  }

  #raise(model: AccountModel, raised: readonly Raise[], raiseId: string, at: number): void {
    const of = (level: Level): readonly Raise[] => raised.filter((each) => each.level === level);
    const forGood = (level: Level, limit: Raise["limit"]): number => {
      const found = of(level).find((each) => each.limit === limit && each.endsAt === null);
      return found === undefined ? 0 : found.toCents - found.fromCents;
    };
    const limits = (level: Level, set: readonly SpendLimit[]): readonly SpendLimit[] =>
      set.map(({ limitCents, period }) => ({ period, limitCents: limitCents + forGood(level, period) }));
    const increases = (level: Level, before: readonly IncreaseModel[]): readonly IncreaseModel[] => [
      ...activeAt(before, at),
      ...of(level).flatMap(({ endsAt, fromCents, limit, toCents }) =>
        endsAt === null || !isIncreased(limit)
          ? []
          : [{ id: raiseId, limit, cents: toCents - fromCents, endsAt }],
      ),
    ];
    if (of("agent").length > 0) {
      const { budgetCents, dailySpendLimitCents, perTransactionLimitCents, spendLimits } = model.policy;
      model.policy = {
        ...model.policy,
        budgetCents: budgetCents + forGood("agent", "budget"),
        dailySpendLimitCents: plus(dailySpendLimitCents, forGood("agent", "daily_spend")),
        perTransactionLimitCents: plus(perTransactionLimitCents, forGood("agent", "per_transaction")),
        ...(spendLimits === undefined ? {} : { spendLimits: limits("agent", spendLimits) }),
      };
      model.increases = increases("agent", model.increases);
      model.version += 1;
    }
    let isChildChanged = forGood("agent", "budget") > 0;
    for (const name of ["team", "project"] as const) {
      const level = this.#levelOf(model, name);
      const isRaised = of(name).length > 0;
      if (isRaised || isChildChanged) level.version += 1;
      isChildChanged = forGood(name, "cap") > 0;
      if (!isRaised) continue;
      level.capCents = plus(level.capCents, forGood(name, "cap"));
      level.spendLimits = limits(name, level.spendLimits);
      level.increases = increases(name, level.increases);
      this.#books.count(`raised: ${name}`);
    }
  }
}

const windowed = (
  level: Level,
  limits: readonly SpendLimit[],
  at: number,
  usedSince: (since: number) => number,
): readonly Limit[] =>
  limits.map(({ limitCents, period }) => {
    const [start, resetsAt] = windowOf(period, at);
    return { level, limit: period, limitCents, usedMc: usedSince(start), resetsAt };
  });

const plus = (cents: number | null, more: number): number | null => (cents === null ? null : cents + more);

const isIncreased = (limit: Raise["limit"]): limit is IncreasedLimit =>
  limit !== "budget" && limit !== "cap" && limit !== "per_transaction";

const inOrder = (raised: readonly Raise[]): readonly Raise[] =>
  raised.toSorted((one, other) => nameOf(one).localeCompare(nameOf(other)));

const nameOf = ({ level, limit }: Raise): string => `${level}/${limit}`;
