import { NO_MONEY } from "./books.ts";
import type { Calendar, PerPeriod, WindowBounds } from "./calendar.ts";
import { moneyOf, type StoredPayment, withoutTexts, withoutPublished } from "./payment.ts";
import { addedInEach, countedOn, windowAtOf } from "./counted.ts";
import { countPayment, rollDay, type Usage } from "./usage.ts";
import { lifecycleEventId, type LifecycleEventType } from "../events.ts";
import { addClosedKey, type Closing, dropAgentKeys, evictKeys, removeClosedKey } from "./closed-keys.ts";
import { isForeseenCharge } from "./foreseen-charge.ts";
import { type Account, type Ledger, type Level, levelOf, type OpenPayment, type Totals } from "./state.ts";
import { coarserNow, keysMax, levelBytes, weightOf } from "./weight.ts";
import { boundsNow, rolled } from "./windows.ts";

/** An account that a command changes. */
interface Drafted {
  readonly account: Account;
  /** The account as the totals of its levels include it; null for a new one. */
  readonly before: Account | null;
  /** Whether the account had been dropped before. */
  readonly isReturned: boolean;
  /** Amounts that the command adds to windows; null if it moves none. */
  windowed: PerPeriod | null;
}

/**
 * Changes of one command to a ledger, until they are committed. Accounts are copied on first use, levels are replaced,
 * and keys are noted, so that a command that throws half-way leaves the ledger unchanged.
 */
export class Draft {
  readonly ledger: Ledger;
  readonly now: number;
  /** Windows in which this command counts. */
  readonly bounds: WindowBounds;
  /** Whether nobody is told of the decision, so that warnings and explaining limits are omitted. */
  readonly isSilent: boolean;
  readonly #accounts = new Map<string, Drafted>();
  readonly #teams = new Map<string, Level>();
  #project: Level | null = null;
  #calendar: Calendar | null = null;
  readonly #closings: Closing[] = [];
  readonly #reopenings: Pick<Closing, "agentId" | "keyHash">[] = [];

  constructor(ledger: Ledger, now: number, isSilent = false) {
    this.ledger = ledger;
    this.now = now;
    this.bounds = boundsNow(ledger, now);
    this.isSilent = isSilent;
  }

  /** Returns an account to change; undefined if there is none, or none any more. */
  account(agentId: string): Account | undefined {
    const drafted = this.#accounts.get(agentId);
    if (drafted !== undefined) return drafted.account;
    const before = this.ledger.accounts.get(agentId);
    if (before === undefined) return undefined;
    const account = copyOf(before);
    this.#accounts.set(agentId, { account, before, isReturned: false, windowed: null });
    return account;
  }

  open(account: Account): void {
    this.#accounts.set(account.agentId, { account, before: null, isReturned: false, windowed: null });
  }

  /** Returns the project (null) or one of its teams. */
  level(teamId: string | null): Level {
    if (teamId === null) return this.#project ?? this.ledger.project;
    return this.#teams.get(teamId) ?? levelOf(this.ledger, teamId);
  }

  setLevel(teamId: string | null, change: Partial<Level>): void {
    const level = { ...this.level(teamId), ...change };
    if (teamId === null) this.#project = level;
    else this.#teams.set(teamId, level);
  }

  /** Sets the calendar. Amounts counted so far stay in the project's windows, whose time never goes back. */
  setCalendar(calendar: Calendar): void {
    this.#calendar = calendar;
    this.setLevel(null, { windows: rolled(this.level(null).windows, this.bounds) });
  }

  /** Adds a decided payment, held and counted at every level unless denied. `windowsMs`: of rules in force. */
  add(account: Account, payment: StoredPayment, windowsMs: readonly number[]): void {
    account.sequence = payment.sequence;
    setOpen(account, payment, { changedAt: this.now, confirmedRevision: 0 });
    if (payment.denial !== null) return;
    countPayment(account.usage, this.now, windowsMs, coarserNow(this.ledger, account));
    this.#move(account, null, payment);
    this.touch(account);
    if (payment.phase === "sending") account.foreseenSequence = payment.sequence;
  }

  /** Changes a payment. Where its money is follows from the payment alone. */
  change(account: Account, payment: StoredPayment): void {
    const open = account.open.get(payment.request.transactionId);
    if (open === undefined) throw new Error("a changed payment is not open");
    const before = open.payment;
    if (payment.revision <= before.revision) throw new Error("a payment changed without a new revision");
    setOpen(account, payment, { ...open, changedAt: this.now });
    const [had, has] = [moneyOf(before), moneyOf(payment)];
    const isMoved = had.heldMc !== has.heldMc || had.spentMc !== has.spentMc;
    // Spend of days and windows moves with a payment that is counted in others.
    if (isMoved || before.day !== payment.day || windowAtOf(before) !== windowAtOf(payment)) {
      rollDay(account.usage, this.now);
      this.#move(account, before, payment);
    }
    if (isMoved) this.touch(account, isForeseenCharge(account, before, payment));
  }

