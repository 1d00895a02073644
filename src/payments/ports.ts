import type { RailBooks } from "../domain/ledger/books.ts";
import type { AgentCommand, AgentReply } from "../domain/agent/commands.ts";
import type { Payment, PaymentTexts, Rail, RailOutcome, StoredPayment } from "../domain/ledger/payment.ts";
import type { Permission } from "../domain/ledger/permission.ts";
import type { BudgetPolicy } from "../domain/ledger/policy.ts";
import type { AgentProfile, AgentSummary } from "../domain/agent/state.ts";
import type {
  CommandOf,
  DroppedAccount,
  LedgerCommand,
  LedgerReply,
  RecordedCap,
} from "../domain/ledger/commands.ts";
import type { AccountSummary } from "../domain/ledger/state.ts";
import type { ApprovalEnd } from "../messages/approval.ts";
import type { ProjectRef } from "../messages/ledger.ts";

export interface RailCapabilities {
  /** `eventual`: a sent payment becomes final only later, and its end is awaited. */
  readonly finality: "instant" | "eventual";
}

/** An agent's balance on a rail. `unreadable` does not mean zero. */
export type RailBalance =
  /** `pocketCents`: part of the balance that is set aside as change for purchases on the web. */
  | { readonly kind: "cents"; readonly cents: number; readonly pocketCents: number }
  /** The rail holds no money for agents. */
  | { readonly kind: "none" }
  | { readonly kind: "unreadable" };

/** Whether the service can still spend for the agent on this rail. */
export type Detachment = "detached" | "pending";

/** `fenced`: nothing was sent, and the payment may be sent under a newer permit. */
export type SendOutcome = RailOutcome | { readonly status: "fenced" };

/**
 * A payment rail, embedded or an external service. A call that gets no answer throws: its outcome is unknown, and the
 * caller repeats it with the same transaction id.
 */
export interface RailPort {
  readonly capabilities: RailCapabilities;
  /** Null if nothing changes a payment after its end. */
  readonly network: RailNetwork | null;
  /**
   * Sends a payment. A transaction id has at most one effect, however often any process calls it: a rail that does not
   * guarantee this itself records its intent first and reconciles afterwards. The write that leaves the trace of
   * sending succeeds only if no fence above the permit is in its place, whatever waits and checks precede it.
   */
  send(profile: AgentProfile, payment: Payment, permit: number): Promise<SendOutcome>;
  /**
   * Prevents every process from sending the payments under an earlier permit, however late. Once resolved, the rail
   * either has each payment already, or accepts it only under a permit that is not below its fence. The response to a
   * stop waits for this. May be repeated; a lower fence never replaces a higher one.
   *
   * These rails have a write to fence: the capture in the sandbox processor's books, the recorded attempt of a wallet.
   * A rail over a network that only accepts calls has none. It writes an intent under the transaction id before each
   * call, as `WalletRail` does, and the fence takes the intent's place. A call with a written intent counts as made:
   * before `fence` resolves, it makes the call again with the same idempotency key, or cancels the call if the network
   * can. So the response to a stop means that payments with an intent by then are or will be made, and no others.
   */
  fence(places: readonly FencedPlace[]): Promise<void>;
  /** Returns the outcome of a sent payment; null if the rail does not know it. Has no effect. */
  query(payment: StoredPayment): Promise<RailOutcome | null>;
  /**
   * Advances a sent payment and waits up to `withinMs` for its end; null as `query`. Requests permission before it
   * sends a payment again that the rail reverted.
   */
  settle(
    profile: AgentProfile,
    payment: Payment,
    withinMs: number,
    requestPermission: RequestPermission,
  ): Promise<RailOutcome | null>;
  /**
   * Permanently prevents every process from sending a payment that the rail does not have, and returns `withheld`. For
   * a payment that the rail has, returns the same as `query`; for one that the rail would have refused, the same as
   * `send`. Takes nothing back.
   */
  withhold(profile: AgentProfile, payment: Payment): Promise<RailOutcome>;
  balance(profile: AgentProfile): Promise<RailBalance>;
  /** Permanently gives up the service's own right to spend for the agent. May be repeated until `detached`. */
  detach(profile: AgentProfile): Promise<Detachment>;
}

/**
 * A network that charges payments in part, late or repeatedly, and refunds. Its hints only trigger a read of its books;
 * their content is not trusted.
 */
export interface RailNetwork {
  /**
   * Returns a payment's books with all of its authorizations; empty if the network does not have the payment. An
   * authorization may come several times, oldest state first: events that the network distinguishes, such as two
   * refunds, are booked as if each had been read separately. If a network reports only sums, all changes between two
   * reads are one booking.
   */
  booksOf(transactionId: string): Promise<readonly RailBooks[]>;
  /** Yields payments that the network has changed since they were sent, oldest change first; payments may repeat. */
  changedSince(since: Date): AsyncIterable<ChangedPayment>;
  /**
   * Yields the feeds of changes that keep their own positions, such as one for each account at a card issuer. For a
   * network that asks before it authorizes, includes payments whose request was granted 10 minutes ago and not charged
   * since.
   */
  feeds(): AsyncIterable<ChangeFeed>;
  /** Keeps a payment whose change could not be booked. A feed yields it again until it is. */
  keepUnbooked(transactionId: string): Promise<void>;
  /** Only for a network that asks: once resolved, no more of the payment is authorized. Repeatable. */
  close?(transactionId: string): Promise<void>;
  /**
   * Only for a sandbox: plays the network's numbered action on the payment, once. `not_yet`: the payment has not
   * reached the action; `never`: it will not.
   */
  play?(transactionId: string, number: number): Promise<"played" | "not_yet" | "never">;
}

