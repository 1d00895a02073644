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

/** The rail of agents' wallets: contracts on the chain that hold money and limits. */
export const WALLET_RAIL = "wallet" satisfies Rail;

/** The protocols by which shops on the web are paid. */
export const PROTOCOLS = ["x402/2", "x402/1", "mpp"] as const;
export type Protocol = (typeof PROTOCOLS)[number];

/** Something for each rail. */
export const perRail = <T>(make: (rail: Rail) => T): Readonly<Record<Rail, T>> => ({
  card: make("card"),
  wallet: make("wallet"),
});

export type TransactionStatus = "approved" | "pending" | "denied" | "failed" | "reversed" | "expired";
export type ApprovalResolution = "approved" | "executing" | "denied" | "failed" | "expired";

/** The texts of a payment that a client chooses. */
export interface PaymentTexts {
  /** The merchant of a card payment, the address of a wallet payment. */
  readonly recipient: string;
  readonly purpose: string;
  /** The URL that is paid for; only of a purchase. */
  readonly resource?: string;
}

/** The facts of a payment as the server took them in. Ids are made by the server: a workflow's would repeat. */
export interface PaymentRequest extends PaymentTexts {
  readonly transactionId: string;
  /** Used only if the payment is held. */
  readonly approvalId: string;
  /** Hash of the idempotency key, and of the payload it came with. */
  readonly keyHash: string;
  readonly payloadHash: string;
  readonly rail: Rail;
  readonly amountMc: number;
  readonly currency: "USD";
  readonly merchantCategory: string | null;
  /** The protocol of the shop's offer; only of a purchase. */
  readonly protocol?: Protocol;
  /** Hash of rail, recipient as it is compared, and amount; a workflow can't make one. */
  readonly fingerprint: string;
  /** Proof that the service accepted it: only the service can make one. */
  readonly proof: string;
  /** Versions of the rules and restrictions that judged the payment; absent if none were ever set. */
  readonly rulesVersions?: RulesVersions;
}

/**
 * Versions of the rules and restrictions over a payment, each level's raised by either; null: there are none. An agent
 * has restrictions alone.
 */
export interface RulesVersions {
  readonly project: number | null;
  readonly team: number | null;
  readonly agent: number | null;
}

/** The agent's budget at the moment its payment was put on hold, that payment's reservation included. */
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
  /** Proof that `resolvedBy` decided so. Only where a person did. */
  readonly proof?: string;
  /** The named person did not make this decision. Only in records, never in a ledger. */
  readonly isForged?: true;
  /** Version of the agent's policy that was checked again at the approval. */
  readonly policyVersion?: number;
}

/**
 * The phase of a payment between decision and end: `held` waits for a person; `sending` is decided, its rail is to be called;
 * `following` was sent and may still change on its rail; `done` changes no more.
 */
export type PaymentPhase = "held" | "sending" | "following" | "done";

/** The card that was made for a payment. */
export interface PaymentCard {
  readonly last4: string;
  /** Epoch milliseconds. Until then it waits for its first authorization. */
  readonly readyUntil: number;
}

export interface Payment {
  readonly request: PaymentRequest;
  /** Position among the agent's payments, from 1. */
  readonly sequence: number;
  readonly createdAt: number;
  /** The instant that it is counted at: when it was created, or the newest instant counted before, where the clock went back. */
  readonly countedAt: number;
  /** UTC date on which its amount is counted. */
  readonly day: string;
  /**
   * Instant at which it counts in the windows of spend limits, where that is not when it was created: it was approved later, or the clock
   * went back.
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
  /** The shop's receipt; only of a purchase. */
  readonly receipt?: string;
  /** Only of a payment that its network asks for. */
  readonly card?: PaymentCard;
  /** Null until its network has charged it, or was asked to. */
  readonly books: Books | null;
  /** Version of the agent's policy at the decision. */
  readonly policyVersion: number;
  /** Limits that it has brought to a threshold; only in a ledger, and until they are published. */
  readonly warnings?: readonly Warning[];
  /** Types of rules in the shadow that would have flagged it; left out: none. */
  readonly wouldHaveFlagged?: readonly string[];
  /** All limits as it was decided by them; only in a ledger, and until they are published. */
  readonly limits?: readonly LimitThen[];
  /** Raised by every change; a projection never replaces a higher revision by a lower one. */
  readonly revision: number;
}

/** A payment as its ledger has it. The ledger keeps its texts only until their record is known to be written: then they are null. */
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

/** A payment whose warnings and limits are published. */
export function withoutPublished(payment: StoredPayment): StoredPayment {
  if (payment.warnings === undefined && payment.limits === undefined) return payment;
  const { limits: _limits, warnings: _warnings, ...rest } = payment;
  return rest;
}

/** The payment with the texts of its record; the same object where it has its own. */
export function withTexts(payment: StoredPayment, recorded: PaymentTexts): Payment {
  if (hasTexts(payment)) return payment;
  const { resource: _unset, ...rest } = payment.request;
  return { ...payment, request: { ...rest, ...textsIn(recorded) } };
}

/** The texts of a payment, or of anything that has them. */
export const textsIn = ({ purpose, recipient, resource }: PaymentTexts): PaymentTexts => ({
  recipient,
  purpose,
  ...(resource === undefined ? {} : { resource }),
});

