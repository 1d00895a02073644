import { approvalDocument } from "../../src/store/records.ts";
import type { Payment, PaymentTexts, RailOutcome } from "../../src/domain/ledger/payment.ts";
import type { AgentProfile, AgentSummary } from "../../src/domain/agent/state.ts";
import type { RecordedCap } from "../../src/domain/ledger/commands.ts";
import { type AccountSummary, type Cap, NO_CAP } from "../../src/domain/ledger/state.ts";
import type { RuleCheck } from "../../src/domain/rules/rules.ts";
import type { FencedPlace, SendOutcome } from "../../src/payments/ports.ts";
import type { Observer, RecordShown } from "./audit/observer.ts";
import type { Timeline } from "./timeline.ts";

/** What a rail does with a payment, by the name of its recipient; `-<ms>` says after how long. */
export const FATES = ["settle", "decline", "slow", "bounce", "reverse", "clear", "flaky"] as const;
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

interface Entry {
  readonly fate: Fate | "withheld";
  readonly amountCents: number;
  readonly changesAt: number;
  isReversed: boolean;
}

/** The line broke after the charge took effect. */
export class LineBroken extends Error {
  override readonly name = "LineBroken";
}

const DECLINED: RailOutcome = { status: "failed", code: "CARD_DECLINED", reason: "Declined." };
const WITHHELD: RailOutcome = { status: "withheld" };
const EMPTY: RailOutcome = { status: "failed", code: "INSUFFICIENT_FUNDS", reason: "Empty." };

const isCaptured = ({ fate, isReversed }: Entry): boolean =>
  fate !== "bounce" && fate !== "withheld" && !isReversed;

/** A payment processor with books of its own: one effect for a transaction id, however often it is called. */
export class Processor {
  readonly #entries = new Map<string, Entry>();
  readonly #fences = new Map<string, number>();
  readonly #timeline: Pick<Timeline, "now">;
  readonly #observer: Observer;
  captures = 0;
  declines = 0;
  fenced = 0;
  reversals = 0;

  constructor(timeline: Pick<Timeline, "now">, observer: Observer) {
    this.#timeline = timeline;
    this.#observer = observer;
  }

  /** Nothing is charged that is not there yet under a permit below this. */
  fence({ fence, transactionId }: FencedPlace): void {
    this.#fences.set(transactionId, Math.max(fence, this.#fences.get(transactionId) ?? 0));
  }

  charge({ request }: Payment, permit: number): SendOutcome {
    const { amountCents, recipient, transactionId } = request;
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
    const changesAt = this.#timeline.now + afterMs;
    this.#entries.set(transactionId, { fate, amountCents, changesAt, isReversed: false });
    if (fate !== "bounce") {
      this.captures += 1;
      this.#observer.captured(transactionId, amountCents);
    }
    if (fate === "flaky") throw new LineBroken(transactionId);
    return this.query(transactionId) ?? DECLINED;
  }

  /** What is not there yet is never to come. */
  withhold({ request }: Payment): RailOutcome {
    const { amountCents, recipient, transactionId } = request;
    const known = this.query(transactionId);
    if (known !== null) return known;
    if (fateOf(recipient).fate === "decline") return this.#answered(transactionId, DECLINED);
    this.#entries.set(transactionId, { fate: "withheld", amountCents, changesAt: 0, isReversed: false });
    return this.#answered(transactionId, WITHHELD);
  }

  /** What has become of a payment; null when it was never sent. */
  query(transactionId: string): RailOutcome | null {
    const entry = this.#entries.get(transactionId);
    return entry === undefined ? null : this.#answered(transactionId, this.#outcome(transactionId, entry));
  }

  /** Cents taken and kept, by transaction. */
  captured(): Map<string, number> {
    const captured = [...this.#entries].filter(([, entry]) => isCaptured(entry));
    return new Map(captured.map(([transactionId, { amountCents }]) => [transactionId, amountCents]));
  }

  #outcome(transactionId: string, entry: Entry): RailOutcome {
    const hasTurned = this.#timeline.now >= entry.changesAt;
    switch (entry.fate) {
      case "slow":
        return hasTurned ? { status: "settled", final: true } : { status: "pending" };
      case "bounce":
        return hasTurned ? EMPTY : { status: "pending" };
      case "clear":
        return { status: "settled", final: hasTurned };
      case "reverse":
        if (!hasTurned) return { status: "settled", final: false };
        if (!entry.isReversed) {
          entry.isReversed = true;
          this.reversals += 1;
          this.#observer.reversed(transactionId);
        }
        return { status: "reversed" };
      case "decline":
        return DECLINED;
      case "withheld":
        return WITHHELD;
      case "settle":
      case "flaky":
        return { status: "settled", final: true };
    }
  }

  #answered(transactionId: string, outcome: RailOutcome): RailOutcome {
    this.#observer.railAnswered(transactionId, outcome);
    return outcome;
  }
}

/** The rules of a project (null) or a team, as people have set them. */
export interface RecordedRules {
  readonly version: number;
  readonly checks: readonly RuleCheck[];
}

const ENDED: readonly Payment["status"][] = ["denied", "failed", "expired"];

/** The records. Writing the same revision twice, or an older one, does nothing. */
export class Records {
  readonly payments = new Map<string, Payment>();
  readonly agents = new Map<string, RecordShown & { readonly teamId: string }>();
  readonly caps = new Map<string | null, Cap>();
  readonly rules = new Map<string | null, RecordedRules>();
  /** How far the ledger had come, as far as any process was answered. */
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
    if (known === undefined || known.revision < payment.revision) this.payments.set(transactionId, payment);
  }

  /** Of a payment that has ended without being paid, which it was among its agent's; null: it has not. */
  endOf(transactionId: string): Pick<Payment, "sequence"> | null {
    const payment = this.payments.get(transactionId);
    const isEnded = payment !== undefined && ENDED.includes(payment.status);
    return isEnded ? { sequence: payment.sequence } : null;
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
