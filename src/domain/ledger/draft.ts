import { moneyOf, type StoredPayment, withoutTexts } from "./payment.ts";
import { countPayment, rollDay, type Usage } from "./usage.ts";
import { lifecycleEventId, type LifecycleEventType } from "../events.ts";
import { type Closing, dropAgentKeys, addClosedKey } from "./closed-keys.ts";
import { type Account, type Ledger, type Level, levelOf, type OpenPayment, type Totals } from "./state.ts";
import { weightOf } from "./weight.ts";

/**
 * The changes of one command to a ledger, until they are committed. Accounts are copied when a command first asks for them,
 * levels are replaced, and keys are noted: a command that throws half-way leaves the ledger as it was.
 */
export class Draft {
  readonly ledger: Ledger;
  readonly now: number;
  readonly #accounts = new Map<string, Account>();
  readonly #teams = new Map<string, Level>();
  #project: Level | null = null;
  readonly #closings: Closing[] = [];

  constructor(ledger: Ledger, now: number) {
    this.ledger = ledger;
    this.now = now;
  }

  /** The account to change; undefined where there is none, or none any more. */
  account(agentId: string): Account | undefined {
    const drafted = this.#accounts.get(agentId);
    if (drafted !== undefined) return drafted;
    const account = this.ledger.accounts.get(agentId);
    if (account === undefined) return undefined;
    const copy = copyOf(account);
    this.#accounts.set(agentId, copy);
    return copy;
  }

  open(account: Account): void {
    this.#accounts.set(account.agentId, account);
  }

  /** The project (null), or one of its teams. */
  level(teamId: string | null): Level {
    if (teamId === null) return this.#project ?? this.ledger.project;
    return this.#teams.get(teamId) ?? levelOf(this.ledger, teamId);
  }

  setLevel(teamId: string | null, change: Partial<Level>): void {
    const level = { ...this.level(teamId), ...change };
    if (teamId === null) this.#project = level;
    else this.#teams.set(teamId, level);
  }

  /** A payment that was decided: held and counted at every level, unless it was denied. `windowsMs`: of the rules in force. */
  add(account: Account, payment: StoredPayment, windowsMs: readonly number[]): void {
    account.sequence = payment.sequence;
    setOpen(account, payment, { changedAt: this.now, confirmedRevision: 0 });
    if (payment.denial !== null) return;
    countPayment(account.usage, this.now, windowsMs);
    move(account.usage, payment, "none", moneyOf(payment));
    this.touch(account);
  }

  /** A payment that has become something else: what it holds or has spent follows from its status alone. */
  change(account: Account, payment: StoredPayment): void {
    const open = account.open.get(payment.request.transactionId);
    if (open === undefined) throw new Error("a payment changed that is not open");
    const before = open.payment;
    if (payment.revision <= before.revision) throw new Error("a payment changed without a new revision");
    setOpen(account, payment, { ...open, changedAt: this.now });
    const isMoved = moneyOf(before) !== moneyOf(payment);
    // The day's spend moves with a payment that is counted on another day.
    if (isMoved || before.day !== payment.day) {
      rollDay(account.usage, this.now);
      move(account.usage, before, moneyOf(before), "none");
      move(account.usage, payment, "none", moneyOf(payment));
    }
    if (isMoved) this.touch(account);
  }

  /**
   * The effects of this revision are done, its record among them: from now on the ledger reads the texts there. A payment that changes no
   * more is closed with its last one.
   */
  confirm(account: Account, transactionId: string, revision: number): void {
    const open = account.open.get(transactionId);
    if (open === undefined) return;
    const { payment } = open;
    const confirmedRevision = Math.max(open.confirmedRevision, Math.min(revision, payment.revision));
    const closes = payment.phase === "done" && confirmedRevision === payment.revision;
    if (closes) this.#close(account, payment);
    else if (confirmedRevision === 0) account.open.set(transactionId, { ...open, confirmedRevision });
    else setOpen(account, withoutTexts(payment), { ...open, confirmedRevision });
  }

