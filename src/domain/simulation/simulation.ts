import { type Books, spentIn } from "../ledger/books.ts";
import { bookingSteps } from "../ledger/booking-steps.ts";
import type { CommandOf } from "../ledger/commands.ts";
import { confirm } from "../ledger/confirming.ts";
import { Draft } from "../ledger/draft.ts";
import { approveHeld, cancelWaiting } from "../ledger/resolve-held.ts";
import { decidedPayment, pay } from "../ledger/pay.ts";
import { type Payment, type StoredPayment, withTexts } from "../ledger/payment.ts";
import { isPolicyDenial } from "../ledger/policy.ts";
import {
  type Account,
  type Ledger,
  LEDGER_BOUNDS,
  type Level,
  NEW_LEVEL,
  newAccount,
  newLedger,
  NO_BOUNDS_OF_BYTES,
} from "../ledger/state.ts";
import { dayCounted, emptyUsage, HOUR_MS } from "../ledger/usage.ts";
import { fullMinute } from "../ledger/windows.ts";
import { windowsMsOf } from "../rules/rules.ts";
import { Moves, type SimulatedMoves, type Verdict } from "./moves.ts";
import {
  approvedAt,
  isDeniedAtOnce,
  isLetThrough,
  isRefusedByStatus,
  isRefusedOnApproval,
  type PastPayment,
  releasedAt,
  requestOf,
  type Side,
} from "./past-payment.ts";
import { Rulings } from "./rulings.ts";
import type { EarlierAmounts, SimulatedAgent, SimulatedLevel, SimulatedProject } from "./simulated.ts";
import { Timeline } from "./timeline.ts";

/**
 * Judges past payments again, under other limits, rules or restrictions, with the ledger's own code. Payments come in
 * the order in which they were made. An account is opened before its first payment.
 */

/** Bounds of a simulation: the ledger's for open payments, none for bytes. */
const BOUNDS = {
  ...LEDGER_BOUNDS,
  ...NO_BOUNDS_OF_BYTES,
  accounts: Infinity,
  // The simulation remembers like payments itself.
  closedKeys: 0,
};

const KEY_ID = "simulated";
const NOBODY = { userId: "", name: "" };
/** Exceeds all revisions and numbers of payments. */
const ALL = Number.MAX_SAFE_INTEGER;

/** A payment to judge, or to count as it was decided at the time. */
interface Given {
  readonly past: PastPayment;
  readonly isJudged: boolean;
}

interface HeldPayment extends Given {
  readonly flaggedByRuleTypes: readonly string[];
  /** Time of the newest similar payment before this one. */
  readonly likeBefore: number | undefined;
}

/** A network's change of a payment. */
interface Step {
  readonly at: number;
  readonly change: Change;
}

type Change = Partial<Omit<Payment, "request">>;

const RELEASED: Change = { status: "failed", phase: "done" };

const UNDECIDED = {
  flaggedByRuleTypes: [],
  budgetContext: { budgetCents: 0, spentCents: 0, reservedCents: 0, remainingCents: 0 },
  resolution: null,
  resolvedAt: null,
  resolvedBy: null,
  feedback: null,
} as const;

export class Simulation {
  readonly #ledger: Ledger;
  readonly #project: SimulatedProject;
  readonly #teams = new Map<string, SimulatedLevel & { readonly windowsMs: readonly number[] }>();
  readonly #agents = new Map<string, SimulatedAgent>();
  readonly #timeline = new Timeline();
  readonly #moves = new Moves();
  readonly #held = new Map<string, HeldPayment>();
  readonly #rulings: Rulings;
  /** Payments of one instant, until a later one comes. */
  #instant: Given[] = [];

  constructor(project: SimulatedProject) {
    this.#project = project;
    this.#rulings = new Rulings(project);
    this.#ledger = newLedger("", "", BOUNDS);
    this.#ledger.calendar = project.calendar;
    this.#ledger.project = this.#levelOf(project);
  }

  hasTeam(teamId: string): boolean {
    return this.#teams.has(teamId);
  }

  hasAgent(agentId: string): boolean {
    return this.#agents.has(agentId);
  }

  addTeam(teamId: string, team: SimulatedLevel): void {
    const checks = [...this.#project.rules, ...team.rules].flatMap((rule) =>
      "checkWith" in rule ? [rule.checkWith(() => 0)] : [],
    );
    const windowsMs = windowsMsOf(checks).filter((windowMs) => windowMs > HOUR_MS);
    this.#teams.set(teamId, { ...team, windowsMs });
    this.#ledger.teams.set(teamId, this.#levelOf(team));
  }

