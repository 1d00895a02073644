import { remainingOf } from "../src/domain/money.ts";
import { remainingCents } from "../src/domain/ledger/caps.ts";
import { assess } from "../src/domain/ledger/pay.ts";
import {
  type Account,
  type Ledger,
  type Level,
  levelOf,
  NO_TOTALS,
  type Standing,
  summaryOf,
  type Totals,
} from "../src/domain/ledger/state.ts";
import { countToday, countWithinHour, spentToday } from "../src/domain/ledger/usage.ts";
import type {
  AccountQueryInput,
  AccountView,
  BookedAccount,
  BookedLevel,
  BooksPage,
  BooksQueryInput,
  CapsView,
  LedgerStateView,
  LevelView,
  TeamBudgets,
} from "../src/messages/ledger.ts";

/** What a ledger answers who only asks. */

/** Null: there is no such account, or none any more. */
export function accountView(
  ledger: Ledger,
  { agentId, now, payment = null }: AccountQueryInput,
  ledgerNow: number,
): AccountView | null {
  const account = ledger.accounts.get(agentId);
  if (account === undefined) return null;
  const { policy, policyVersion, standing, teamId, usage } = account;
  const at = Math.max(now, ledgerNow);
  const team = levelOf(ledger, teamId);
  return {
    standing,
    policy,
    policyVersion,
    spentCents: usage.spentCents,
    reservedCents: usage.reservedCents,
    remainingCents: remainingOf(policy.budgetCents, usage.spentCents + usage.reservedCents),
    todayCents: spentToday(usage, at).amountCents,
    lastHourCount: countWithinHour(usage, at),
    todayCount: countToday(usage, at),
    assessment: payment === null ? null : assess(ledger, account, payment, at),
    teamRemainingCents: remainingCents(team.cap, team.totals),
    projectRemainingCents: remainingCents(ledger.project.cap, ledger.project.totals),
  };
}

const levelView = ({ cap, totals }: Level): LevelView => ({ cap, totals });

export const capsView = ({ project, teams }: Ledger): CapsView => ({
  project: levelView(project),
  teams: Object.fromEntries([...teams].map(([teamId, level]) => [teamId, levelView(level)])),
});

export const teamBudgets = ({ accounts }: Ledger, teamId: string): TeamBudgets =>
  Object.fromEntries(
    [...accounts.values()]
      .filter((account) => account.teamId === teamId && account.standing !== "closed")
      .map(({ agentId, policy }) => [agentId, policy.budgetCents]),
  );

export function ledgerStateView(ledger: Ledger): LedgerStateView {
  const accounts: Record<Standing, number> = { active: 0, paused: 0, closed: 0 };
  for (const { standing } of ledger.accounts.values()) accounts[standing] += 1;
  return {
    ...capsView(ledger),
    accounts,
    droppedAccounts: ledger.droppedAccounts,
    openPayments: ledger.openPayments,
    rememberedKeys: ledger.keys.count,
    weightBytes: ledger.weightBytes,
    revision: ledger.revision,
    recordedRevision: ledger.recordedRevision,
  };
}

export function booksPage(ledger: Ledger, { after, limit }: BooksQueryInput): BooksPage {
  const { accounts, droppedAccounts } = ledger;
  const ids = [...accounts.keys()].filter((agentId) => after === null || agentId > after).toSorted();
  const page = ids.slice(0, limit).flatMap((agentId) => accounts.get(agentId) ?? []);
  return {
    accounts: page.map(bookedAccount),
    levels: bookedLevels(ledger),
    droppedAccounts,
    hasMore: ids.length > limit,
  };
}

function bookedLevels({ accounts, project, teams }: Ledger): BookedLevel[] {
  const sums = new Map<string | null, Totals>();
  const add = (teamId: string | null, { reservedCents, spentCents }: Totals): void => {
    const sum = sums.get(teamId) ?? NO_TOTALS;
    sums.set(teamId, {
      spentCents: sum.spentCents + spentCents,
      reservedCents: sum.reservedCents + reservedCents,
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

const bookedAccount = (account: Account): BookedAccount => ({
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