  #close(account: Account, { createdAt, request, status }: StoredPayment): void {
    account.open.delete(request.transactionId);
    account.closed += 1;
    const { keyHash, fingerprint } = request;
    const closedFingerprint = status === "denied" ? null : fingerprint;
    this.#closings.push({
      agentId: account.agentId,
      keyHash,
      key: [account.closed, createdAt, closedFingerprint],
    });
  }

  /** Marks a change of the account that the agent's record shows. */
  touch(account: Account): void {
    account.revision += 1;
    account.updatedAt = this.now;
  }

  /** Marks the change and adds an event to the outbox. */
  emit(account: Account, type: LifecycleEventType): void {
    this.touch(account);
    const { agentId, revision } = account;
    const event = { id: lifecycleEventId(agentId, "account", revision), type, at: this.now, revision };
    account.outbox = [...account.outbox, event];
  }

  /** Commits all changes. Throws, with nothing changed, where it would break what always holds. */
  commit(): void {
    for (const account of this.#accounts.values()) assertSound(account);
    this.#raiseVersions();
    const { ledger } = this;
    if (this.#project !== null) ledger.project = this.#project;
    for (const [teamId, team] of this.#teams) ledger.teams.set(teamId, team);
    for (const account of this.#accounts.values()) this.#put(account);
    for (const closing of this.#closings) this.#addClosed(closing);
  }

  /** A budget's version covers its children: a changed one makes it stale, whichever command has changed it. */
  #raiseVersions(): void {
    for (const { agentId, policy, teamId } of this.#accounts.values()) {
      const before = this.ledger.accounts.get(agentId);
      if (before !== undefined && before.policy.budgetCents !== policy.budgetCents)
        this.#raiseVersion(teamId);
    }
    for (const [teamId, { cap }] of this.#teams)
      if (cap.capCents !== levelOf(this.ledger, teamId).cap.capCents) this.#raiseVersion(null);
  }

  /** Raised once per command, by its own replacement or by the first of its children. */
  #raiseVersion(teamId: string | null): void {
    const { cap, capChangedAt, recordedCapVersion } = this.level(teamId);
    const before = teamId === null ? this.ledger.project : levelOf(this.ledger, teamId);
    if (cap.version > before.cap.version) return;
    // The oldest unrecorded change stays due, so that a budget that changes all the time is recorded, too.
    const isRecorded = recordedCapVersion === cap.version;
    const raised = { ...cap, version: cap.version + 1 };
    this.setLevel(teamId, { cap: raised, capChangedAt: isRecorded ? this.now : capChangedAt });
  }

  #put(account: Account): void {
    const { ledger } = this;
    const { agentId, teamId, usage } = account;
    const before = ledger.accounts.get(agentId);
    const isDropped = isFinished(account);
    const spentCents = usage.spentCents - (before?.usage.spentCents ?? 0);
    const reservedCents = usage.reservedCents - (before?.usage.reservedCents ?? 0);
    const team = levelOf(ledger, teamId);
    ledger.teams.set(teamId, { ...team, totals: plus(team.totals, spentCents, reservedCents) });
    ledger.project = { ...ledger.project, totals: plus(ledger.project.totals, spentCents, reservedCents) };
    ledger.openPayments += account.open.size - (before?.open.size ?? 0);
    account.weightBytes = isDropped ? 0 : weightOf(account, this.now);
    ledger.weightBytes += account.weightBytes - (before?.weightBytes ?? 0);
    ledger.touched.add(agentId);
    if (!isDropped) return void ledger.accounts.set(agentId, account);
    ledger.accounts.delete(agentId);
    ledger.droppedAccounts += 1;
    dropAgentKeys(ledger.keys, agentId);
  }

  #addClosed(closing: Closing): void {
    const { accounts, bounds, keys } = this.ledger;
    if (!accounts.has(closing.agentId)) return;
    for (const [agentId, closedAs] of addClosedKey(keys, closing, bounds.closedKeys)) {
      const account = accounts.get(agentId);
      if (account !== undefined) account.evictedThrough = Math.max(account.evictedThrough, closedAs);
    }
  }
}

/** Whether nothing of a closed account is left to execute or publish: its outcome is in the records. */
const isFinished = ({ confirmedRevision, open, outbox, revision, status }: Account): boolean =>
  status === "closed" && open.size === 0 && outbox.length === 0 && confirmedRevision >= revision;

const plus = (totals: Totals, spentCents: number, reservedCents: number): Totals => ({
  spentCents: totals.spentCents + spentCents,
  reservedCents: totals.reservedCents + reservedCents,
});

const setOpen = (account: Account, payment: StoredPayment, rest: Omit<OpenPayment, "payment">): void =>
  void account.open.set(payment.request.transactionId, { ...rest, payment });

/** A copy that shares what is never changed in place. */
function copyOf(account: Account): Account {
  const { open, usage } = account;
  return { ...account, open: new Map(open), usage: { ...usage, day: { ...usage.day } } };
}

type Money = ReturnType<typeof moneyOf>;

/** Moves a payment's amount between what is held and what is spent; the day's follows only on the day it counts. */
function move(usage: Usage, { day, request: { amountCents } }: StoredPayment, from: Money, to: Money): void {
  if (from === "reserved") usage.reservedCents -= amountCents;
  if (from === "spent") usage.spentCents -= amountCents;
  if (to === "reserved") usage.reservedCents += amountCents;
  if (to === "spent") usage.spentCents += amountCents;
  if (day !== usage.day.date) return;
  if (from !== "none") usage.day.amountCents -= amountCents;
  if (to !== "none") usage.day.amountCents += amountCents;
}

const isAmount = (cents: number): boolean => Number.isSafeInteger(cents) && cents >= 0;

/** The invariant that no command may break. */
function assertSound({ usage: { reservedCents, spentCents } }: Account): void {
  if (isAmount(reservedCents) && isAmount(spentCents)) return;
  throw new Error(
    `an account would hold ${String(reservedCents)} and have spent ${String(spentCents)} cents`,
  );
}