  addAgent(agent: SimulatedAgent): void {
    const { agentId, earlier, policy, teamId } = agent;
    const { startsAt } = this.#project;
    this.#agents.set(agentId, agent);
    const account = newAccount({ agentId, teamId, name: "", policy, keyId: KEY_ID }, startsAt);
    account.usage = { ...emptyUsage(), spentMc: earlier.spentMc, windows: this.#windowsOf(earlier) };
    this.#ledger.accounts.set(agentId, account);
  }

  /** Adds a payee, as named by `payeesOf`, that an agent had paid before the simulated time. */
  addPayee(payee: string): void {
    this.#rulings.paid(payee, 0);
  }

  /** Adds a payment. With `isJudged` false it counts as it was decided at the time. */
  add(past: PastPayment, isJudged: boolean): void {
    const [first] = this.#instant;
    if (first !== undefined && first.past.createdAt !== past.createdAt) this.#judgeInstant();
    this.#instant.push({ past, isJudged });
  }

  /** Runs everything that happens until `now`, and returns the result. */
  end(now: number): SimulatedMoves {
    this.#judgeInstant();
    this.#timeline.runUntil(now);
    for (const held of this.#held.values()) this.#count(held, "held", held);
    return this.#moves.all;
  }

  /**
   * Judges the payments of one instant, those that were refused last. The ledger's order within the instant is not
   * recorded, and those that it accepted had room whatever it refused.
   */
  #judgeInstant(): void {
    const instant = this.#instant;
    this.#instant = [];
    if (instant.length > 1)
      instant.sort(
        (one, other) =>
          Number(isDeniedAtOnce(one.past)) - Number(isDeniedAtOnce(other.past)) ||
          one.past.sequence - other.past.sequence,
      );
    for (const given of instant) {
      this.#timeline.runUntil(given.past.createdAt);
      if (given.isJudged) this.#judge(given);
      else this.#take(given);
    }
  }

  #judge(given: Given): void {
    const { past } = given;
    const { agentId, createdAt: now } = past;
    if (isRefusedByStatus(past)) return this.#count(given, "denied");
    const command = {
      kind: "pay",
      agentId,
      keyId: KEY_ID,
      request: requestOf(past),
      approvalWindowSeconds: this.#project.approvalWindowSeconds,
      recordsCheckedThrough: ALL,
      ...this.#rulings.on(past, this.#agents.get(past.agentId), this.#teamOf(past)),
    } as const;
    this.#draft(now, (draft) => {
      const reply = pay(draft, command);
      if (reply.kind === "too_many_open") return this.#count(given, "denied");
      if (reply.kind !== "decided") throw new Error(`a ledger answered ${reply.kind} to a simulated payment`);
      const { approval, denial } = reply.decision;
      if (denial !== null) {
        confirmed(draft, past);
        return this.#count(given, "denied", { denialCode: denial.code });
      }
      const likeBefore = this.#rulings.remember(past, this.#teamOf(past));
      if (approval !== null) {
        const { expiresAt, flaggedByRuleTypes } = approval;
        return this.#onceHeld({ ...given, flaggedByRuleTypes, likeBefore }, expiresAt);
      }
      this.#count(given, "approved");
      this.#onceSent(draft, past);
    });
  }

  /** Counts a payment as it was decided at the time. */
  #take(given: Given): void {
    const { past } = given;
    const { agentId, createdAt: now, transactionId: id, wasHeld } = past;
    if (isDeniedAtOnce(past)) return;
    const expiresAt = now + this.#project.approvalWindowSeconds * 1_000;
    const likeBefore = this.#rulings.remember(past, this.#teamOf(past));
    this.#draft(now, (draft) => {
      const account = accountIn(draft, agentId);
      const decision = {
        sequence: account.sequence + 1,
        createdAt: now,
        countedAt: now,
        day: dayCounted(account.usage, now),
        denial: null,
        approval: wasHeld ? { ...UNDECIDED, id, expiresAt } : null,
        policyVersion: account.policyVersion,
        limits: [],
      };
      const { windowsMs = [] } = this.#teams.get(account.teamId) ?? {};
      draft.add(account, decidedPayment(requestOf(past), decision), windowsMs);
      if (wasHeld) this.#onceHeld({ ...given, flaggedByRuleTypes: [], likeBefore }, expiresAt);
      else this.#onceSent(draft, past);
    });
  }

  /** Decides as the person did; an undecided payment expires. */
  #onceHeld(held: HeldPayment, expiresAt: number): void {
    const { past } = held;
    const approval = approvedAt(past);
    this.#held.set(past.transactionId, held);
    if (!past.wasHeld) this.#timeline.at(expiresAt, (at) => this.#endHeld(held, at));
    else if (approval !== null) this.#timeline.at(approval, (at) => this.#approve(held, at));
    else if (past.deniedAt !== null) this.#timeline.at(past.deniedAt, (at) => this.#endHeld(held, at));
  }

  #endHeld(held: HeldPayment, at: number): void {
    const { likeBefore, past } = held;
    const { agentId, transactionId } = past;
    this.#held.delete(transactionId);
    this.#draft(at, (draft) => {
      cancelWaiting(draft, { kind: "cancel", agentId, transactionId });
      confirmed(draft, past);
    });
    // A denied payment makes no other a duplicate.
    if (past.status === "denied") this.#rulings.forget(past, likeBefore);
    this.#count(held, "held", held);
  }

  #approve(held: HeldPayment, at: number): void {
    const { isJudged, past } = held;
    if (!isJudged && isRefusedOnApproval(past)) return this.#endHeld(held, at);
    const { agentId, transactionId } = past;
    this.#held.delete(transactionId);
    this.#draft(at, (draft) => {
      if (!isJudged) {
        const account = accountIn(draft, agentId);
        const approval = { phase: "sending", windowAt: at, day: dayCounted(account.usage, at) } as const;
        draft.change(account, changed(openIn(account, past), approval));
        return this.#onceSent(draft, past);
      }
      const { forbidden } = this.#rulings.on(past, this.#agents.get(past.agentId), this.#teamOf(past));
      const command = { kind: "approve", agentId, transactionId, by: NOBODY, proof: "" } as const;
      const reply = approveHeld(draft, forbidden === undefined ? command : { ...command, forbidden });
      if (reply.kind !== "payment")
        throw new Error(`a ledger answered ${reply.kind} to a simulated approval`);
      const { denial, phase } = reply.payment;
      if (phase === "sending") {
        this.#count(held, "held", held);
        return this.#onceSent(draft, past);
      }
      confirmed(draft, past);
      // A payment that was approved too late has expired.
      const isRefused = denial !== null && isPolicyDenial(denial.code);
      this.#count(held, isRefused ? "denied" : "held", isRefused ? { denialCode: denial.code } : held);
    });
  }

  /** Ends a payment on its rail as it ended then. One that was never sent is charged in full at once. */
  #onceSent(draft: Draft, past: PastPayment): void {
    const wasSent = isLetThrough(past);
    const released = wasSent ? releasedAt(past) : null;
    if (released !== null)
      return this.#timeline.at(released, (at) => void this.#step(past, null, RELEASED, at));
    const chargedAt = wasSent ? past.books?.bookings[0]?.at : undefined;
    this.#rulings.settled(past, this.#teamOf(past), chargedAt ?? draft.now);
    if (wasSent && past.books !== null && !isChargedInFull(past.books, past.amountMc))
      return this.#follow(past, null, stepsOf(past, openIn(accountIn(draft, past.agentId), past)));
    confirmed(draft, past, { result: { status: "settled" }, at: draft.now });
  }

  #follow(past: PastPayment, before: StoredPayment | null, [step, ...later]: readonly Step[]): void {
    if (step === undefined) return;
    this.#timeline.at(step.at, (at) => this.#follow(past, this.#step(past, before, step.change, at), later));
  }

  /** Changes a payment as its network did, and closes it. `before`: the closed payment, if it was closed. */
  #step(past: PastPayment, before: StoredPayment | null, change: Change, at: number): StoredPayment {
    return this.#draft(at, (draft) => {
      const account = accountIn(draft, past.agentId);
      if (before !== null) draft.reopen(account, before);
      const after = changed(before ?? openIn(account, past), change);
      draft.change(account, after);
      confirmed(draft, past);
      return after;
    });
  }

  #draft<T>(at: number, change: (draft: Draft) => T): T {
    const draft = new Draft(this.#ledger, at, true);
    const result = change(draft);
    draft.commit();
    return result;
  }

  #count({ isJudged, past }: Given, side: Side, verdict: Verdict = {}): void {
    if (isJudged) this.#moves.add(past, side, verdict);
  }

  #teamOf({ agentId }: PastPayment): SimulatedLevel | undefined {
    return this.#teams.get(this.#agents.get(agentId)?.teamId ?? "");
  }

  #levelOf({ cap, earlier }: SimulatedLevel): Level {
    const totals = { spentMc: earlier.spentMc, reservedMc: 0 };
    return { ...NEW_LEVEL, cap, totals, windows: this.#windowsOf(earlier) };
  }

  #windowsOf({ mc }: EarlierAmounts) {
    return { at: fullMinute(this.#project.startsAt), mc };
  }
}

