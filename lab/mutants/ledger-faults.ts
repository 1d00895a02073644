import { judge } from "../../src/domain/ledger/judge.ts";
import { packLedger } from "../../src/domain/ledger/pack.ts";
import type { CommandOf, LedgerCommand, LedgerReply } from "../../src/domain/ledger/commands.ts";
import {
  type Account,
  type Ledger,
  type LedgerBounds,
  type Level,
  levelOf,
  type OpenPayment,
} from "../../src/domain/ledger/state.ts";
import type { BudgetPolicy } from "../../src/domain/ledger/policy.ts";
import type { Usage } from "../../src/domain/ledger/usage.ts";
import { type LedgerDomain, SOUND } from "../../test/domain/ledger/world.ts";

/** Ways to put a fault into the ledger that the book watches. */

export type Judge = typeof judge;
type Kind = LedgerCommand["kind"];

export const judging = (faulty: Judge): LedgerDomain => ({ ...SOUND, judge: faulty });

/** Before a command is judged, something is done to it, or to the ledger. */
export const before = (
  change: (ledger: Ledger, command: LedgerCommand, now: number) => LedgerCommand | void,
): LedgerDomain =>
  judging((ledger, command, now) => judge(ledger, change(ledger, command, now) ?? command, now));

/** Takes a closed payment's record as current, however old it is. */
export function withAnyRecord({ keys }: Ledger, command: CommandOf<"book">): CommandOf<"book"> {
  const ofAgent = keys.byAgent.get(command.agentId);
  for (const [keyHash, [closedAs, createdAt, fingerprint]] of ofAgent ?? [])
    ofAgent?.set(keyHash, [closedAs, createdAt, fingerprint, 0]);
  return { ...command, recordsCheckedThrough: Number.MAX_SAFE_INTEGER };
}

/** The account that a command is about, before and after. */
export interface Judged {
  readonly ledger: Ledger;
  readonly command: LedgerCommand;
  readonly reply: LedgerReply;
  readonly now: number;
  /** The account before and after; both undefined where the command is about none. */
  readonly was: Account | undefined;
  readonly is: Account | undefined;
}

/** And after it was judged. */
export const after = (change: (judged: Judged) => void): LedgerDomain =>
  judging((ledger, command, now) => {
    const was = accountOf(ledger, command);
    const reply = judge(ledger, command, now);
    change({ ledger, command, reply, now, was, is: accountOf(ledger, command) });
    return reply;
  });

/** A command is judged soundly, and answered otherwise. */
export const replyingOtherwise = (change: (reply: LedgerReply) => LedgerReply): LedgerDomain =>
  judging((ledger, command, now) => change(judge(ledger, command, now)));

export const accountOf = (ledger: Ledger, command: LedgerCommand): Account | undefined =>
  "agentId" in command ? ledger.accounts.get(command.agentId) : undefined;

/** Puts an account in another's place, as a draft would. */
export function put(ledger: Ledger, account: Account, change: Partial<Account>): Account {
  const changed = { ...account, ...change };
  ledger.accounts.set(account.agentId, changed);
  return changed;
}

export const putUsage = (ledger: Ledger, account: Account, change: Partial<Usage>): Account =>
  put(ledger, account, { usage: { ...account.usage, ...change } });

export const putDay = (ledger: Ledger, account: Account, change: Partial<Usage["day"]>): Account =>
  putUsage(ledger, account, { day: { ...account.usage.day, ...change } });

export function putOpen(ledger: Ledger, account: Account, id: string, change: Partial<OpenPayment>): void {
  const open = account.open.get(id);
  if (open !== undefined)
    put(ledger, account, { open: new Map(account.open).set(id, { ...open, ...change }) });
}

export function putLevel(ledger: Ledger, teamId: string | null, change: Partial<Level>): void {
  if (teamId === null) ledger.project = { ...ledger.project, ...change };
  else ledger.teams.set(teamId, { ...levelOf(ledger, teamId), ...change });
}

export function addTotals(ledger: Ledger, teamId: string | null, spentMc: number, reservedMc: number): void {
  const { totals } = teamId === null ? ledger.project : levelOf(ledger, teamId);
  const changed = {
    spentMc: totals.spentMc + spentMc,
    reservedMc: totals.reservedMc + reservedMc,
  };
  putLevel(ledger, teamId, { totals: changed });
}

/** Commands of these kinds are judged as if their account were another; what they do not change stays as it was. */
export const judgingAs = (
  kinds: readonly Kind[],
  as: (account: Account, command: LedgerCommand) => Partial<Account>,
): LedgerDomain =>
  judging((ledger, command, now) => {
    const was = accountOf(ledger, command);
    if (was === undefined || !kinds.includes(command.kind)) return judge(ledger, command, now);
    const pretended = as(was, command);
    put(ledger, was, pretended);
    const reply = judge(ledger, command, now);
    const is = ledger.accounts.get(was.agentId);
    if (is !== undefined) put(ledger, is, restored(was, is, pretended));
    return reply;
  });