  #move(account: Account, before: StoredPayment | null, after: StoredPayment): void {
    move(account.usage, before, after);
    const added = addedInEach(before, after, this.bounds);
    account.usage.windows = rolled(account.usage.windows, this.bounds, added);
    const drafted = this.#accounts.get(account.agentId);
    if (drafted === undefined) throw new Error("an account was changed outside of its draft");
    const others = drafted.windowed;
    drafted.windowed = others === null ? added : added.map((mc, place) => mc + (others[place] ?? 0));
  }

  /** Reopens a closed payment from its record. Moves no money: the totals already include the payment. */
  reopen(account: Account, payment: StoredPayment): void {
    const { revision } = payment;
    setOpen(account, withoutTexts(payment), { changedAt: this.now, confirmedRevision: revision });
    this.#reopenings.push({ agentId: account.agentId, keyHash: payment.request.keyHash });
  }

  /** Brings back the dropped account of an archived agent from its records. */
  bringBack(account: Account): void {
    const before = copyOf(account);
    this.#accounts.set(account.agentId, { account, before, isReturned: true, windowed: null });
  }

  /**
   * Confirms the effects of a revision, including its record, from which the ledger reads the texts from now on. The
   * last confirmation of a finished payment closes it.
   */
  confirm(account: Account, transactionId: string, revision: number): void {
    const open = account.open.get(transactionId);
    if (open === undefined) return;
    const { payment } = open;
    const confirmedRevision = Math.max(open.confirmedRevision, Math.min(revision, payment.revision));
    const closes = payment.phase === "done" && confirmedRevision === payment.revision;
    if (closes) this.#close(account, payment);
    else if (confirmedRevision === 0) account.open.set(transactionId, { ...open, confirmedRevision });
    else {
      const isPublished = confirmedRevision === payment.revision;
      const kept = withoutTexts(isPublished ? withoutPublished(payment) : payment);
      setOpen(account, kept, { ...open, confirmedRevision });
    }
  }

  #close(account: Account, { createdAt, request, revision, status }: StoredPayment): void {
    account.open.delete(request.transactionId);
    account.closed += 1;
    const { keyHash, fingerprint } = request;
    const closedFingerprint = status === "denied" ? null : fingerprint;
    this.#closings.push({
      agentId: account.agentId,
      keyHash,
      key: [account.closed, createdAt, closedFingerprint, revision],
    });
  }

  /** Marks a change of the account that the agent's record shows. A foreseen charge takes its reserved revision. */
  touch(account: Account, isForeseen = false): void {
    account.revision += account.foreseenSequence > 0 && !isForeseen ? 2 : 1;
    account.foreseenSequence = 0;
    account.updatedAt = this.now;
  }

  /** Marks a change and adds its event to the outbox. */
  emit(account: Account, type: LifecycleEventType): void {
    this.touch(account);
    const { agentId, revision } = account;
    const event = { id: lifecycleEventId(agentId, "account", revision), type, at: this.now, revision };
    account.outbox = [...account.outbox, event];
  }

  /** Commits all changes. Throws, with nothing changed, if they would break an invariant. */
  commit(): void {
    // Whatever an account that is not sound makes fail, fails before the first change.
    for (const { account } of this.#accounts.values()) {
      assertSound(account);
      this.#weigh(account);
    }
    this.#raiseVersions();
    const { ledger } = this;
    if (this.#calendar !== null) ledger.calendar = this.#calendar;
    if (this.#project !== null) {
      ledger.weightBytes += levelBytes(this.#project) - levelBytes(ledger.project);
      ledger.project = this.#project;
    }
    for (const [teamId, team] of this.#teams) {
      ledger.weightBytes += levelBytes(team) - levelBytes(levelOf(ledger, teamId));
      ledger.teams.set(teamId, team);
    }
    for (const drafted of this.#accounts.values()) this.#put(drafted);
    for (const { agentId, keyHash } of this.#reopenings) removeClosedKey(ledger.keys, agentId, keyHash);
    for (const closing of this.#closings) this.#addClosed(closing);
    this.#noteEvicted(evictKeys(ledger.keys, keysMax(ledger)));
  }

  /** Raises the versions of changed budgets. A changed child makes the budget stale, whatever changed it. */
  #raiseVersions(): void {
    for (const { account, before } of this.#accounts.values())
      if (before !== null && before.policy.budgetCents !== account.policy.budgetCents)
        this.#raiseVersion(account.teamId);
    for (const [teamId, { cap }] of this.#teams)
      if (cap.capCents !== levelOf(this.ledger, teamId).cap.capCents) this.#raiseVersion(null);
  }

  /** Raises a version at most once per command, by its own replacement or by the first of its children. */
  #raiseVersion(teamId: string | null): void {
    const { cap, capChangedAt, recordedCapVersion } = this.level(teamId);
    const before = teamId === null ? this.ledger.project : levelOf(this.ledger, teamId);
    if (cap.version > before.cap.version) return;
    // The oldest unrecorded change stays due, so that a constantly changing budget is recorded too.
    const isRecorded = recordedCapVersion === cap.version;
    const raised = { ...cap, version: cap.version + 1 };
    this.setLevel(teamId, { cap: raised, capChangedAt: isRecorded ? this.now : capChangedAt });
  }

  #weigh(account: Account): void {
    const isWeighed = !isFinished(account) && this.ledger.bounds.paidBelowBytes < Infinity;
    account.weightBytes = isWeighed ? weightOf(account, this.now) : 0;
  }

  #put({ account, before, isReturned, windowed }: Drafted): void {
    const { ledger } = this;
    const { agentId, teamId, usage } = account;
    const isDropped = isFinished(account);
    const spentMc = usage.spentMc - (before?.usage.spentMc ?? 0);
    const reservedMc = usage.reservedMc - (before?.usage.reservedMc ?? 0);
    const withAmounts = (level: Level): Level => ({
      ...level,
      totals: plus(level.totals, spentMc, reservedMc),
      windows: windowed === null ? level.windows : rolled(level.windows, this.bounds, windowed),
    });
    ledger.teams.set(teamId, withAmounts(levelOf(ledger, teamId)));
    ledger.project = withAmounts(ledger.project);
    ledger.openPayments += account.open.size - (before?.open.size ?? 0);
    ledger.weightBytes += account.weightBytes - (before?.weightBytes ?? 0);
    ledger.touched.add(agentId);
    if (isReturned) ledger.droppedAccounts -= 1;
    if (!isDropped) return void ledger.accounts.set(agentId, account);
    ledger.accounts.delete(agentId);
    ledger.droppedAccounts += 1;
    ledger.droppedRevision = ledger.revision;
    ledger.droppedClosed = Math.max(ledger.droppedClosed, account.closed);
    dropAgentKeys(ledger.keys, agentId);
  }

  #addClosed(closing: Closing): void {
    const { accounts, bounds, keys } = this.ledger;
    if (accounts.has(closing.agentId)) this.#noteEvicted(addClosedKey(keys, closing, bounds.closedKeys));
  }

  #noteEvicted(evicted: ReturnType<typeof evictKeys>): void {
    for (const [agentId, closedAs] of evicted) {
      const account = this.ledger.accounts.get(agentId);
      if (account !== undefined) account.evictedThrough = Math.max(account.evictedThrough, closedAs);
    }
  }
}