function accountIn(draft: Draft, agentId: string): Account {
  const account = draft.account(agentId);
  if (account === undefined) throw new Error("a simulated payment has no account");
  return account;
}

function openIn({ open }: Account, { transactionId }: PastPayment): StoredPayment {
  const found = open.get(transactionId)?.payment;
  if (found === undefined) throw new Error("a simulated payment is not open");
  return found;
}

const changed = (payment: StoredPayment, change: Change): StoredPayment => ({
  ...payment,
  ...change,
  revision: payment.revision + 1,
});

/** Confirms all effects of the payment. */
function confirmed(
  draft: Draft,
  { agentId, transactionId }: PastPayment,
  outcome: CommandOf<"confirm">["outcome"] = null,
): void {
  confirm(draft, { kind: "confirm", agentId, transactionId, revision: ALL, outcome });
}

/** Whether only the whole amount was ever booked. */
function isChargedInFull({ bookings: [first, ...later] }: Books, amountMc: number): boolean {
  if (first === undefined) return true;
  return later.length === 0 && first.heldMc === 0 && spentIn(first) === amountMc;
}

function stepsOf(past: PastPayment, open: StoredPayment): readonly Step[] {
  const { books, recipient, status } = past;
  if (books === null) return [];
  const payment = { ...withTexts(open, { recipient, purpose: "" }), books, status };
  return bookingSteps(payment).map(({ as, booking }) => ({
    at: booking.at,
    change: { books: as.books, status: as.status, phase: "done" },
  }));
}
