import {
  type Books,
  booked,
  capturedIn,
  capturedInFull,
  isBooked,
  type Money,
  moneyIn,
  NO_BOOKS,
  NO_MONEY,
  type RailBooks,
  type Stage,
} from "./books.ts";
import type { Denial } from "./policy.ts";
import type { RailFailureCode } from "./rail-failures.ts";
import type { Warning } from "./thresholds.ts";
import type { LimitThen } from "./measures.ts";
import { utcDate } from "./usage.ts";

export const RAILS = ["card", "wallet"] as const;
export type Rail = (typeof RAILS)[number];

/** Settlement of each rail: with a processor at once, or on a chain, final some blocks later. */
export const SETTLES_ON: Readonly<Record<Rail, "processor" | "chain">> = {
  card: "processor",
  wallet: "chain",
};

/** Rail of agents' wallets: contracts on the chain that hold money and limits. */
export const WALLET_RAIL = "wallet" satisfies Rail;

/** Protocols by which shops on the web are paid. */
export const PROTOCOLS = ["x402/2", "x402/1", "mpp"] as const;
export type Protocol = (typeof PROTOCOLS)[number];

export const perRail = <T>(make: (rail: Rail) => T): Readonly<Record<Rail, T>> => ({
  card: make("card"),
  wallet: make("wallet"),
});

export type TransactionStatus = "approved" | "pending" | "denied" | "failed" | "reversed" | "expired";
export type ApprovalResolution = "approved" | "executing" | "denied" | "failed" | "expired";

/** Texts of a payment that the client chooses. */
export interface PaymentTexts {
  /** Merchant of a card payment, address of a wallet payment. */
  readonly recipient: string;
  readonly purpose: string;
  /** URL that is paid for; only of a purchase. */
  readonly resource?: string;
}

/** Facts of a payment as the server accepted them. The server creates the ids: a workflow's would repeat. */
export interface PaymentRequest extends PaymentTexts {
  readonly transactionId: string;
  /** Used only if the payment is held. */
  readonly approvalId: string;
  /** Hash of the idempotency key. `payloadHash` is that of the payload sent with it. */
  readonly keyHash: string;
  readonly payloadHash: string;
  readonly rail: Rail;
  readonly amountMc: number;
  readonly currency: "USD";
  readonly merchantCategory: string | null;
  /** Protocol of the shop's offer; only of a purchase. */
  readonly protocol?: Protocol;
  /** Hash of rail, recipient as compared, and amount; a workflow can't compute it. */
  readonly fingerprint: string;
  /** Proof that the service accepted the request; only the service can make one. */
  readonly proof: string;
  /** Versions of the rules and restrictions that judged the payment; missing if none were ever set. */
  readonly rulesVersions?: RulesVersions;
}

/**
 * Versions of the rules and restrictions over a payment; each level's is raised by either, and null if there are none.
 * An agent has only restrictions.
 */
export interface RulesVersions {
  readonly project: number | null;
  readonly team: number | null;
  readonly agent: number | null;
}

/** The agent's budget when its payment was put on hold, including that payment's reservation. */
export interface BudgetContext {
  readonly budgetCents: number;
  readonly spentCents: number;
  readonly reservedCents: number;
  readonly remainingCents: number;
}

export interface Resolver {
  readonly userId: string;
  readonly name: string;
}

export interface Approval {
  readonly id: string;
  readonly flaggedByRuleTypes: readonly string[];
  readonly budgetContext: BudgetContext;
  readonly expiresAt: number;
  readonly resolution: ApprovalResolution | null;
  readonly resolvedAt: number | null;
  readonly resolvedBy: Resolver | null;
  readonly feedback: string | null;
  /** Proof that `resolvedBy` decided so; only for a person's decision. */
  readonly proof?: string;
  /** The named person did not make this decision. Only in records, never in a ledger. */
  readonly isForged?: true;
  /** Version of the agent's policy that was checked again at the approval. */
  readonly policyVersion?: number;
}

/**
 * Phase of a payment: `held` waits for a person; `sending` is decided, and its rail is to be called; `following` was
 * sent and may still change on its rail; `done` is final.
 */
export type PaymentPhase = "held" | "sending" | "following" | "done";