export interface ChangedPayment {
  readonly transactionId: string;
  readonly changedAt: Date;
}

/** Pages of changed payments' ids. A page counts as booked, and is not read again, once the next one is asked for. */
export type ChangeFeed = AsyncIterable<readonly string[]>;

export type RequestPermission = () => Promise<Permission>;

/** Place of a payment's trace, and the fence to lay there. */
export interface FencedPlace {
  readonly transactionId: string;
  readonly fence: number;
}

export type Rails = Readonly<Record<Rail, RailPort>>;

export interface RecordedOwn {
  readonly profile: AgentProfile;
  readonly payment: Payment;
}

export type UnpaidEnd = Pick<Payment, "deniedAt" | "sequence">;

/** Queryable records of decisions. Writing the same or an older revision again has no effect. */
export interface Projections {
  writePayment(profile: AgentProfile, payment: Payment): Promise<void>;
  /** Returns the recorded end of a payment that ended unpaid; null if it has not ended so. */
  endOf(transactionId: string): Promise<UnpaidEnd | null>;
  /**
   * Returns a recorded payment and its owner; null if there is no record. `to adopt`: for a ledger that has forgotten the
   * payment; throws for a record that is older than what the audit log has of it.
   */
  paymentOf(transactionId: string, use?: "to read" | "to adopt"): Promise<RecordedOwn | null>;
  /** Returns an agent's recorded account, all of its payments closed; null if there is no record. */
  closedAgent(agentId: string): Promise<Omit<DroppedAccount, "asOfRevision"> | null>;
  /** Returns the texts in a payment's record; null if there is no record. */
  textsOf(transactionId: string): Promise<PaymentTexts | null>;
  /** Writes the fields that an agent's actor decides. */
  writeAgent(summary: AgentSummary): Promise<void>;
  /** Writes the fields that the ledger decides. */
  writeAccount(summary: AccountSummary): Promise<void>;
  writeCaps(projectId: string, caps: readonly RecordedCap[]): Promise<void>;
}

/** Publishes the outcomes of payments to the event journal and the audit log. No response depends on it. */
export interface PaymentPublishing {
  /** Publishes all events of a payment so far. Idempotent; resolves once durable. `soon` allows a larger batch. */
  publish(profile: AgentProfile, payment: Payment, when: "now" | "soon"): Promise<void>;
  flush(): void;
}

/** Proofs of payments and people's decisions, since both pass through Temporal, whose clients can write it. */
export interface PaymentProofs {
  /** Whether this service accepted the payment with this recipient and amount. */
  isAccepted(payer: Pick<AgentProfile, "organizationId" | "agentId">, payment: Payment): boolean;
  /** Whether the named person resolved the payment through this service; true if none is named. */
  isResolvedAsNamed(profile: AgentProfile, payment: Payment): boolean;
  /** Reports a forgery that was found and had no effect. */
  onForged(what: ForgedKind, profile: AgentProfile, payment: StoredPayment): void;
}

export type ForgedKind = "payment" | "decision";

/** Starts and signals the workflows that wait with a payment. Each call may be repeated. */
export interface PaymentWorkflows {
  startApproval(profile: AgentProfile, payment: Payment): Promise<void>;
  endApproval(profile: AgentProfile, payment: Payment, end: ApprovalEnd): Promise<void>;
  startSettlement(profile: AgentProfile, payment: Payment): Promise<void>;
  /** Returns the texts from the workflow that waits with the payment; null if none waits. */
  textsOf(payment: StoredPayment): Promise<PaymentTexts | null>;
}

/** Mirrors agents' policies to the limits of their wallets on the chain. May be repeated. */
export interface LimitMirror {
  mirror(agentId: string, policy: BudgetPolicy, policyVersion: number): Promise<void>;
}

/** Addresses at which organizations receive deposits. */
export interface Treasuries {
  /** Creates an organization's treasury if it has an owner and no treasury. May be repeated. */
  record(organizationId: string): Promise<unknown>;
}

/** Windows in which the first keys of machines' agents can be delivered again. May be repeated. */
export interface DeliveryWindows {
  /** Ends an agent's window: erases its sealed key, and gives up a create that is uncommitted by then. */
  close(agentId: string): Promise<"committed" | "discarded">;
}

export interface SubmitOptions {
  /** Whether the caller still waits; a command that was not sent by then is dropped. */
  readonly isAwaited?: (() => boolean) | undefined;
  /** Texts of the command's payment that the caller has just read, so that they are not read again. */
  readonly texts?: PaymentTexts;
}

export interface LedgerGateway {
  /** Throws `LedgerLost` if the ledger no longer exists, or another error if it is unavailable. */
  submit(project: ProjectRef, command: LedgerCommand, options?: SubmitOptions): Promise<LedgerReply<Payment>>;
}

export interface ConfirmedLedgers extends LedgerGateway {
  /**
   * Confirms an executed payment to the ledger once it is published, with the ledger's next update or shortly after.
   */
  confirmLater(project: ProjectRef, confirmation: CommandOf<"confirm">, published: Promise<void>): void;
}

export interface BatchingLedgers extends ConfirmedLedgers {
  /** Announces a command, for which a batch waits a moment. Released once the command is submitted, or will not be. */
  announceCommand(project: ProjectRef): () => void;
}

export interface LedgerStarter {
  /** Starts a ledger before its project has a record. Repeatable until then, never done later. */
  startLedger(project: ProjectRef): Promise<void>;
}

export interface AgentGateway {
  /** Throws `NoSuchActor` if there is none. */
  submit(agentId: string, command: AgentCommand): Promise<AgentReply>;
}

export type Clock = () => Date;