export const hasTexts = (payment: StoredPayment): payment is Payment =>
  payment.request.recipient !== null && payment.request.purpose !== null;

/** A payment's trace on a chain; known as soon as its transaction is recorded. */
export interface OnChain {
  readonly txHash: string;
  /** CAIP-2, `eip155:<chain id>`. */
  readonly chainCaip2: string;
}

/** The evidence of a payment. */
interface Trace {
  readonly onChain?: OnChain;
  /** The shop's receipt. */
  readonly receipt?: string;
}

/** Why a payment failed on its rail. */
export interface RailFailure {
  readonly code: RailFailureCode;
  readonly reason: string;
}

/** The outcome of a payment on its rail. */
export type RailOutcome =
  /** Charged in full. */
  | ({ readonly status: "settled" } & Trace)
  /** Accepted, and not charged in full: the ledger books what the network reports before anything is recorded. */
  | { readonly status: "charged"; readonly books: readonly RailBooks[] }
  | ({ readonly status: "pending" } & Trace)
  /** Nothing is charged yet: the network asks before it charges the card. */
  | { readonly status: "armed"; readonly card: PaymentCard }
  | ({ readonly status: "failed"; readonly onChain?: OnChain } & RailFailure)
  /** The rail does not have it and never will: it was withdrawn before the rail accepted it. */
  | { readonly status: "withheld" };

export const AGENT_PAUSED: Denial = { code: "AGENT_PAUSED", reason: "The agent is paused.", details: null };

/** A change of a payment, which leaves its request as it is. */
type Change = Partial<Omit<Payment, "request">>;

/** Returns where a payment's money is. The totals of every level follow from this alone. */
export function moneyOf({ books, request, status }: MoneyHolder): Money {
  if (books !== null && isBooked(books)) return moneyIn(books);
  return status === "pending" ? { heldMc: request.amountMc, spentMc: 0 } : NO_MONEY;
}

/** The parts of a payment that say where its money is. */
export type MoneyHolder = Pick<StoredPayment, "books" | "status"> & {
  readonly request: Pick<PaymentRequest, "amountMc">;
};

export const totalOf = ({ heldMc, spentMc }: Money): number => heldMc + spentMc;

/** Null: its network has nothing of it. */
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

/** Whether the payment has a card, and nothing was granted on it yet. */
export const isArmed = (payment: StoredPayment): boolean =>
  payment.phase === "following" && payment.card !== undefined && isUncharged(payment);

/**
 * The payment after its rail has answered. Pure and idempotent: an outcome that says nothing new, or that comes too
 * late, gives the same object back. A terminal status never changes, but `approved` to `reversed`.
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

/** Ends an armed payment without a charge, by its ledger's decision: its card is closed afterwards. */
export const disarmed = <P extends StoredPayment>(payment: P, denial: Denial, now: number): P => ({
  ...payment,
  status: denial.code === NOT_CHARGED.code ? "failed" : "denied",
  phase: "done",
  denial,
  deniedAt: now,
  approval: resolve(payment, "failed"),
  revision: aboveRail(payment),
});

/** Decided, and never sent: the agent was paused, and its key revoked or the agent archived. */
const withheld = <P extends StoredPayment>(payment: P, now: number): P =>
  onRail(payment, {
    status: "denied",
    phase: "done",
    denial: AGENT_PAUSED,
    deniedAt: now,
    approval: resolve(payment, "failed"),
  });

/** Whether it was let through at first, and released since: what is denied at once never has a later revision by that. */
export const isWithheld = ({ denial, revision, status }: Payment): boolean =>
  status === "denied" && denial?.code === "AGENT_PAUSED" && revision > 1;

function settled<P extends StoredPayment>(
  payment: P,
  outcome: Extract<RailOutcome, { status: "settled" }>,
  now: number,
): P {
  // The network's own reports say more.
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

/** Status, phase and denial as the books have them. A network may also bring back what has failed or was reversed. */
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

/** The status that a payment's books give it; null: nothing is booked. */
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

/** The payment as its ledger has booked it. */
export const withBooks = <P extends StoredPayment>(payment: P, books: Books, now: number): P => ({
  ...payment,
  ...byBooks(payment, books, now),
  revision: aboveRail(payment),
});

/** A revision above all that rails' outcomes can have given the payment: what an executor has recorded meanwhile is replaced. */
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
 * The payment changed by its rail. Its revision follows from what it has become, not from how often the rail was queried:
 * server, sweep and settlement may each have seen a different outcome first, and what they record under one revision must be the
 * same, with the later outcome under the higher one.
 */
function onRail<P extends StoredPayment>(payment: P, change: Change): P {
  const after = { ...payment, ...change };
  return { ...after, revision: payment.revision - stepsOnRail(payment) + stepsOnRail(after) };
}

function stepsOnRail({ phase }: StoredPayment): number {
  if (phase === "following") return 1;
  return phase === "done" ? STEPS_ON_RAIL : 0;
}

const STEPS_ON_RAIL = 2;

/** The revision at which a payment on hold waits for a person. */
export const HELD_REVISION = 1;

const resolve = (payment: StoredPayment, resolution: ApprovalResolution): Approval | null =>
  payment.approval === null ? null : { ...payment.approval, resolution };

/** Returns the changed payment at its next revision. */
export const next = <P extends StoredPayment>(payment: P, change: Change): P => ({
  ...payment,
  ...change,
  revision: payment.revision + 1,
});
