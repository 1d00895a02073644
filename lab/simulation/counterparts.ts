import { capturedInFull, type RailBooks } from "../../src/domain/ledger/books.ts";
import { noAmounts, plusPayment } from "../../src/domain/ledger/restore.ts";
import { approvalDocument } from "../../src/store/payment-records.ts";
import { type Payment, type PaymentTexts, type RailOutcome } from "../../src/domain/ledger/payment.ts";
import type { AgentProfile, AgentSummary } from "../../src/domain/agent/state.ts";
import type { DroppedAccount, DroppedWindows, RecordedCap } from "../../src/domain/ledger/commands.ts";
import type { RaiseBasis } from "../../src/domain/ledger/raises.ts";
import { type AccountSummary, type Cap, NO_CAP } from "../../src/domain/ledger/state.ts";
import type { RuleCheck } from "../../src/domain/rules/rules.ts";
import type {
  ChangedPayment,
  FencedPlace,
  RecordedOwn,
  SendOutcome,
  UnpaidEnd,
} from "../../src/payments/ports.ts";
import type { Observer, RecordShown } from "./audit/observer.ts";
import type { Timeline } from "./timeline.ts";

/** A rail's treatment of a payment, by the name of its recipient; `-<ms>` says after how long each effect comes. */
export const FATES = [
  "settle",
  "decline",
  "slow",
  "bounce",
  "flaky",
  "partial",
  "over",
  "several",
  "uncharged",
  "forced",
  "refund",
  "reverse",
  "recall",
] as const;
export type Fate = (typeof FATES)[number];

export interface Recipient {
  readonly fate: Fate;
  readonly afterMs: number;
}

export const recipientOf = ({ fate, afterMs }: Recipient): string => `${fate}-${String(afterMs)}`;

function fateOf(recipient: string): Recipient {
  const [name, after] = recipient.split("-");
  const fate = FATES.find((known) => known === name);
  if (fate === undefined) throw new Error(`no fate for ${recipient}`);
  return { fate, afterMs: Number(after ?? 0) };
}

type NetworkChange = Partial<Record<"capturedMc" | "creditedMc" | "recalledMc", number>> | "closes";

/** Acts of the network after it has accepted a payment, in percent of the amount, one after the other. */
const NETWORK: Partial<Record<Fate, readonly NetworkChange[]>> = {
  several: [{ capturedMc: 40 }, { capturedMc: 30 }, "closes"],
  uncharged: ["closes"],
  forced: ["closes", { capturedMc: 100 }],
  refund: [{ creditedMc: 30 }],
  reverse: [{ creditedMc: 100 }],
  recall: [{ creditedMc: 100 }, { recalledMc: 100 }],
};
/** Captured with the authorization, in percent; all else is captured in full. */
const CAPTURED: Partial<Record<Fate, number>> = {
  partial: 50,
  over: 120,
  several: 0,
  uncharged: 0,
  forced: 0,
};

interface Entry {
  readonly fate: Fate | "withheld";
  readonly amountMc: number;
  readonly acceptedAt: number;
  readonly afterMs: number;
}

/** The line broke after the charge took effect. */
export class LineBroken extends Error {
  override readonly name = "LineBroken";
}

const DECLINED: RailOutcome = { status: "failed", code: "CARD_DECLINED", reason: "Declined." };
const WITHHELD: RailOutcome = { status: "withheld" };
const EMPTY: RailOutcome = { status: "failed", code: "INSUFFICIENT_FUNDS", reason: "Empty." };

const effectsOf = ({ fate }: Entry): readonly NetworkChange[] =>
  fate === "withheld" ? [] : (NETWORK[fate] ?? []);

const timeOf = ({ acceptedAt, afterMs }: Entry, number: number): number =>
  acceptedAt + (number + 1) * afterMs;

