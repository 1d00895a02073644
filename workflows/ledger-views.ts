import { remainingOf, usedCents } from "../src/domain/money.ts";
import { fillOf } from "../src/domain/ledger/capacity.ts";
import { remainingCents } from "../src/domain/ledger/caps.ts";
import { raiseBasis, shortfalls } from "../src/domain/ledger/raises.ts";
import { assess } from "../src/domain/ledger/pay.ts";
import {
  type Account,
  type Ledger,
  type Level,
  levelOf,
  NO_TOTALS,
  type AccountStatus,
  summaryOf,
  type Totals,
} from "../src/domain/ledger/state.ts";
import { countToday, countWithinHour, spentToday } from "../src/domain/ledger/usage.ts";
import { ledgerBytes } from "../src/domain/ledger/weight.ts";
import { limitNow, withoutEnded } from "../src/domain/ledger/increases.ts";
import { boundsNow, shownLimit, usesOf } from "../src/domain/ledger/windows.ts";
import type { WindowBounds } from "../src/domain/ledger/calendar.ts";
import type {
  AccountQueryInput,
  AccountView,
  AccountSnapshot,
  BudgetView,
  LevelRest,
  LevelSnapshot,
  SnapshotPage,
  SnapshotQueryInput,
  CapsView,
  LedgerStateView,
  LevelView,
  TeamBudgetView,
} from "../src/messages/ledger.ts";

/** Returns the account; null if there is none, or none any more. */
export function accountView(
  ledger: Ledger,
  { agentId, now, payment = null, raiseMc }: AccountQueryInput,
  ledgerNow: number,
): AccountView | null {
  const account = ledger.accounts.get(agentId);
  if (account === undefined) return null;
  const { pausedAt, policy, policyVersion, status, teamId, usage } = account;
  const at = Math.max(now, ledgerNow);
  const bounds = boundsNow(ledger, at);
  const spendLimits = usesOf(policy, usage.windows, bounds).map(shownLimit);
  const team = levelRest(levelOf(ledger, teamId), bounds);
  const project = levelRest(ledger.project, bounds);
  return {
    status,
    pausedAt,
    policy: withoutEnded(policy, bounds.at),
    policyVersion,
    spentCents: usedCents(usage.spentMc),
    reservedCents: usedCents(usage.reservedMc),
    remainingCents: remainingOf(policy.budgetCents, usage.spentMc + usage.reservedMc),
    todayCents: usedCents(spentToday(usage, at).amountMc),
    lastHourCount: countWithinHour(usage, at),
    todayCount: countToday(usage, at),
    assessment: payment === null ? null : assess(ledger, account, payment, at),
    shortfalls: raiseMc === undefined ? [] : shortfalls(ledger, account, raiseMc, at),
    raiseBasis: raiseBasis(ledger, account),
    spendLimits,
    team,
    project,
    spendableCents: Math.min(
      ownRestCents(account, at, bounds),
      ...[team, project].flatMap((level) => level.remainingCents ?? []),
      ...[{ spendLimits }, team, project].flatMap((each) =>
        each.spendLimits.map((limit) => limit.remainingCents),
      ),
    ),
  };
}

/** Returns the remainder of an agent's budget and of its daily limit. */
function ownRestCents({ policy, usage }: Account, at: number, bounds: WindowBounds): number {
  const { budgetCents, dailySpendLimitCents } = policy;
  const ofBudget = remainingOf(budgetCents, usage.spentMc + usage.reservedMc);
  if (dailySpendLimitCents === null) return ofBudget;
  const limitCents = limitNow(policy, "daily_spend", dailySpendLimitCents, bounds.at);
  return Math.min(ofBudget, remainingOf(limitCents, spentToday(usage, at).amountMc));
}

const levelRest = ({ cap, totals, windows }: Level, bounds: WindowBounds): LevelRest => ({
  remainingCents: remainingCents(cap, totals),
  spendLimits: usesOf(cap, windows, bounds).map(shownLimit),
});

const levelView = ({ cap, totals }: Level): LevelView => ({ cap, totals });

const budgetView = (level: Level, bounds: WindowBounds): BudgetView => ({
  cap: withoutEnded(level.cap, bounds.at),
  totals: level.totals,
  spendLimits: levelRest(level, bounds).spendLimits,
});

export function capsView(ledger: Ledger, now: number): CapsView {
  const { calendar, project, teams } = ledger;
  const bounds = boundsNow(ledger, now);
  return {
    calendar,
    project: budgetView(project, bounds),
    teams: Object.fromEntries([...teams].map(([teamId, level]) => [teamId, budgetView(level, bounds)])),
  };
}

export const teamBudgetView = (ledger: Ledger, teamId: string, now: number): TeamBudgetView => ({
  ...budgetView(levelOf(ledger, teamId), boundsNow(ledger, now)),
  agents: Object.fromEntries(
    [...ledger.accounts.values()]
      .filter((account) => account.teamId === teamId && account.status !== "closed")
      .map(({ agentId, policy }) => [agentId, policy.budgetCents]),
  ),
});

export function ledgerStateView(ledger: Ledger, now: number): LedgerStateView {
  const accounts: Record<AccountStatus, number> = { active: 0, paused: 0, closed: 0 };
  for (const { status } of ledger.accounts.values()) accounts[status] += 1;
  return {
    ...capsView(ledger, now),
    accounts,
    droppedAccounts: ledger.droppedAccounts,
    openPayments: ledger.openPayments,
    closedKeys: ledger.keys.count,
    weightBytes: ledgerBytes(ledger),
    fill: fillOf(ledger),
    revision: ledger.revision,
    recordedRevision: ledger.recordedRevision,
  };
}

export function snapshotPage(ledger: Ledger, { after, limit }: SnapshotQueryInput): SnapshotPage {
  const { accounts, droppedAccounts } = ledger;
  const ids = [...accounts.keys()].filter((agentId) => after === null || agentId > after).toSorted();
  const page = ids.slice(0, limit).flatMap((agentId) => accounts.get(agentId) ?? []);
  return {
    accounts: page.map(accountSnapshot),
    levels: levelSnapshots(ledger),
    droppedAccounts,
    hasMore: ids.length > limit,
  };
}

function levelSnapshots({ accounts, project, teams }: Ledger): LevelSnapshot[] {
  const sums = new Map<string | null, Totals>();
  const add = (teamId: string | null, { reservedMc, spentMc }: Totals): void => {
    const sum = sums.get(teamId) ?? NO_TOTALS;
    sums.set(teamId, {
      spentMc: sum.spentMc + spentMc,
      reservedMc: sum.reservedMc + reservedMc,
    });
  };
  for (const { teamId, usage } of accounts.values()) {
    add(teamId, usage);
    add(null, usage);
  }
  return [[null, project] as const, ...teams].map(([teamId, level]) => ({
    ...levelView(level),
    teamId,
    recordedCapVersion: level.recordedCapVersion,
    rulesVersion: level.rulesVersion,
    accounts: sums.get(teamId) ?? NO_TOTALS,
  }));
}

const accountSnapshot = (account: Account): AccountSnapshot => ({
  ...summaryOf(account),
  teamId: account.teamId,
  name: account.name,
  keyId: account.keyId,
  confirmedRevision: account.confirmedRevision,
  sequence: account.sequence,
  open: [...account.open.values()].map(({ confirmedRevision, isWithdrawn = false, payment }) => ({
    payment,
    confirmedRevision,
    isWithdrawn,
  })),
});