export interface PaymentCard {
  readonly last4: string;
  /** Epoch milliseconds up to which the card waits for its first authorization. */
  readonly readyUntil: number;
}

export interface Payment {
  readonly request: PaymentRequest;
  /** Position among the agent's payments, from 1. */
  readonly sequence: number;
  readonly createdAt: number;
  /** Instant that counts: the creation or, if the clock went back, the newest instant counted before. */
  readonly countedAt: number;
  /** UTC date on which the amount is counted. */
  readonly day: string;
  /**
   * Instant at which the payment counts in the windows of spend limits, if other than its creation: its approval, or a
   * later instant because the clock went back.
   */
  readonly windowAt?: number;
  readonly status: TransactionStatus;
  readonly phase: PaymentPhase;
  readonly denial: Denial | null;
  /** Time of the denial, failure, expiry or reversal. */
  readonly deniedAt: number | null;
  readonly approval: Approval | null;
  readonly onChainTxHash: string | null;
  readonly chainCaip2: string | null;
  /** Receipt of the shop; only of a purchase. */
  readonly receipt?: string;
  /** Only of a payment for which its network requests authorizations. */
  readonly card?: PaymentCard;
  /** Null until the network has charged the payment or requested an authorization. */
  readonly books: Books | null;
  /** Version of the agent's policy at the decision. */
  readonly policyVersion: number;
  /** Limits that the payment brought to a threshold; only in a ledger, until published. */
  readonly warnings?: readonly Warning[];
  /** Types of shadow rules that would have flagged the payment; missing if none. */
  readonly wouldHaveFlagged?: readonly string[];
  /** All limits by which the payment was decided; only in a ledger, until published. */
  readonly limits?: readonly LimitThen[];
  /** Raised by every change; a projection never replaces a higher revision by a lower one. */
  readonly revision: number;
}

/** A payment as stored in its ledger. The texts are null once their record is known to be written. */
export interface StoredPayment extends Omit<Payment, "request"> {
  readonly request: Omit<PaymentRequest, keyof PaymentTexts> & {
    readonly [K in "recipient" | "purpose"]: PaymentTexts[K] | null;
  } & Pick<PaymentTexts, "resource">;
}

export function withoutTexts(payment: StoredPayment): StoredPayment {
  const { request } = payment;
  if (request.recipient === null && request.purpose === null) return payment;
  const { resource: _dropped, ...rest } = request;
  return { ...payment, request: { ...rest, recipient: null, purpose: null } };
}

/** Returns a payment without its warnings and limits, once they are published. */
export function withoutPublished(payment: StoredPayment): StoredPayment {
  if (payment.warnings === undefined && payment.limits === undefined) return payment;
  const { limits: _limits, warnings: _warnings, ...rest } = payment;
  return rest;
}

/** Returns the payment with the texts of its record; the same object if it has its own. */
export function withTexts(payment: StoredPayment, recorded: PaymentTexts): Payment {
  if (hasTexts(payment)) return payment;
  const { resource: _unset, ...rest } = payment.request;
  return { ...payment, request: { ...rest, ...textsIn(recorded) } };
}

/** Returns only the texts of a payment. */
export const textsIn = ({ purpose, recipient, resource }: PaymentTexts): PaymentTexts => ({
  recipient,
  purpose,
  ...(resource === undefined ? {} : { resource }),
});

export const hasTexts = (payment: StoredPayment): payment is Payment =>
  payment.request.recipient !== null && payment.request.purpose !== null;

/** A payment's trace on a chain, known as soon as its transaction is recorded. */
export interface OnChain {
  readonly txHash: string;
  /** CAIP-2, such as `eip155:<chain id>`. */
  readonly chainCaip2: string;
}

interface Trace {
  readonly onChain?: OnChain;
  /** Receipt of the shop. */
  readonly receipt?: string;
}

export interface RailFailure {
  readonly code: RailFailureCode;
  readonly reason: string;
}

