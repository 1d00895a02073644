import type { Cap } from "../../../src/domain/ledger/state.ts";
import type { Increase } from "../../../src/domain/ledger/increases.ts";
import type { Books, DecisionEntry, RaiseEntry, TransactionEntry } from "./books.ts";

/** Limits as decisions were made by them, raises, and restrictions. */

/** Sum that granted raises have added to a limit of an agent, its team or its project, over the run. */
export function raisedCents(
  { raises }: Pick<Books, "raises">,
  {
    level,
    limit,
    of,
  }: Pick<RaiseEntry["raised"][number], "level" | "limit"> & { readonly of: string | null },
): number {
  const ids = { agent: "agentId", team: "teamId", project: "projectId" } as const;
  return raises
    .filter((each) => each.status === "granted" && each[ids[level]] === of)
    .flatMap(({ raised }) => raised)
    .filter((each) => each.level === level && each.limit === limit)
    .reduce((sum, { fromCents, toCents }) => sum + toCents - fromCents, 0);
}

/**
 * Compares each decision with its limits: none that was let through was above one, and no limit of a period was above the
 * highest that its owner ever set, with all that raises have added.
 */
export function compareDecisions(books: Books): string[] {
  const byId = new Map(books.transactions.map((transaction) => [transaction.id, transaction]));
  return books.decisions.flatMap((decision) => {
    const transaction = byId.get(decision.id);
    if (transaction === undefined) return [];
    return decision.limits.flatMap((each) => [
      ...exceeded(decision, each),
      ...aboveOwners(books, transaction, each),
    ]);
  });
}

type Limit = DecisionEntry["limits"][number];

function exceeded(
  { amountCents, id, outcome }: DecisionEntry,
  { level, limit, used, value }: Limit,
): string[] {
  const added = limit === "hourly_velocity" || limit === "daily_velocity" ? 1 : amountCents;
  return outcome === "denied" || used + added <= value
    ? []
    : [`${id}: ${outcome} with ${String(used)} of the ${level}'s ${limit} of ${String(value)} used`];
}

function aboveOwners(
  books: Books,
  { agentId, id, projectId, teamId }: TransactionEntry,
  { level, limit, value }: Limit,
): string[] {
  const of = { agent: agentId, team: teamId, project: projectId }[level];
  const most = books.spendLimits.find((each) => each.of === of && each.limit === limit)?.mostCents;
  if (most === undefined) return [];
  const raised = isRaisable(limit) ? raisedCents(books, { level, limit, of }) : 0;
  return value <= most + raised
    ? []
    : [
        `${id}: decided by the ${level}'s ${limit} of ${String(value)}, of ${String(most)} and raises of ${String(raised)}`,
      ];
}

const isRaisable = (limit: Limit["limit"]): limit is RaiseEntry["raised"][number]["limit"] =>
  limit !== "hourly_velocity" && limit !== "daily_velocity";

/** Checks that each increase in a ledger is one that a grant has made, once. */
export function compareIncreases({ accounts, levels, raises }: Books): string[] {
  const granted = new Map(raises.map((raise) => [raise.id, raise]));
  const checked = (
    who: string,
    level: RaiseEntry["raised"][number]["level"],
    increases: readonly Increase[] = [],
  ): string[] =>
    increases.flatMap(({ cents, id, limit }, place) => {
      const raise = granted.get(id);
      const made = raise?.raised.find((each) => each.level === level && each.limit === limit);
      const isFirst = increases.findIndex((each) => each.id === id && each.limit === limit) === place;
      if (!isFirst) return [`${who}: raise ${id} has increased its ${limit} twice`];
      return raise?.status === "granted" && made !== undefined && made.toCents - made.fromCents === cents
        ? []
        : [
            `${who}: its ${limit} is increased by ${String(cents)} for raise ${id}, which granted no such thing`,
          ];
    });
  return [
    ...accounts.flatMap(({ agentId, policy }) => checked(`agent ${agentId}`, "agent", policy.increases)),
    ...levels.flatMap(({ cap, projectId, teamId }: { cap: Cap; projectId: string; teamId: string | null }) =>
      checked(teamId ?? projectId, teamId === null ? "project" : "team", cap.increases),
    ),
  ];
}

/** Checks that nothing was let through that restrictions in force forbade, when it was requested or when it was approved. */
export const compareRestricted = ({ restricted, transactions }: Books): string[] =>
  restricted.flatMap(({ agentIds, from, never, onlyRail, until }) =>
    transactions
      .filter(
        ({ agentId, rail, to }) =>
          agentIds.includes(agentId) && (never.includes(to) || (onlyRail !== null && rail !== onlyRail)),
      )
      .flatMap(({ approvedAt, createdAt, id, status }) => {
        const at = [status === "denied" ? null : createdAt, approvedAt].find(
          (each) => each !== null && each.getTime() > from && each.getTime() < until,
        );
        return at === undefined || at === null
          ? []
          : [`${id}: let through at ${at.toISOString()}, forbidden since ${new Date(from).toISOString()}`];
      }),
  );
