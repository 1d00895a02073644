import {
  AUTHORIZATION_REFUSALS,
  AUTHORIZATIONS_MAX,
  REPORTS_MAX,
  type Booking,
  BOOKINGS_MAX,
  type Books,
  BREACH_LEVELS,
  BREACH_LIMITS,
  type Breach,
  type Clearance,
  type NetworkAnswer,
  type RailBooks,
  REQUESTS_MAX,
} from "../../domain/ledger/books.ts";
import { DENIAL_CODES, type Denial, type DenialDetails } from "../../domain/ledger/policy.ts";
import {
  type Approval,
  type BudgetContext,
  type OnChain,
  type PaymentCard,
  type PaymentRequest,
  type PaymentTexts,
  PROTOCOLS,
  type RailOutcome,
  RAILS,
  type Resolver,
  type RulesVersions,
  type StoredPayment,
} from "../../domain/ledger/payment.ts";
import { PERIODS } from "../../domain/ledger/calendar.ts";
import { RAIL_FAILURE_CODES } from "../../domain/ledger/rail-failures.ts";
import { MAX_CENTS, MAX_MC, MAX_TOTAL_MC } from "../../domain/money.ts";
import {
  type Guard,
  isArrayOf,
  isAtMost,
  isCount,
  isFlag,
  isId,
  isOneOf,
  isRecord,
  isText,
  isTime,
  isVariant,
  optional,
  orNull,
  type Shape,
} from "./guards.ts";

/**
 * Guards for payments in Temporal. Maximum lengths are the API contract's, or exceed those of the service's own texts.
 */

const NAME_CHARACTERS_MAX = 300;
/** Maximum length of a merchant's name on a card network. */
const NETWORK_NAME_CHARACTERS_MAX = 100;
const REASON_CHARACTERS_MAX = 2_000;
const RECIPIENT_CHARACTERS_MAX = 200;
const PURPOSE_CHARACTERS_MAX = 500;
const RESOURCE_CHARACTERS_MAX = 2_048;
const RECEIPT_CHARACTERS_MAX = 1_000;
const FEEDBACK_CHARACTERS_MAX = 1_000;
/** Maximum flagging rules: two levels of 50 rules each, and the agent's threshold. */
const RULE_TYPES_MAX = 101;
/** Maximum breaches: each level's limits, including its spend limits. */
const BREACHES_MAX = 5 + BREACH_LEVELS.length * PERIODS.length;

const isRail = isOneOf(RAILS);
const isReason = isText(REASON_CHARACTERS_MAX);
export const isShort = isText(100);

export const isCents = isAtMost(MAX_CENTS);
export const isMc = isAtMost(MAX_MC);
export const isName = isText(NAME_CHARACTERS_MAX);
export const isFeedback = isText(FEEDBACK_CHARACTERS_MAX);
export const isProof = isText(100);

export const isResolver = isRecord<Resolver>({ userId: isId, name: isName });

const texts: Shape<PaymentTexts> = {
  recipient: isText(RECIPIENT_CHARACTERS_MAX),
  purpose: isText(PURPOSE_CHARACTERS_MAX),
  resource: optional(isText(RESOURCE_CHARACTERS_MAX)),
};

export const areVersions = isRecord<RulesVersions>({
  project: orNull(isCount),
  team: orNull(isCount),
  agent: orNull(isCount),
});

const request: Shape<Omit<PaymentRequest, keyof PaymentTexts>> = {
  transactionId: isId,
  approvalId: isId,
  keyHash: isId,
  payloadHash: isId,
  rail: isRail,
  amountMc: isMc,
  currency: isOneOf(["USD"]),
  merchantCategory: orNull(isShort),
  protocol: optional(isOneOf(PROTOCOLS)),
  fingerprint: isId,
  proof: isProof,
  rulesVersions: optional(areVersions),
};

export const isRequest = isRecord<PaymentRequest>({ ...request, ...texts });

const isStoredRequest = isRecord<StoredPayment["request"]>({
  ...request,
  recipient: orNull(texts.recipient),
  purpose: orNull(texts.purpose),
  resource: texts.resource,
});

/** Sums of several captures or refunds may exceed the maximum of one payment. */
const isReportedMc = isAtMost(MAX_TOTAL_MC);

