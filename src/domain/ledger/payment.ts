import type { Denial } from "./policy.ts";

export const RAILS = ["card", "wallet"] as const;
export type Rail = (typeof RAILS)[number];

/** Settlement of each rail: with a processor at once, or on a chain, final some blocks later. */
export const SETTLES_ON: Readonly<Record<Rail, "processor" | "chain">> = {
  card: "processor",
  wallet: "chain",
};

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
  readonly amountCents: number;
  readonly currency: "USD";
  readonly merchantCategory: string | null;
  /** Hash of rail, recipient as it is compared, and amount; a workflow can't make one. */
  readonly fingerprint: string;
  /** Proof that the service accepted it: only the service can make one. */
  readonly proof: string;
  /** Versions of the approval rules that judged the payment; absent if no rules were ever set. */
  readonly rulesVersions?: RulesVersions;
}

/** Versions of the approval rules of a payment's project and team; null: there are none. */
export interface RulesVersions {
  readonly project: number | null;
  readonly team: number | null;
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

export interface Payment {
  readonly request: PaymentRequest;
  /** Position among the agent's payments, from 1. */
  readonly sequence: number;
  readonly createdAt: number;
  /** The instant that it is counted at: when it was created, or the newest instant counted before, where the clock went back. */
  readonly countedAt: number;
  /** UTC date on which its amount is counted. */
  readonly day: string;
  readonly status: TransactionStatus;
  readonly phase: PaymentPhase;
  readonly denial: Denial | null;
  /** Time of the denial, failure, expiry or reversal. */
  readonly deniedAt: number | null;
  readonly approval: Approval | null;
  readonly onChainTxHash: string | null;
  readonly chainCaip2: string | null;
  /** Version of the agent's policy at the decision. */
  readonly policyVersion: number;
  /** Raised by every change; a projection never replaces a higher revision by a lower one. */
  readonly revision: number;
}

/** A payment as its ledger has it. The ledger keeps its texts only until their record is known to be written: then they are null. */
export interface StoredPayment extends Omit<Payment, "request"> {
  readonly request: Omit<PaymentRequest, keyof PaymentTexts> & {
    readonly [K in keyof PaymentTexts]: PaymentTexts[K] | null;
  };
}

export function withoutTexts(payment: StoredPayment): StoredPayment {
  const { request } = payment;
  if (request.recipient === null && request.purpose === null) return payment;
  return { ...payment, request: { ...request, recipient: null, purpose: null } };
}

/** The payment with the texts of its record; the same object where it has its own. */
export function withTexts(payment: StoredPayment, recorded: PaymentTexts): Payment {
  if (hasTexts(payment)) return payment;
  const { purpose, recipient } = recorded;
  return { ...payment, request: { ...payment.request, recipient, purpose } };
}

export const hasTexts = (payment: StoredPayment): payment is Payment =>
  payment.request.recipient !== null && payment.request.purpose !== null;

/** A payment's trace on a chain; known as soon as its transaction is recorded. */
export interface OnChain {
  readonly txHash: string;
  /** CAIP-2, `eip155:<chain id>`. */
  readonly chainCaip2: string;
}

/** Codes of payments that failed on their rail. */
export const RAIL_FAILURE_CODES = [
  "CARD_DECLINED",
  "INSUFFICIENT_FUNDS",
  "RECIPIENT_REFUSED",
  "RAIL_UNAVAILABLE",
] as const;
export type RailFailureCode = (typeof RAIL_FAILURE_CODES)[number];

/** Why a payment failed on its rail. */
export interface RailFailure {
  readonly code: RailFailureCode;
  readonly reason: string;
}

/** The outcome of a payment on its rail. */
export type RailOutcome =
  | { readonly status: "settled"; readonly final: boolean; readonly onChain?: OnChain }
  | { readonly status: "pending"; readonly onChain?: OnChain }
  | ({ readonly status: "failed"; readonly onChain?: OnChain } & RailFailure)
  | { readonly status: "reversed" }
  /** The rail does not have it and never will: it was withdrawn before the rail accepted it. */
  | { readonly status: "withheld" };

export const AGENT_PAUSED: Denial = { code: "AGENT_PAUSED", reason: "The agent is paused.", details: null };

/** A change of a payment, which leaves its request as it is. */
type Change = Partial<Omit<Payment, "request">>;

/** Returns where a payment's money is. The totals of every level follow from this alone. */
export function moneyOf({ status }: Pick<Payment, "status">): "reserved" | "spent" | "none" {
  if (status === "pending") return "reserved";
  return status === "approved" ? "spent" : "none";
}

/**
 * The payment after its rail has answered. Pure and idempotent: an outcome that says nothing new, or that comes too
 * late, gives the same object back. A terminal status never changes, but `approved` to `reversed`.
 */
export function settle<P extends StoredPayment>(payment: P, outcome: RailOutcome, now: number): P {
  if (payment.phase !== "sending" && payment.phase !== "following") return payment;
  switch (outcome.status) {
    case "pending":
      return payment.phase === "sending"
        ? onRail(payment, { phase: "following", ...traceOf(outcome) })
        : payment;
    case "settled":
      return settled(payment, outcome);
    case "failed":
      return payment.status === "pending" ? failed(payment, outcome, now) : payment;
    case "reversed":
      return onRail(payment, {
        status: "reversed",
        phase: "done",
        deniedAt: now,
        approval: resolve(payment, "approved"),
      });
    case "withheld":
      return payment.status === "pending" ? withheld(payment, now) : payment;
  }
}

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
): P {
  const phase = outcome.final ? "done" : "following";
  if (payment.status === "approved" && payment.phase === phase) return payment;
  const approval = resolve(payment, "approved");
  return onRail(payment, { status: "approved", phase, approval, ...traceOf(outcome) });
}

const traceOf = ({ onChain }: { readonly onChain?: OnChain }): Change =>
  onChain === undefined ? {} : { onChainTxHash: onChain.txHash, chainCaip2: onChain.chainCaip2 };

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

function stepsOnRail({ phase, status }: StoredPayment): number {
  if (phase === "following") return status === "pending" ? 1 : 2;
  return phase === "done" ? 3 : 0;
}

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