export type RailOutcome =
  /** Charged in full. */
  | ({ readonly status: "settled" } & Trace)
  /** Accepted but not charged in full: the ledger books the network's reports before anything is recorded. */
  | { readonly status: "charged"; readonly books: readonly RailBooks[] }
  | ({ readonly status: "pending" } & Trace)
  /** Not charged yet: the network requests an authorization before it charges the card. */
  | { readonly status: "armed"; readonly card: PaymentCard }
  | ({ readonly status: "failed"; readonly onChain?: OnChain } & RailFailure)
  /** The rail does not have the payment and never will: it was withdrawn before the rail accepted it. */
  | { readonly status: "withheld" };

export const AGENT_PAUSED: Denial = { code: "AGENT_PAUSED", reason: "The agent is paused.", details: null };

/** A change of a payment, which leaves its request unchanged. */
type Change = Partial<Omit<Payment, "request">>;

/** Returns where a payment's money is. The totals of every level follow from this alone. */
export function moneyOf({ books, request, status }: MoneyHolder): Money {
  if (books !== null && isBooked(books)) return moneyIn(books);
  return status === "pending" ? { heldMc: request.amountMc, spentMc: 0 } : NO_MONEY;
}

/** Fields of a payment that tell where its money is. */
export type MoneyHolder = Pick<StoredPayment, "books" | "status"> & {
  readonly request: Pick<PaymentRequest, "amountMc">;
};

export const totalOf = ({ heldMc, spentMc }: Money): number => heldMc + spentMc;

/** Returns a payment's stage; null if its network has nothing of it. */
export function stageOf({
  books,
  card,
  phase,
}: Pick<StoredPayment, "books" | "card" | "phase">): Stage | null {
  if (books === null || !isBooked(books))
    return card === undefined ? null : phase === "done" ? "released" : "armed";
  if (capturedIn(books) > 0) return "captured";
  return phase === "done" ? "released" : "authorized";
}

/** Whether the payment has a card on which nothing was granted yet. */
export const isArmed = (payment: StoredPayment): boolean =>
  payment.phase === "following" && payment.card !== undefined && isUncharged(payment);

/**
 * Returns the payment after its rail's outcome. Pure and idempotent: returns the same object for an outcome that is not
 * new or comes too late. A terminal status never changes, except from `approved` to `reversed`.
 */
export function settle<P extends StoredPayment>(payment: P, outcome: RailOutcome, now: number): P {
  if (payment.phase !== "sending" && payment.phase !== "following") return payment;
  switch (outcome.status) {
    case "pending":
      return accepted(payment, traceOf(outcome));
    case "charged":
      return accepted(payment, {});
    case "armed":
      return accepted(payment, { card: outcome.card });
    case "settled":
      return settled(payment, outcome, now);
    case "failed":
      return isUncharged(payment) ? failed(payment, outcome, now) : payment;
    case "withheld":
      return isUncharged(payment) ? withheld(payment, now) : payment;
  }
}

const isUncharged = ({ books, status }: StoredPayment): boolean =>
  status === "pending" && (books === null || !isBooked(books));

const accepted = <P extends StoredPayment>(payment: P, trace: Change): P =>
  payment.phase === "sending" ? onRail(payment, { phase: "following", ...trace }) : payment;

/** Ends an armed payment without a charge, by its ledger's decision. Its card is closed afterwards. */
export const disarmed = <P extends StoredPayment>(payment: P, denial: Denial, now: number): P => ({
  ...payment,
  status: denial.code === NOT_CHARGED.code ? "failed" : "denied",
  phase: "done",
  denial,
  deniedAt: now,
  approval: resolve(payment, "failed"),
  revision: aboveRail(payment),
});

/**
 * Ends a decided payment that was never sent, because the agent was paused and its key revoked or the agent archived.
 */
const withheld = <P extends StoredPayment>(payment: P, now: number): P =>
  onRail(payment, {
    status: "denied",
    phase: "done",
    denial: AGENT_PAUSED,
    deniedAt: now,
    approval: resolve(payment, "failed"),
  });

/**
 * Whether the payment was approved at once and released later. A payment that is denied at once has no later revision.
 */
export const isWithheld = ({ approval, revision, status }: Payment): boolean =>
  approval === null && status === "denied" && revision > 1;