const isReport = isRecord<RailBooks>({
  authorization: isText(100),
  requests: isCount,
  authorizedMc: isReportedMc,
  capturedMc: isReportedMc,
  creditedMc: isReportedMc,
  recalledMc: isReportedMc,
  disputedMc: isReportedMc,
  isOpen: isFlag,
});

export const isReports = isArrayOf(isReport, REPORTS_MAX);

const onChain = optional(isRecord<OnChain>({ txHash: isShort, chainCaip2: isShort }));
const receipt = optional(isText(RECEIPT_CHARACTERS_MAX));

const isCard = isRecord<PaymentCard>({ last4: isText(4), readyUntil: isTime });

export const isRailOutcome: Guard<RailOutcome> = isVariant<RailOutcome, "status">("status", {
  settled: { onChain, receipt },
  pending: { onChain, receipt },
  failed: { onChain, code: isOneOf(RAIL_FAILURE_CODES), reason: isReason },
  armed: { card: isCard },
  charged: { books: isReports },
  withheld: {},
});

const isApproval = isRecord<Approval>({
  id: isId,
  flaggedByRuleTypes: isArrayOf(isShort, RULE_TYPES_MAX),
  budgetContext: isRecord<BudgetContext>({
    budgetCents: isCents,
    spentCents: isCount,
    reservedCents: isCount,
    remainingCents: isCount,
  }),
  expiresAt: isTime,
  resolution: orNull(isOneOf(["approved", "executing", "denied", "failed", "expired"])),
  resolvedAt: orNull(isTime),
  resolvedBy: orNull(isResolver),
  feedback: orNull(isFeedback),
  proof: optional(isProof),
  isForged: optional((value): value is true => value === true),
  policyVersion: optional(isCount),
});

const isDenial = isRecord<Denial>({
  code: isOneOf(DENIAL_CODES),
  reason: isReason,
  details: orNull(
    isRecord<DenialDetails>({
      limit: isCount,
      remaining: isCount,
      resetsAt: orNull(isTime),
      period: optional(isOneOf(PERIODS)),
    }),
  ),
});

const areBreaches = isArrayOf(
  isRecord<Breach>({
    level: isOneOf(BREACH_LEVELS),
    limit: isOneOf(BREACH_LIMITS),
    overMc: isCount,
  }),
  BREACHES_MAX,
);

const isBooks = isRecord<Books>({
  authorizations: isArrayOf(isReport, AUTHORIZATIONS_MAX),
  clearances: isArrayOf(
    isRecord<Clearance>({ authorization: isText(100), position: isCount, mc: isMc, at: isTime }),
    REQUESTS_MAX,
  ),
  answers: isArrayOf(
    isRecord<NetworkAnswer>({
      authorization: isText(100),
      position: isCount,
      refusal: orNull(isOneOf(AUTHORIZATION_REFUSALS)),
      mc: isMc,
      merchant: isText(NETWORK_NAME_CHARACTERS_MAX),
      at: isTime,
    }),
    REQUESTS_MAX,
  ),
  bookings: isArrayOf(
    isRecord<Booking>({
      at: isTime,
      day: isShort,
      heldMc: isCount,
      capturedMc: isCount,
      creditedMc: isCount,
      recalledMc: isCount,
      disputedMc: isCount,
      breaches: optional(areBreaches),
    }),
    BOOKINGS_MAX,
  ),
  breaches: areBreaches,
});

/** Fields that records never have. */
const isNothing = (_value: unknown): _value is never => false;

/**
 * A payment from its record, which the ledger takes back when the network reports on it again. It holds no money: the
 * proof of a record's books is missing where there are none, and what it claimed to hold would be released.
 */
export const isClosedPayment = isRecord<StoredPayment>({
  request: isStoredRequest,
  sequence: isCount,
  createdAt: isTime,
  countedAt: isTime,
  day: isShort,
  windowAt: optional(isTime),
  status: isOneOf(["approved", "denied", "failed", "reversed", "expired"]),
  phase: isOneOf(["done"]),
  denial: orNull(isDenial),
  deniedAt: orNull(isTime),
  approval: orNull(isApproval),
  onChainTxHash: orNull(isShort),
  chainCaip2: orNull(isShort),
  receipt,
  card: optional(isCard),
  books: orNull(isBooks),
  policyVersion: isCount,
  warnings: optional(isNothing),
  wouldHaveFlagged: optional(isArrayOf(isShort, RULE_TYPES_MAX)),
  limits: optional(isNothing),
  revision: isCount,
});