/** A network's books of a payment as they are at a time. */
function booksAt(entry: Entry, at: number): readonly RailBooks[] {
  const { amountMc, fate } = entry;
  if (fate === "withheld" || fate === "decline") return [];
  if ((fate === "bounce" || fate === "slow") && (fate === "bounce" || at < timeOf(entry, 0))) return [];
  const portion = (percent: number): number => Math.floor((amountMc * percent) / 100);
  let books: RailBooks = {
    ...capturedInFull(amountMc),
    capturedMc: portion(CAPTURED[fate] ?? 100),
    isOpen: CAPTURED[fate] === 0,
  };
  for (const [number, change] of effectsOf(entry).entries()) {
    if (timeOf(entry, number) > at) break;
    if (change === "closes") books = { ...books, isOpen: false };
    else
      books = {
        ...books,
        capturedMc: books.capturedMc + portion(change.capturedMc ?? 0),
        creditedMc: books.creditedMc + portion(change.creditedMc ?? 0),
        recalledMc: books.recalledMc + portion(change.recalledMc ?? 0),
      };
  }
  return [books];
}

/**
 * A payment processor and its network, with books of their own: one effect for a transaction id, however often it is called, and effects
 * that come later whether anybody reads of them or not.
 */
export class Processor {
  readonly #entries = new Map<string, Entry>();
  readonly #unbooked = new Map<string, number>();
  readonly #fences = new Map<string, number>();
  readonly #timeline: Pick<Timeline, "now">;
  readonly #observer: Observer;
  /** Told of every payment that the network will touch later, with the times of that. */
  readonly #onAccepted: (transactionId: string, changesAt: readonly number[]) => void;
  declines = 0;
  fenced = 0;

  constructor(
    timeline: Pick<Timeline, "now">,
    observer: Observer,
    onAccepted: (transactionId: string, changesAt: readonly number[]) => void,
  ) {
    this.#timeline = timeline;
    this.#observer = observer;
    this.#onAccepted = onAccepted;
  }

  /** Nothing is charged that is not there yet under a permit below this. */
  fence({ fence, transactionId }: FencedPlace): void {
    this.#fences.set(transactionId, Math.max(fence, this.#fences.get(transactionId) ?? 0));
  }

