import { type Domain, realDomain } from "../../../lab/simulation/domain.ts";
import type { CommandOf, LedgerCommand } from "../../../src/domain/ledger/commands.ts";
import type { Increase, Increased } from "../../../src/domain/ledger/increases.ts";
import { judge } from "../../../src/domain/ledger/judge.ts";
import { type Account, type Ledger, type Level, NO_CAP } from "../../../src/domain/ledger/state.ts";

/** Domains that judge or roll over as the real one does, but for one fault. */

type Judge = typeof judge;

export const judging = (faulty: Judge): Domain => ({ ...realDomain, judge: faulty });

/** Before a command is judged, something is done to it, or to the ledger. */
export const before = (
  change: (ledger: Ledger, command: LedgerCommand, now: number) => LedgerCommand,
): Domain => judging((ledger, command, now) => judge(ledger, change(ledger, command, now), now));

/** And after it. */
export const after = (change: (ledger: Ledger, command: LedgerCommand) => void): Domain =>
  judging((ledger, command, now) => {
    const reply = judge(ledger, command, now);
    change(ledger, command);
    return reply;
  });

export const PAYING: readonly LedgerCommand["kind"][] = ["pay", "approve"];

/** Payments and approvals are judged as if these levels were others. */
export function under(
  kinds: readonly LedgerCommand["kind"][],
  as: (level: Level, teamId: string | null) => Level,
): Judge {
  return (ledger, command, now) => {
    if (!kinds.includes(command.kind)) return judge(ledger, command, now);
    const real = new Map<string | null, Level>([[null, ledger.project], ...ledger.teams]);
    const shown = new Map([...real].map(([teamId, level]) => [teamId, as(level, teamId)]));
    put(ledger, (teamId) => shown.get(teamId));
    const reply = judge(ledger, command, now);
    // What it did to the levels is done to the real ones.
    const moved = new Map<string | null, Level>([[null, ledger.project], ...ledger.teams]);
    put(ledger, (teamId) => {
      const [was, is, level] = [shown.get(teamId), moved.get(teamId), real.get(teamId)];
      if (was === undefined || is === undefined || level === undefined) return is;
      const totals = {
        spentMc: level.totals.spentMc + is.totals.spentMc - was.totals.spentMc,
        reservedMc: level.totals.reservedMc + is.totals.reservedMc - was.totals.reservedMc,
      };
      return { ...level, rulesVersion: is.rulesVersion, totals, windows: is.windows };
    });
    return reply;
  };
}

export function put(ledger: Ledger, levelOf: (teamId: string | null) => Level | undefined): void {
  ledger.project = levelOf(null) ?? ledger.project;
  for (const teamId of ledger.teams.keys()) {
    const level = levelOf(teamId);
    if (level !== undefined) ledger.teams.set(teamId, level);
  }
}

export const raised = (level: Level, cents: number): Level => {
  const { capCents } = level.cap;
  return capCents === null ? level : { ...level, cap: { ...level.cap, capCents: capCents + cents } };
};

/** Commands that are judged between a read and what is written for it. */
const AWAITED_COMMANDS = 6;

/** Payments are judged by what was used some commands ago: read, then awaited, then written. */
export function readBeforeAwait(): Judge {
  const read: Map<string | null, Level>[] = [];
  return (ledger, command, now) => {
    const stale = read.at(0);
    read.push(new Map<string | null, Level>([[null, ledger.project], ...ledger.teams]));
    if (read.length > AWAITED_COMMANDS) read.shift();
    const asRead = (level: Level, teamId: string | null): Level => ({
      ...level,
      totals: stale?.get(teamId)?.totals ?? level.totals,
    });
    return under(PAYING, asRead)(ledger, command, now);
  };
}

/** Caps are judged as they were before their newest replacement. */
export function lateCaps(): Judge {
  const known = new Map<string | null, Level["cap"]>();
  const earlier = new Map<string | null, Level["cap"]>();
  return under(PAYING, (level, teamId) => {
    const last = known.get(teamId) ?? NO_CAP;
    if (last.version !== level.cap.version) earlier.set(teamId, last);
    known.set(teamId, level.cap);
    return { ...level, cap: { ...level.cap, capCents: (earlier.get(teamId) ?? level.cap).capCents } };
  });
}

export const changeAccount = (
  ledger: Ledger,
  agentId: string,
  change: (account: Account) => Account,
): void => {
  const account = ledger.accounts.get(agentId);
  if (account !== undefined) ledger.accounts.set(agentId, change({ ...account }));
};

/** Payments and approvals are judged as if agents, teams and the project had these increases. */
export const increased = (as: (increases: readonly Increase[]) => readonly Increase[]): Domain => {
  const shown = <T extends Increased>(set: T): T => ({ ...set, increases: as(set.increases ?? []) });
  const underIncreased = under(PAYING, (level) => ({ ...level, cap: shown(level.cap) }));
  return judging((ledger, command, now) => {
    if (command.kind !== "pay" && command.kind !== "approve") return judge(ledger, command, now);
    const { agentId } = command;
    const real = ledger.accounts.get(agentId)?.policy;
    if (real === undefined) return judge(ledger, command, now);
    changeAccount(ledger, agentId, (account) => ({ ...account, policy: shown(real) }));
    const reply = underIncreased(ledger, command, now);
    changeAccount(ledger, agentId, (account) => ({ ...account, policy: real }));
    return reply;
  });
};

export const granting = (
  change: (command: CommandOf<"grant_raise">, ledger: Ledger, now: number) => LedgerCommand,
): Domain =>
  before((ledger, command, now) => (command.kind === "grant_raise" ? change(command, ledger, now) : command));

export const rollingOver = (lose: (ledger: Ledger) => void): Domain => ({
  ...realDomain,
  rollOverLedger: (ledger, now) => {
    const rolledOver = realDomain.rollOverLedger(ledger, now);
    lose(rolledOver);
    return rolledOver;
  },
});