/** Of what was pretended, the unchanged part, as it really was. */
const restored = (was: Account, is: Account, pretended: Partial<Account>): Partial<Account> => {
  const names = Object.keys(pretended) as (keyof Account)[];
  return Object.fromEntries(
    names.filter((name) => is[name] === pretended[name]).map((name) => [name, was[name]]),
  );
};

const PAYING = ["pay", "approve"] as const;

/** Payments and approvals are judged under another policy than the agent's own. */
export const under = (policyOf: (policy: BudgetPolicy) => Partial<BudgetPolicy>): LedgerDomain =>
  judgingAs(PAYING, ({ policy }) => ({ policy: { ...policy, ...policyOf(policy) } }));

/** Commands of these kinds are judged under other caps. */
export const underCaps = (
  kinds: readonly Kind[],
  capOf: (
    level: "team" | "project",
    capCents: number,
    ledger: Ledger,
    command: LedgerCommand,
  ) => number | null,
): LedgerDomain =>
  judging((ledger, command, now) => {
    const account = accountOf(ledger, command);
    if (account === undefined || !kinds.includes(command.kind)) return judge(ledger, command, now);
    const places = [account.teamId, null] as const;
    const caps = places.map((teamId) => capAt(ledger, teamId));
    for (const [index, teamId] of places.entries()) {
      const cap = caps[index];
      if (cap === undefined || cap.capCents === null) continue;
      const level = teamId === null ? "project" : "team";
      putLevel(ledger, teamId, { cap: { ...cap, capCents: capOf(level, cap.capCents, ledger, command) } });
    }
    const reply = judge(ledger, command, now);
    for (const [index, teamId] of places.entries()) {
      const cap = caps[index];
      if (cap !== undefined && cap.capCents !== null) putLevel(ledger, teamId, { cap });
    }
    return reply;
  });

const capAt = (ledger: Ledger, teamId: string | null) =>
  (teamId === null ? ledger.project : levelOf(ledger, teamId)).cap;

/** Returns the amount that a command released of what the account held or had spent. */
export function releasedMc({ is, was }: Judged): number {
  if (was === undefined || is === undefined) return 0;
  return Math.max(0, usedOf(was) - usedOf(is));
}

const usedOf = ({ usage }: Account): number => usage.spentMc + usage.reservedMc;

export const onRelease = (change: (ledger: Ledger, account: Account, mc: number) => void): LedgerDomain =>
  after((judged) => {
    const mc = releasedMc(judged);
    if (mc > 0 && judged.is !== undefined) change(judged.ledger, judged.is, mc);
  });

/** The ledger goes on in a new run with something else than it had. */
export const rollingOver = (lose: (ledger: Ledger) => Partial<Ledger>): LedgerDomain => ({
  ...SOUND,
  pack: (ledger, now) => packLedger({ ...ledger, ...lose(ledger) }, now),
});

export const losingOfAccounts = (lose: (account: Account) => Partial<Account>): LedgerDomain =>
  rollingOver(({ accounts }) => ({
    accounts: new Map([...accounts].map(([id, account]) => [id, { ...account, ...lose(account) }])),
  }));

export const losingOfOpen = (lose: (open: OpenPayment) => OpenPayment): LedgerDomain =>
  losingOfAccounts(({ open }) => ({ open: new Map([...open].map(([id, each]) => [id, lose(each)])) }));

export const losingOfLevels = (lose: (level: Level) => Partial<Level>): LedgerDomain =>
  rollingOver(({ project, teams }) => ({
    project: { ...project, ...lose(project) },
    teams: new Map([...teams].map(([id, team]) => [id, { ...team, ...lose(team) }])),
  }));

/** Commands to which it applies are judged as if the ledger had other bounds. */
export const unbounded = (
  bounds: Partial<LedgerBounds>,
  applies: (ledger: Ledger, command: LedgerCommand) => boolean = () => true,
): LedgerDomain =>
  judging((ledger, command, now) => {
    if (!applies(ledger, command)) return judge(ledger, command, now);
    const loose = { ...ledger.bounds, ...bounds };
    const seen = new Proxy(ledger, {
      get: (target, name): unknown => (name === "bounds" ? loose : Reflect.get(target, name)),
    });
    return judge(seen, command, now);
  });

export const plus = (limit: number | null, more: number): number | null =>
  limit === null ? null : Math.max(0, limit + more);

/** Commands that are judged between a read and what is written for it. */
const AWAITED_COMMANDS = 6;

/** Judges payments by what was used some commands ago: read, then awaited, then written. */
export function readBeforeAwait(): Judge {
  const read: Level["totals"][] = [];
  return (ledger, command, now) => {
    const real = ledger.project.totals;
    const stale = read.at(0) ?? real;
    read.push(real);
    if (read.length > AWAITED_COMMANDS) read.shift();
    if (command.kind !== "pay") return judge(ledger, command, now);
    putLevel(ledger, null, { totals: stale });
    const reply = judge(ledger, command, now);
    const { reservedMc, spentMc } = ledger.project.totals;
    putLevel(ledger, null, { totals: real });
    addTotals(ledger, null, spentMc - stale.spentMc, reservedMc - stale.reservedMc);
    return reply;
  };
}
