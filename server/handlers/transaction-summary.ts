import type { Document } from "mongodb";
import type { z } from "zod";
import { MC_PER_CENT } from "../../src/domain/money.ts";
import { MOVED_INDEX, SUMMARY_INDEX } from "../../src/store/newest-first.ts";
import type { summarizeTransactions } from "../../src/contract/operations/transactions.ts";
import { agentIn } from "../../src/contract/primitives.ts";
import { ok } from "../../src/domain/result.ts";
import { type CalendarDay, CalendarDays } from "../../src/lib/calendar-days.ts";
import { amountsWithin } from "../../src/store/payment-searches.ts";
import { definedFields } from "../../src/store/lists.ts";
import { conditions } from "../../src/store/newest-reads.ts";
import { mostSpecificScope } from "../../src/identity/most-specific-scope.ts";
import { TooMuchWork } from "../../src/lib/bounded-work.ts";
import { latest, RANGE_DAYS } from "./transactions.ts";
import type { HandlerDependencies } from "./dependencies.ts";
import type { Handlers } from "./types.ts";

/** Time during which a response adds further days. */
const FURTHER_DAYS_CUTOFF_MS = 1_500;
/** Timeout for MongoDB to read the keys of one day. */
const DAY_READ_TIMEOUT_MS = 2_500;
/** Maximum groups named for a day. */
const NAMED_MAX = 50;

type Answer = z.input<typeof summarizeTransactions.output>;
type Day = Answer["days"][number];

interface Sum {
  readonly count: number;
  readonly amountCents: number;
}
type Group = Sum & { readonly _id: string };

const FIELD_OF = {
  status: "status",
  rail: "rail",
  agent: "agentId",
  team: "teamId",
  project: "projectId",
} as const;

/** Statuses of spent payments. A reversed payment counts as spent on the days before its reversal. */
const SPENT = ["approved", "reversed"] as const;

/**
 * Sums payments by day. Reads a day at a time from one covering index, without records. Later changes on a day
 * (captures, refunds and the like) are read from the few payments that have any.
 */
export function transactionSummaryHandlers({
  clock,
  collections,
  reads,
}: Pick<HandlerDependencies, "clock" | "collections" | "reads">): Pick<Handlers, "summarizeTransactions"> {
  const { transactions } = collections;

  const read = <T extends Document>(hint: string, pipeline: Document[]): Promise<T[]> =>
    transactions.aggregate<T>(pipeline, { hint, maxTimeMS: DAY_READ_TIMEOUT_MS }).toArray();

  async function summed(match: Document, within: Document, field: string): Promise<Group[]> {
    const sum = { _id: `$${field}`, count: { $sum: 1 }, amountCents: { $sum: "$amountCents" } };
    const moved = { _id: `$${field}`, amountCents: { $sum: "$moved.cents" } };
    const [made, changed] = await Promise.all([
      read<Group>(SUMMARY_INDEX, [{ $match: { ...match, createdAt: within } }, { $group: sum }]),
      read<Omit<Group, "count">>(MOVED_INDEX, [...movedWithin(match, within), { $group: moved }]),
    ]);
    return inOrder(made, changed);
  }

  /** Returns the newest time within a range at which matching payments changed; null if there is none. */
  async function movedLast(match: Document, within: Document): Promise<Date | null> {
    const newest = { $group: { _id: null, at: { $max: "$moved.at" } } };
    const [last] = await read<{ at: Date }>(MOVED_INDEX, [...movedWithin(match, within), newest]);
    return last?.at ?? null;
  }

  /** Returns the newest day before a time with any matching payment or change; null if there is none. */
  async function dayBefore(match: Document, until: Date, since: Date | null, days: CalendarDays) {
    const createdAt = { $lt: until, ...(since === null ? {} : { $gte: since }) };
    const [last] = await transactions
      .find({ ...match, createdAt }, { hint: SUMMARY_INDEX, projection: { _id: 0, createdAt: 1 } })
      .sort({ createdAt: -1 })
      .limit(1)
      .maxTimeMS(DAY_READ_TIMEOUT_MS)
      .toArray();
    const made = last === undefined ? null : days.of(last.createdAt);
    // On later days no payment was made, so few payments changed there.
    const from = latest(since, made?.until ?? null);
    const moved = await movedLast(match, { $lt: until, ...(from === null ? {} : { $gte: from }) });
    return moved === null ? made : days.of(moved);
  }

  return {
    async summarizeTransactions({ query }, { principal: { organizationId }, target: { bindingFilter } }) {
      const { before, from, groupBy, projectId, status, teamId, to, type, tz } = query;
      const { range = from === undefined ? "30d" : "all" } = query;
      const containers = { projectId, teamId, agentId: agentIn(query) };
      const scope = await mostSpecificScope(collections, organizationId, containers, bindingFilter);
      if (scope === null) return ok({ body: { days: [], nextBefore: null } });
      const match = {
        organizationId,
        ...conditions(scope),
        ...definedFields({ rail: type }),
        ...(status === undefined ? {} : { status: status === "spent" ? { $in: [...SPENT] } : status }),
        ...amountsWithin(query),
      };
      const calendar = new CalendarDays(tz);
      const now = clock();
      // Whole days, including the current one.
      const whole =
        range === "all"
          ? null
          : calendar.of(new Date(now.getTime() - (RANGE_DAYS[range] - 1) * 86_400_000)).from;
      const since = latest(whole, from === undefined ? null : new Date(from));
      const newest = before === undefined ? calendar.of(now).until : calendar.named(before).from;
      const end = to === undefined || new Date(to) > newest ? newest : new Date(to);
      const next = async (until: Date) => {
        const day = await dayBefore(match, until, since, calendar);
        if (day === null) return null;
        const within = { $gte: latest(day.from, since), $lt: until < day.until ? until : day.until };
        const groups = await summed(match, within, FIELD_OF[groupBy]);
        return { from: day.from, day: dayOf(day, groups) };
      };
      // Each day is a separate turn, so that other organizations' reads interleave with a long history.
      return ok({ body: await daysBefore(end, (until) => reads.run(() => next(until), organizationId)) });
    },
  };
}