  charge({ request }: Payment, permit: number): SendOutcome {
    const { amountMc, recipient, transactionId } = request;
    const known = this.query(transactionId);
    if (known !== null) return known;
    if ((this.#fences.get(transactionId) ?? 0) > permit) {
      this.fenced += 1;
      return { status: "fenced" };
    }
    const { afterMs, fate } = fateOf(recipient);
    if (fate === "decline") {
      this.declines += 1;
      return this.#answered(transactionId, DECLINED);
    }
    const entry = { fate, amountMc, acceptedAt: this.#timeline.now, afterMs };
    this.#entries.set(transactionId, entry);
    if (fate !== "bounce") this.#observer.captured(transactionId, amountMc);
    this.#onAccepted(
      transactionId,
      effectsOf(entry).map((_effect, number) => timeOf(entry, number)),
    );
    if (fate === "flaky") throw new LineBroken(transactionId);
    return this.query(transactionId) ?? DECLINED;
  }

  /** Refuses for ever a payment that has not come yet. */
  withhold({ request }: Payment): RailOutcome {
    const { amountMc, recipient, transactionId } = request;
    const known = this.query(transactionId);
    if (known !== null) return known;
    if (fateOf(recipient).fate === "decline") return this.#answered(transactionId, DECLINED);
    this.#entries.set(transactionId, {
      fate: "withheld",
      amountMc,
      acceptedAt: this.#timeline.now,
      afterMs: 0,
    });
    return this.#answered(transactionId, WITHHELD);
  }

  /** Returns the outcome of a payment; null when it was never sent. */
  query(transactionId: string): RailOutcome | null {
    const entry = this.#entries.get(transactionId);
    return entry === undefined ? null : this.#answered(transactionId, this.#outcome(entry));
  }

  /** As they are now, or were some effects ago: a reader's answer may come from a copy that is behind. */
  booksOf(transactionId: string, behindMs = 0): readonly RailBooks[] {
    const entry = this.#entries.get(transactionId);
    if (entry === undefined) return [];
    return booksAt(entry, Math.max(entry.acceptedAt, this.#timeline.now - behindMs));
  }

  /** Everything that the network has touched since, the oldest first. */
  changedSince(since: number): readonly ChangedPayment[] {
    return [...this.#entries]
      .flatMap(([transactionId, entry]) =>
        effectsOf(entry).map((_effect, number) => ({ transactionId, at: timeOf(entry, number) })),
      )
      .filter(({ at }) => at >= since && at <= this.#timeline.now)
      .toSorted((one, other) => one.at - other.at)
      .map(({ at, transactionId }) => ({ transactionId, changedAt: new Date(at) }));
  }

  keepUnbooked(transactionId: string): void {
    this.#unbooked.set(transactionId, (this.#unbooked.get(transactionId) ?? 0) + 1);
  }

  /** Payments that could not be booked, with the number of times. */
  unbooked(): ReadonlyMap<string, number> {
    return new Map(this.#unbooked);
  }

  /** Forgets those that were not kept again since they were read. */
  forget(read: ReadonlyMap<string, number>): void {
    for (const [id, times] of read) if (this.#unbooked.get(id) === times) this.#unbooked.delete(id);
  }

  /** Whether the numbered thing has happened. */
  play(transactionId: string, number: number): "played" | "not_yet" | "never" {
    const entry = this.#entries.get(transactionId);
    if (entry === undefined) return "not_yet";
    if (number >= effectsOf(entry).length) return "never";
    return timeOf(entry, number) <= this.#timeline.now ? "played" : "not_yet";
  }

  /** The network's books of every payment that it has. */
  books(): Map<string, readonly RailBooks[]> {
    const now = this.#timeline.now;
    const books = [...this.#entries].map(([id, entry]) => [id, booksAt(entry, now)] as const);
    return new Map(books.filter(([, reports]) => reports.length > 0));
  }

  /** As the network first charged it, whenever it is asked. */
  #outcome(entry: Entry): RailOutcome {
    const hasTurned = this.#timeline.now >= timeOf(entry, 0);
    switch (entry.fate) {
      case "slow":
        return hasTurned ? { status: "settled" } : { status: "pending" };
      case "bounce":
        return hasTurned ? EMPTY : { status: "pending" };
      case "decline":
        return DECLINED;
      case "withheld":
        return WITHHELD;
      default: {
        const isPlain = CAPTURED[entry.fate] === undefined;
        return isPlain
          ? { status: "settled" }
          : { status: "charged", books: booksAt(entry, entry.acceptedAt) };
      }
    }
  }

  #answered(transactionId: string, outcome: RailOutcome): RailOutcome {
    this.#observer.railAnswered(transactionId, outcome);
    return outcome;
  }
}

/** The rules of a project (null) or a team, and the recipients that it or an agent forbids, as people have set them. */
export interface RecordedRules {
  readonly version: number;
  readonly checks: readonly RuleCheck[];
  readonly never: ReadonlySet<string>;
}

const NO_RULES: RecordedRules = { version: 1, checks: [], never: new Set() };

const ENDED: readonly Payment["status"][] = ["denied", "failed", "expired"];

/** The records. Writing the same revision twice, or an older one, does nothing. */
export class Records {
  readonly payments = new Map<string, Payment>();
  readonly #owners = new Map<string, AgentProfile>();
  readonly agents = new Map<string, RecordShown & { readonly teamId: string }>();
  readonly caps = new Map<string | null, Cap>();
  readonly rules = new Map<string | null, RecordedRules>();

  /** Replaces rules or restrictions of a level, and returns its version. */
  raiseRules(level: string | null, change: Partial<Pick<RecordedRules, "checks" | "never">>): number {
    const before = this.rules.get(level) ?? NO_RULES;
    const version = before.version + 1;
    this.rules.set(level, { ...before, ...change, version });
    return version;
  }

  /** Raises that were asked for: the limits that each was decided on; null: it has ended. */
  readonly raises = new Map<string, RaiseBasis | null>();

  /** The first decision counts until it has failed; null: the request has ended. */
  decideRaise(raiseId: string, basis: RaiseBasis): RaiseBasis | null {
    const decided = this.raises.get(raiseId);
    if (decided === undefined) this.raises.set(raiseId, basis);
    return decided === undefined ? basis : decided;
  }

  endRaise(raiseId: string): void {
    this.raises.set(raiseId, null);
  }

  reopenRaise(raiseId: string, decided: RaiseBasis): void {
    if (this.raises.get(raiseId) === decided) this.raises.delete(raiseId);
  }

  /** Highest revision of the ledger that any process was answered. */
  ledgerRevision = 0;
  /** Payments whose approval's record is pending, as people see them, with their agents. */
  readonly pending = new Map<string, string>();
  readonly #approvals = new Map<string, number>();
  /** By agent and idempotency key. */
  readonly #byKey = new Map<string, string>();
  readonly #observer: Observer;

  constructor(observer: Observer) {
    this.#observer = observer;
  }

  writeLedgerRevision(revision: number): void {
    this.ledgerRevision = Math.max(this.ledgerRevision, revision);
  }

  writePayment(profile: AgentProfile, payment: Payment): void {
    const { keyHash, transactionId } = payment.request;
    const known = this.payments.get(transactionId);
    this.#observer.paymentRecorded(payment);
    this.#writeApproval(profile, payment);
    this.#byKey.set(`${profile.agentId} ${keyHash}`, transactionId);
    this.#owners.set(transactionId, profile);
    if (known === undefined || known.revision < payment.revision) this.payments.set(transactionId, payment);
  }

  endOf(transactionId: string): UnpaidEnd | null {
    const payment = this.payments.get(transactionId);
    const isEnded = payment !== undefined && ENDED.includes(payment.status);
    return isEnded ? payment : null;
  }

  paymentOf(transactionId: string): RecordedOwn | null {
    const [payment, profile] = [this.payments.get(transactionId), this.#owners.get(transactionId)];
    return payment === undefined || profile === undefined ? null : { profile, payment };
  }

  closedAgent(agentId: string, bounds: DroppedWindows): Omit<DroppedAccount, "asOfRevision"> {
    const { account, life, teamId } = this.#agent(agentId);
    const { policy, policyVersion, revision } = account;
    let amounts = noAmounts(bounds);
    for (const [transactionId, payment] of this.payments) {
      if (this.#owners.get(transactionId)?.agentId === agentId)
        amounts = plusPayment(amounts, payment, bounds);
    }
    return { teamId, name: life.name, policy, policyVersion, revision, ...amounts };
  }

  textsOf(transactionId: string): PaymentTexts | null {
    return this.payments.get(transactionId)?.request ?? null;
  }

  under(agentId: string, keyHash: string): Payment | undefined {
    return this.payments.get(this.#byKey.get(`${agentId} ${keyHash}`) ?? "");
  }

  /** When the newest payment of this fingerprint was made that has ended and was not denied. */
  newestSimilarAt(agentId: string, fingerprint: string): number | null {
    let newest: number | null = null;
    for (const [name, transactionId] of this.#byKey) {
      if (!name.startsWith(`${agentId} `)) continue;
      const payment = this.payments.get(transactionId);
      if (payment === undefined || payment.request.fingerprint !== fingerprint) continue;
      if (payment.status !== "denied" && payment.status !== "pending")
        newest = Math.max(newest ?? -Infinity, payment.createdAt);
    }
    return newest;
  }

  writeAccount(account: AccountSummary): void {
    const known = this.#agent(account.agentId);
    this.#observer.accountRecorded(account);
    if (account.revision > known.account.revision) this.agents.set(account.agentId, { ...known, account });
  }

  writeAgentRecord(life: AgentSummary): void {
    const known = this.#agent(life.agentId);
    this.#observer.agentRecorded(life);
    if (life.revision > known.life.revision) this.agents.set(life.agentId, { ...known, life });
  }

  writeCaps(caps: readonly RecordedCap[]): void {
    for (const { cap, teamId } of caps)
      if (cap.version > this.cap(teamId).version) this.caps.set(teamId, cap);
  }

  cap(teamId: string | null): Cap {
    return this.caps.get(teamId) ?? NO_CAP;
  }

  #agent(agentId: string) {
    const known = this.agents.get(agentId);
    if (known === undefined) throw new Error(`agent ${agentId} has no record`);
    return known;
  }

  #writeApproval(profile: AgentProfile, payment: Payment): void {
    const approval = approvalDocument(profile, payment);
    if (approval === null || (this.#approvals.get(approval._id) ?? 0) >= approval.revision) return;
    this.#approvals.set(approval._id, approval.revision);
    if (approval.state === "pending") this.pending.set(approval.transactionId, profile.agentId);
    else this.pending.delete(approval.transactionId);
  }
}
