import type { RailBooks } from "../domain/ledger/books.ts";
import type { AgentCommand, AgentReply } from "../domain/agent/commands.ts";
import type { Payment, PaymentTexts, Rail, RailOutcome, StoredPayment } from "../domain/ledger/payment.ts";
import type { Permission } from "../domain/ledger/permission.ts";
import type { BudgetPolicy } from "../domain/ledger/policy.ts";
import type { AgentProfile, AgentSummary } from "../domain/agent/state.ts";
import type { DroppedAccount, LedgerCommand, LedgerReply, RecordedCap } from "../domain/ledger/commands.ts";
import type { AccountSummary } from "../domain/ledger/state.ts";
import type { ApprovalEnd } from "../messages/approval.ts";
import type { ProjectRef } from "../messages/ledger.ts";

/** Properties of a rail. */
export interface RailCapabilities {
  /** `eventual`: what was sent is final only later, and its end is waited for. */
  readonly finality: "instant" | "eventual";
}

/** An agent's balance on a rail. Unreadable is not zero. */
export type RailBalance =
  /** `pocketCents`: the part of it that is set aside as change for purchases on the web. */
  | { readonly kind: "cents"; readonly cents: number; readonly pocketCents: number }
  /** The rail holds nothing for agents. */
  | { readonly kind: "none" }
  | { readonly kind: "unreadable" };

/** Whether the service can still spend for the agent on this rail. */
export type Detachment = "detached" | "pending";

/** `fenced`: nothing was sent, and the payment may be sent under a newer permit. */
export type SendOutcome = RailOutcome | { readonly status: "fenced" };

/**
 * A payment rail: embedded, or an external service. A call that ends without an answer throws: then nothing is known, and the
 * caller asks again, with the same transaction id.
 */
export interface RailPort {
  readonly capabilities: RailCapabilities;
  /** Null: nothing touches a payment after its end. */
  readonly network: RailNetwork | null;
  /**
   * Sends a payment. At most one effect for a transaction id, however often and by whomever it is called: a rail that does not
   * guarantee that by itself records its intent first, and reconciles afterwards. The write that
   * leaves the trace of sending goes through only where no fence above the permit is in its place, whatever waits and checks come
   * before it.
   */
  send(profile: AgentProfile, payment: Payment, permit: number): Promise<SendOutcome>;
  /**
   * Keeps payments from being sent under an earlier permit, by any process, however late it comes. Once it resolves, the rail has
   * each of them already, or has it only under a permit that is not below its fence. The answer to a stop waits for it. May be
   * repeated; a lower fence never replaces a higher one.
   *
   * The rails here have a write to fence: the capture in the sandbox processor's books, the recorded attempt of a wallet. A rail over
   * a network that only takes calls has none. It writes an intent of its own under the transaction id before each call, in the way
   * that `WalletRail` does, and the fence takes the intent's place. A call whose intent is written counts as made: before it resolves,
   * `fence` makes the call again with the same idempotency key, or cancels it where the network can. So the answer to a stop
   * means: what had an intent by then is made or will be, and nothing else.
   */
  fence(places: readonly FencedPlace[]): Promise<void>;
  /** Returns the outcome of a sent payment; null if the rail does not know it. Has no effect. */
  query(payment: StoredPayment): Promise<RailOutcome | null>;
  /**
   * Brings a payment that was sent closer to its end, and waits for it so long; null as `query`. Requests permission before it sends
   * again what was reverted on the rail.
   */
  settle(
    profile: AgentProfile,
    payment: Payment,
    withinMs: number,
    requestPermission: RequestPermission,
  ): Promise<RailOutcome | null>;
  /**
   * Decides for good that a payment which the rail does not have is never sent, by any process: `withheld`. What it has, it
   * answers as `query` does, and what it would have refused, as `send` does; nothing is taken back.
   */
  withhold(profile: AgentProfile, payment: Payment): Promise<RailOutcome>;
  balance(profile: AgentProfile): Promise<RailBalance>;
  /** Gives up the service's own right to spend for the agent, for good. May be repeated until it is `detached`. */
  detach(profile: AgentProfile): Promise<Detachment>;
}

/** A network that charges payments in part, late or more than once, and gives back. Its hints make us read its books; no hint is believed. */
export interface RailNetwork {
  /**
   * The books of a payment, all of its authorizations; empty: the network does not have it. An authorization may come several
   * times, its oldest state first: what a network can tell apart, such as two refunds, is booked as if each had been read by itself.
   * Of a network that names sums alone, what has happened between two reads is one booking.
   */
  booksOf(transactionId: string): Promise<readonly RailBooks[]>;
  /**
   * Payments that the network has touched since they were sent, the oldest change first; a payment may come more than once. A network
   * that asks before it authorizes also has those whose request was granted 10 minutes before and which it has not counted.
   */
  changedSince(since: Date): AsyncIterable<ChangedPayment>;
  /** Only of a network that asks: no more of the payment is authorized once this resolves. Repeatable. */
  close?(transactionId: string): Promise<void>;
  /**
   * Of a sandbox alone: does the numbered thing that this network does with the payment, once. `not_yet`: the payment has not
   * reached it; `never`: it won't.
   */
  play?(transactionId: string, number: number): Promise<"played" | "not_yet" | "never">;
}

