import { usedCents } from "../../../src/domain/money.ts";
import { EventEmitter, once } from "node:events";
import type {
  Detachment,
  FencedPlace,
  PaymentProofs,
  PaymentPublishing,
  Projections,
  RailBalance,
  RailPort,
  SendOutcome,
  UnpaidEnd,
} from "../../../src/payments/ports.ts";
import type {
  Payment,
  PaymentTexts,
  RailOutcome,
  StoredPayment,
} from "../../../src/domain/ledger/payment.ts";
import type { AgentProfile, AgentSummary } from "../../../src/domain/agent/state.ts";
import type { RecordedCap } from "../../../src/domain/ledger/commands.ts";
import type { AccountSummary, Cap } from "../../../src/domain/ledger/state.ts";

/** How a rail answers a payment at its n-th call, from 1. */
export type RailScript = (payment: StoredPayment, call: number) => RailOutcome | Promise<RailOutcome>;

export const SETTLED: RailOutcome = { status: "settled" };

/** A rail in memory: counts its calls, and takes each transaction once however often it is sent. */
export class MemoryRail implements RailPort {
  readonly capabilities = { finality: "instant" } as const;
  readonly network = null;
  readonly sent: string[] = [];
  readonly queried: string[] = [];
  /** What it is never to take. */
  readonly withheld = new Set<string>();
  readonly fences = new Map<string, number>();
  /** Cents taken, by transaction. */
  readonly taken = new Map<string, number>();
  readonly #script: RailScript;
  readonly #calls = new EventEmitter();
  readonly #callsOf = new Map<string, number>();

  constructor(script: RailScript) {
    this.#script = script;
  }

  async send(_profile: AgentProfile, payment: Payment, permit: number): Promise<SendOutcome> {
    const { transactionId, amountMc } = payment.request;
    if ((this.fences.get(transactionId) ?? 0) > permit) return { status: "fenced" };
    this.sent.push(transactionId);
    if (this.withheld.has(transactionId)) return { status: "withheld" };
    this.taken.set(transactionId, usedCents(amountMc));
    return this.#answer(payment);
  }

  fence(places: readonly FencedPlace[]): Promise<void> {
    for (const { fence, transactionId } of places)
      this.fences.set(transactionId, Math.max(fence, this.fences.get(transactionId) ?? 0));
    return Promise.resolve();
  }

  async query(payment: StoredPayment): Promise<RailOutcome | null> {
    const { transactionId } = payment.request;
    this.queried.push(transactionId);
    if (this.withheld.has(transactionId)) return { status: "withheld" };
    return this.taken.has(transactionId) ? this.#answer(payment) : null;
  }

  settle(_profile: AgentProfile, payment: Payment): Promise<RailOutcome | null> {
    return this.query(payment);
  }

  async withhold(_profile: AgentProfile, payment: Payment): Promise<RailOutcome> {
    const { transactionId } = payment.request;
    if (this.taken.has(transactionId)) return this.#answer(payment);
    this.withheld.add(transactionId);
    return { status: "withheld" };
  }

  balance(): Promise<RailBalance> {
    return Promise.resolve({ kind: "none" });
  }

  detach(): Promise<Detachment> {
    return Promise.resolve("detached");
  }

  /** Waits for the next call of any payment. */
  async nextCall(): Promise<void> {
    await once(this.#calls, "call");
  }

  async #answer(payment: StoredPayment): Promise<RailOutcome> {
    const { transactionId } = payment.request;
    const call = (this.#callsOf.get(transactionId) ?? 0) + 1;
    this.#callsOf.set(transactionId, call);
    this.#calls.emit("call");
    return this.#script(payment, call);
  }
}

/** Projections in memory: of each record the highest revision stands. */
export class MemoryProjections implements Projections {
  readonly payments = new Map<string, Payment>();
  readonly agents = new Map<string, AgentSummary>();
  readonly accounts = new Map<string, AccountSummary>();
  /** By team; the project's own under "". */
  readonly caps = new Map<string, Cap>();
  /** Agents whose accounts can't be written down. */
  readonly broken = new Set<string>();

  writePayment(_profile: AgentProfile, payment: Payment): Promise<void> {
    return newest(this.payments, payment.request.transactionId, payment);
  }

  endOf(transactionId: string): Promise<UnpaidEnd | null> {
    const payment = this.payments.get(transactionId);
    const isEnded = payment !== undefined && ["denied", "expired", "failed"].includes(payment.status);
    return Promise.resolve(isEnded ? payment : null);
  }

  /** Nothing touches a payment after its end in these scenes. */
  paymentOf(): Promise<null> {
    return Promise.resolve(null);
  }

  closedAgent(): Promise<null> {
    return Promise.resolve(null);
  }

  textsOf(transactionId: string): Promise<PaymentTexts | null> {
    return Promise.resolve(this.payments.get(transactionId)?.request ?? null);
  }

  writeAgent(summary: AgentSummary): Promise<void> {
    return newest(this.agents, summary.agentId, summary);
  }

  writeAccount(summary: AccountSummary): Promise<void> {
    if (this.broken.has(summary.agentId)) return Promise.reject(new Error("this record is broken"));
    return newest(this.accounts, summary.agentId, summary);
  }

  writeCaps(_projectId: string, caps: readonly RecordedCap[]): Promise<void> {
    for (const { cap, teamId } of caps) {
      const known = this.caps.get(teamId ?? "");
      if (known === undefined || known.version < cap.version) this.caps.set(teamId ?? "", cap);
    }
    return Promise.resolve();
  }

  status(transactionId: string): string | undefined {
    return this.payments.get(transactionId)?.status;
  }
}

function newest<T extends { readonly revision: number }>(
  records: Map<string, T>,
  id: string,
  record: T,
): Promise<void> {
  const known = records.get(id);
  if (known === undefined || known.revision < record.revision) records.set(id, record);
  return Promise.resolve();
}

/** Publishes nothing. */
export const silentPublishing: PaymentPublishing = {
  publish: () => Promise.resolve(),
  flush: () => undefined,
};

/** Nothing is forged. */
export const VOUCHED: PaymentProofs = {
  isAccepted: () => true,
  isResolvedAsNamed: () => true,
  onForged: () => undefined,
};

/** Something that a test opens when it wants what waits behind it to go on. */
export function gate(): { readonly opened: Promise<unknown>; open(): void } {
  const gates = new EventEmitter();
  return { opened: once(gates, "open"), open: () => void gates.emit("open") };
}