function settled<P extends StoredPayment>(
  payment: P,
  outcome: Extract<RailOutcome, { status: "settled" }>,
  now: number,
): P {
  // The network's own reports are more precise.
  if (!isUncharged(payment)) return payment;
  const authorizations = [capturedInFull(payment.request.amountMc)];
  const books = { ...(payment.books ?? NO_BOOKS), authorizations };
  return onRail(payment, {
    ...byBooks(payment, booked(books, now, utcDate(now)), now),
    ...traceOf(outcome),
  });
}

export const NOT_CHARGED: Denial = {
  code: "NOT_CHARGED",
  reason: "Nothing was charged, and the authorization has ended: the amount is available again.",
  details: null,
};

/** Returns status, phase and denial according to the books. A network may also revive a failed or reversed payment. */
function byBooks(payment: StoredPayment, books: Books, now: number): Change {
  const status = statusIn(books, payment.request.amountMc);
  const isEnded = status === "failed" || status === "reversed";
  const resolution = status === "failed" ? "failed" : "approved";
  return {
    books,
    status,
    phase: isOpenIn(books) ? "following" : "done",
    denial: status === "failed" ? NOT_CHARGED : null,
    deniedAt: isEnded ? (payment.status === status ? payment.deniedAt : now) : null,
    approval: status === "pending" ? payment.approval : resolve(payment, resolution),
  };
}

/** Returns the status according to the books; null if nothing is booked. */
export const bookedStatus = ({ books, request }: MoneyHolder): TransactionStatus | null =>
  books !== null && isBooked(books) ? statusIn(books, request.amountMc) : null;

function statusIn(books: Books, requestedMc: number): TransactionStatus {
  const capturedMc = capturedIn(books);
  if (capturedMc > 0 || capturedMc >= requestedMc) {
    const isGivenBack = books.authorizations.some(({ creditedMc }) => creditedMc > 0);
    return isGivenBack && totalOf(moneyIn(books)) === 0 ? "reversed" : "approved";
  }
  return isOpenIn(books) ? "pending" : "failed";
}

/** Whether the network may still charge something by itself. */
const isOpenIn = ({ authorizations, clearances }: Books): boolean =>
  clearances.length > 0 || authorizations.some(({ isOpen }) => isOpen);

export const withBooks = <P extends StoredPayment>(payment: P, books: Books, now: number): P => ({
  ...payment,
  ...byBooks(payment, books, now),
  revision: aboveRail(payment),
});

/** Returns a revision above any that the rail's outcomes can give, to replace an executor's record. */
const aboveRail = (payment: StoredPayment): number =>
  payment.revision - stepsOnRail(payment) + STEPS_ON_RAIL + 1;

const traceOf = ({ onChain, receipt }: Trace): Change => ({
  ...(onChain === undefined ? {} : { onChainTxHash: onChain.txHash, chainCaip2: onChain.chainCaip2 }),
  ...(receipt === undefined ? {} : { receipt }),
});

function failed<P extends StoredPayment>(
  payment: P,
  outcome: Extract<RailOutcome, { status: "failed" }>,
  now: number,
): P {
  return onRail(payment, {
    status: "failed",
    phase: "done",
    denial: { code: outcome.code, reason: outcome.reason, details: null },
    deniedAt: now,
    approval: resolve(payment, "failed"),
    ...traceOf(outcome),
  });
}

/**
 * Returns the payment changed by its rail. Its revision follows from its new state, not from the number of queries:
 * server, sweep and settlement may each see a different outcome first, yet must record the same under one revision, and
 * a later outcome under a higher one.
 */
function onRail<P extends StoredPayment>(payment: P, change: Change): P {
  const steps = stepsOnRail({ phase: change.phase ?? payment.phase }) - stepsOnRail(payment);
  return { ...payment, ...change, revision: payment.revision + steps };
}

function stepsOnRail({ phase }: Pick<StoredPayment, "phase">): number {
  if (phase === "following") return 1;
  return phase === "done" ? STEPS_ON_RAIL : 0;
}

const STEPS_ON_RAIL = 2;

/** Revision at which a held payment waits for a person. */
export const HELD_REVISION = 1;

const resolve = (payment: StoredPayment, resolution: ApprovalResolution): Approval | null =>
  payment.approval === null ? null : { ...payment.approval, resolution };

export const next = <P extends StoredPayment>(payment: P, change: Change): P => ({
  ...payment,
  ...change,
  revision: payment.revision + 1,
});