export interface ChangedPayment {
  readonly transactionId: string;
  readonly changedAt: Date;
}

/** Asks the ledger whether a payment may be sent. */
export type RequestPermission = () => Promise<Permission>;

/** The place of a payment's trace, and the fence to lay there. */
export interface FencedPlace {
  readonly transactionId: string;
  readonly fence: number;
}

export type Rails = Readonly<Record<Rail, RailPort>>;

/** A recorded payment, and whose it is. */
export interface RecordedOwn {
  readonly profile: AgentProfile;
  readonly payment: Payment;
}

/** Queryable records of what was decided. Writing the same revision twice, or an older one, does nothing. */
export interface Projections {
  writePayment(profile: AgentProfile, payment: Payment): Promise<void>;
  /** Returns the number among its agent's closed payments of one that ended unpaid; null if it has not ended so. */
  endOf(transactionId: string): Promise<{ readonly sequence: number } | null>;
  /** A payment as its record has it, and whose it is; null: there is no record. */
  paymentOf(transactionId: string): Promise<RecordedOwn | null>;
  /** An agent as its records have it, all its payments closed; null: there is no record. */
  closedAgent(agentId: string): Promise<Omit<DroppedAccount, "asOfRevision"> | null>;
  /** The texts in a payment's record; null: there is no record. */
  textsOf(transactionId: string): Promise<PaymentTexts | null>;
  /** Writes the fields that an agent's actor decides. */
  writeAgent(summary: AgentSummary): Promise<void>;
  /** Writes the fields that the ledger decides. */
  writeAccount(summary: AccountSummary): Promise<void>;
  writeCaps(projectId: string, caps: readonly RecordedCap[]): Promise<void>;
}

/** Publishes the outcomes of payments to the journal of events and the audit log, on which no answer depends. */
export interface PaymentPublishing {
  /**
   * Publishes all events of a payment so far. Idempotent; resolves when they are durable. `soon`: no caller waits, so
   * it may join a larger batch.
   */
  publish(profile: AgentProfile, payment: Payment, when: "now" | "soon"): Promise<void>;
  /** Writes at once what waits for a larger batch. */
  flush(): void;
}

/** Proofs of payments and of persons' decisions, which pass through Temporal, whose clients can write its state. */
export interface PaymentProofs {
  /** Whether this service took the payment in, with this recipient and amount. */
  isAccepted(payer: Pick<AgentProfile, "organizationId" | "agentId">, payment: Payment): boolean;
  /** Whether the named person resolved it through this service; true where none is named. */
  isResolvedAsNamed(profile: AgentProfile, payment: Payment): boolean;
  /** Something forged was found, and came to nothing. */
  onForged(what: ForgedKind, profile: AgentProfile, payment: StoredPayment): void;
}

export type ForgedKind = "payment" | "decision";

/** Starts and signals the workflows that wait with a payment. Each call may be repeated. */
export interface PaymentWorkflows {
  startApproval(profile: AgentProfile, payment: Payment): Promise<void>;
  endApproval(profile: AgentProfile, payment: Payment, end: ApprovalEnd): Promise<void>;
  startSettlement(profile: AgentProfile, payment: Payment): Promise<void>;
  /** The texts as the workflow has them that waits with the payment; null: none waits. */
  textsOf(payment: StoredPayment): Promise<PaymentTexts | null>;
}

/** Keeps the limits of agents' wallets on the chain as their policies are. May be repeated. */
export interface LimitMirror {
  mirror(agentId: string, policy: BudgetPolicy, policyVersion: number): Promise<void>;
}

/** The addresses at which organizations are sent money. */
export interface Treasuries {
  /** Gives an organization its treasury, where it has none and there is an owner for it. May be repeated. */
  record(organizationId: string): Promise<unknown>;
}

/** The windows in which the first keys of machines' agents are delivered again. May be repeated. */
export interface DeliveryWindows {
  /**
   * Ends an agent's window: its sealed key is erased for good. A create that was not committed by then is given up, and
   * never will be.
   */
  close(agentId: string): Promise<"committed" | "discarded">;
}

/** The way to the ledgers of projects. */
export interface LedgerGateway {
  /** Throws where the ledger is unavailable; `LedgerLost` where there is none any more. */
  submit(project: ProjectRef, command: LedgerCommand): Promise<LedgerReply<Payment>>;
}

/** Starts the ledgers of new projects. */
export interface LedgerStarter {
  /** Starts a ledger before its project has a record; repeatable until then, and never done later. */
  startLedger(project: ProjectRef): Promise<void>;
}

/** The way to agents' actors. */
export interface AgentGateway {
  /** Throws `NoSuchActor` where there is none. */
  submit(agentId: string, command: AgentCommand): Promise<AgentReply>;
}

export type Clock = () => Date;