/** Whether nothing of a closed account is left to execute or publish, since its outcome is in the records. */
const isFinished = ({ confirmedRevision, open, outbox, revision, status }: Account): boolean =>
  status === "closed" && open.size === 0 && outbox.length === 0 && confirmedRevision >= revision;

const plus = (totals: Totals, spentMc: number, reservedMc: number): Totals => ({
  spentMc: totals.spentMc + spentMc,
  reservedMc: totals.reservedMc + reservedMc,
});

const setOpen = (account: Account, payment: StoredPayment, rest: Omit<OpenPayment, "payment">): void =>
  void account.open.set(payment.request.transactionId, { ...rest, payment });

/** Returns a copy that shares the parts that are never changed in place. */
function copyOf(account: Account): Account {
  const { open, usage } = account;
  return { ...account, open: new Map(open), usage: { ...usage, day: { ...usage.day } } };
}

/** Moves an amount between held and spent; the day's changes only on the day on which the payment counts. */
function move(usage: Usage, before: StoredPayment | null, after: StoredPayment): void {
  const had = before === null ? NO_MONEY : moneyOf(before);
  const has = moneyOf(after);
  usage.reservedMc += has.heldMc - had.heldMc;
  usage.spentMc += has.spentMc - had.spentMc;
  const { date } = usage.day;
  usage.day.amountMc += countedOn(after, date) - (before === null ? 0 : countedOn(before, date));
}

const isAmount = (mc: number): boolean => Number.isSafeInteger(mc) && mc >= 0;

/** Throws if a total is negative or not an exact integer, an invariant that no command may break. */
function assertSound({ usage: { reservedMc, spentMc } }: Account): void {
  if (isAmount(reservedMc) && isAmount(spentMc)) return;
  throw new Error(`an account would hold ${String(reservedMc)} and have spent ${String(spentMc)} mc`);
}
