import type { LedgerReply } from "./commands.ts";
import type { Account, Ledger, OpenPayment } from "./state.ts";
import { ledgerBytes, reweigh } from "./weight.ts";

/**
 * Decides whether a ledger has room for one more account or payment. Refusals say which bound was reached and what
 * frees it.
 */

export type TooManyOpen = Extract<LedgerReply, { readonly kind: "too_many_open" }>;
export type ProjectFull = Extract<LedgerReply, { readonly kind: "project_full" }>;

/** Minimum interval between two weighings of all accounts of a ledger that seems full. */
const REWEIGH_INTERVAL_MS = 60_000;

/** Time within which a payment in flight usually ends. */
const IN_FLIGHT_MS = 30_000;

/** Share of a project's open payments that is reserved for agents without an open payment. */
const KEPT_FOR_FIRST = 1 / 10;

/**
 * Returns the refusal of one more payment; null if there is room. An agent's share shrinks as its project's bounds
 * fill, so that greedy agents leave room for others: a first payment is refused only once nothing is left. The refusal
 * is the agent's if the end of its own payments makes room, otherwise the project's.
 */
export function paymentRefused(ledger: Ledger, account: Account, now: number): TooManyOpen | null {
  const { accounts, bounds, openPayments } = ledger;
  const { open, weightBytes } = account;
  const isFirst = open.size === 0;
  const refused = (bound: TooManyOpen["bound"], among: Iterable<Account>): TooManyOpen =>
    tooMany(isFirst ? "project" : "agent", bound, freesAt(among, now));
  if (open.size >= bounds.openOfAgent) return refused("payments", [account]);
  if (!isFirst && weightBytes >= bounds.paidBelowBytesOfAgent) return refused("bytes", [account]);
  const kept = isFirst ? 0 : Math.max(bounds.partsOfRest * open.size, KEPT_FOR_FIRST * bounds.openOfProject);
  if (openPayments + kept >= bounds.openOfProject) return refused("payments", accounts.values());
  const keptBytes = isFirst ? 0 : bounds.partsOfRest * weightBytes;
  return isHeavy(ledger, bounds.paidBelowBytes - keptBytes, now) ? refused("bytes", accounts.values()) : null;
}

/** Returns the refusal of one more account; null if there is room. */
export function accountRefused(ledger: Ledger, now: number): ProjectFull | null {
  const { accounts, bounds } = ledger;
  if (accounts.size >= bounds.accounts) return { kind: "project_full", bound: "accounts" };
  const isFull = isHeavy(ledger, bounds.openedBelowBytes, now, ({ weightBytes }) => weightBytes);
  return isFull ? { kind: "project_full", bound: "bytes" } : null;
}

/** Returns the refusal of a resolution; null if there is room to store the person's name and feedback. */
export const resolutionRefused = (ledger: Ledger, now: number): TooManyOpen | null =>
  isHeavy(ledger, ledger.bounds.resolvedBelowBytes, now)
    ? tooMany("project", "bytes", freesAt(ledger.accounts.values(), now))
    : null;

/**
 * Returns whether there is no room to store the answer to a network's request: an agent's payments take at most the
 * half of what the others leave.
 */
export const isAnswerRefused = (ledger: Ledger, { weightBytes }: Account, now: number): boolean =>
  isHeavy(ledger, ledger.bounds.resolvedBelowBytes - weightBytes, now);

const tooMany = (of: TooManyOpen["of"], bound: TooManyOpen["bound"], at: number | null): TooManyOpen => ({
  kind: "too_many_open",
  of,
  bound,
  freesAt: at,
});

function isHeavy(ledger: Ledger, belowBytes: number, now: number, bytesOf = ledgerBytes): boolean {
  if (bytesOf(ledger) < belowBytes) return false;
  if (Math.abs(now - ledger.weighedAt) < REWEIGH_INTERVAL_MS) return true;
  reweigh(ledger, now);
  return bytesOf(ledger) >= belowBytes;
}

/** Returns when the first open payment ends by itself; null if none is open. */
function freesAt(accounts: Iterable<Account>, now: number): number | null {
  let soonest = Infinity;
  for (const { open } of accounts)
    for (const each of open.values()) soonest = Math.min(soonest, endsAt(each, now));
  return soonest === Infinity ? null : soonest;
}

const endsAt = ({ payment: { approval, phase } }: OpenPayment, now: number): number =>
  phase === "held" && approval !== null ? Math.max(now, approval.expiresAt) : now + IN_FLIGHT_MS;

/** Used fractions of a ledger's bounds, from 0 to 1. */
export interface Fill {
  readonly bytes: number;
  readonly openPayments: number;
  readonly accounts: number;
}

export const fillOf = (ledger: Ledger): Fill => ({
  bytes: part(ledgerBytes(ledger), ledger.bounds.paidBelowBytes),
  openPayments: part(ledger.openPayments, ledger.bounds.openOfProject),
  accounts: part(ledger.accounts.size, ledger.bounds.accounts),
});

const part = (taken: number, of: number): number => Math.round((taken / of) * 1_000) / 1_000;