/** Returns a pipeline with one document for each change within a range. */
const movedWithin = (match: Document, within: Document): Document[] => [
  { $match: { ...match, moved: { $elemMatch: { at: within } } } },
  { $unwind: "$moved" },
  { $match: { "moved.at": within } },
];

/** Applies changes to the groups. Returns the largest sum first. */
function inOrder(made: readonly Group[], changed: readonly Omit<Group, "count">[]): Group[] {
  const groups = new Map(made.map((group) => [group._id, group]));
  for (const { _id, amountCents } of changed) {
    const { amountCents: before, count } = groups.get(_id) ?? { amountCents: 0, count: 0 };
    groups.set(_id, { _id, count, amountCents: wholeMc(before + amountCents) });
  }
  return [...groups.values()].toSorted(
    (a, b) => b.amountCents - a.amountCents || b.count - a.count || (a._id < b._id ? -1 : 1),
  );
}

/** Returns days from the newest on, until there are no more, the time is used up, or the read queue is full. */
async function daysBefore(
  first: Date,
  next: (until: Date) => Promise<{ readonly from: Date; readonly day: Day } | null>,
): Promise<Answer> {
  const stopAtMs = performance.now() + FURTHER_DAYS_CUTOFF_MS;
  const days: Day[] = [];
  let until = first;
  while (days.length === 0 || performance.now() <= stopAtMs) {
    try {
      const found = await next(until);
      if (found === null) return { days, nextBefore: null };
      days.push(found.day);
      until = found.from;
    } catch (error) {
      if (!(error instanceof TooMuchWork) || days.length === 0) throw error;
      break;
    }
  }
  return { days, nextBefore: days.at(-1)?.day ?? null };
}

function dayOf({ day }: CalendarDay, groups: readonly Group[]): Day {
  const [shown, rest] = [groups.slice(0, NAMED_MAX), groups.slice(NAMED_MAX)];
  return {
    day,
    ...totalOf(groups),
    groups: shown.map(({ _id: group, amountCents, count }) => ({
      group,
      count,
      amountCents: Math.ceil(amountCents),
    })),
    others: rest.length === 0 ? null : totalOf(rest),
  };
}

const totalOf = (sums: readonly Sum[]): Sum => ({
  count: sums.reduce((total, { count }) => total + count, 0),
  amountCents: Math.ceil(wholeMc(sums.reduce((total, { amountCents }) => total + amountCents, 0))),
});

/** Rounds a sum of cents, some with thousandths, to remove floating-point error. */
const wholeMc = (cents: number): number => Math.round(cents * MC_PER_CENT) / MC_PER_CENT;
