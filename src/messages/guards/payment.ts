import {
  type Approval,
  type BudgetContext,
  type OnChain,
  type Payment,
  type PaymentRequest,
  type PaymentTexts,
  type RailOutcome,
  RAIL_FAILURE_CODES,
  RAILS,
  type Resolver,
  type RulesVersions,
} from "../../domain/ledger/payment.ts";
import type { Denial, DenialDetails } from "../../domain/ledger/policy.ts";
import type { AgentProfile } from "../../domain/agent/state.ts";
import { MAX_CENTS } from "../../domain/money.ts";
import type { ApprovalInput } from "../approval.ts";
import type { SettlementInput } from "../settlement.ts";
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

/** Payments, as they go through Temporal. The lengths are those of the contract, or longer than any text of ours. */

const NAME_CHARACTERS_MAX = 300;
const REASON_CHARACTERS_MAX = 2_000;
export const RECIPIENT_CHARACTERS_MAX = 200;
const PURPOSE_CHARACTERS_MAX = 500;
const FEEDBACK_CHARACTERS_MAX = 1_000;
const FLAGS_MAX = 50;

export const isRail = isOneOf(RAILS);
const isReason = isText(REASON_CHARACTERS_MAX);
const isShort = isText(100);

export const isCents = isAtMost(MAX_CENTS);
export const isName = isText(NAME_CHARACTERS_MAX);
export const isFeedback = isText(FEEDBACK_CHARACTERS_MAX);
export const isProof = isText(100);

export const isProfile = isRecord<AgentProfile>({
  organizationId: isId,
  projectId: isId,
  teamId: isId,
  agentId: isId,
  name: isName,
});

export const isResolver = isRecord<Resolver>({ userId: isId, name: isName });

const texts: Shape<PaymentTexts> = {
  recipient: isText(RECIPIENT_CHARACTERS_MAX),
  purpose: isText(PURPOSE_CHARACTERS_MAX),
};

export const isRequest = isRecord<PaymentRequest>({
  transactionId: isId,
  approvalId: isId,
  keyHash: isId,
  payloadHash: isId,
  rail: isRail,
  amountCents: isCents,
  currency: isOneOf(["USD"]),
  ...texts,
  merchantCategory: orNull(isShort),
  fingerprint: isId,
  proof: isProof,
  rulesVersions: optional(isRecord<RulesVersions>({ project: orNull(isCount), team: orNull(isCount) })),
});

const limitCodes = [
  "PER_TRANSACTION_LIMIT_EXCEEDED",
  "BUDGET_EXCEEDED",
  "DAILY_SPEND_LIMIT_EXCEEDED",
  "HOURLY_VELOCITY_EXCEEDED",
  "DAILY_VELOCITY_EXCEEDED",
  "TEAM_CAP_EXCEEDED",
  "PROJECT_CAP_EXCEEDED",
] as const;

const isDetails = isRecord<DenialDetails>({ limit: isCount, remaining: isCount, resetsAt: orNull(isTime) });

const isDenial = isRecord<Denial>({
  code: isOneOf([
    ...limitCodes,
    ...RAIL_FAILURE_CODES,
    "AGENT_PAUSED",
    "AGENT_ARCHIVED",
    "APPROVAL_DENIED",
    "APPROVAL_EXPIRED",
    "CANCELLED_BY_AGENT",
  ]),
  reason: isReason,
  details: orNull(isDetails),
});

const onChain = optional(isRecord<OnChain>({ txHash: isShort, chainCaip2: isShort }));

export const isRailOutcome: Guard<RailOutcome> = isVariant<RailOutcome, "status">("status", {
  settled: { final: isFlag, onChain },
  pending: { onChain },
  failed: { onChain, code: isOneOf(RAIL_FAILURE_CODES), reason: isReason },
  reversed: {},
  withheld: {},
});

const approval: Shape<Approval> = {
  id: isId,
  flaggedByRuleTypes: isArrayOf(isShort, FLAGS_MAX),
  budgetContext: isRecord<BudgetContext>({
    budgetCents: isCount,
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
  isForged: optional(isTrue),
  policyVersion: optional(isCount),
};

function isTrue(value: unknown): value is true {
  return value === true;
}

/** A payment in messages between actors and the workflows that wait with it. */
export const isPayment: Guard<Payment> = isRecord<Payment>({
  request: isRequest,
  sequence: isCount,
  createdAt: isTime,
  countedAt: isTime,
  day: isShort,
  status: isOneOf(["approved", "pending", "denied", "failed", "reversed", "expired"]),
  phase: isOneOf(["held", "sending", "following", "done"]),
  executor: isOneOf(["server", "approval"]),
  denial: orNull(isDenial),
  deniedAt: orNull(isTime),
  approval: orNull(isRecord(approval)),
  onChainTxHash: orNull(isShort),
  chainCaip2: orNull(isShort),
  policyVersion: isCount,
  revision: isCount,
});

export const isApprovalInput = isRecord<ApprovalInput>({
  profile: isProfile,
  approvalId: isId,
  transactionId: isId,
  amountCents: isCents,
  texts: isRecord(texts),
  flaggedByRuleTypes: isArrayOf(isShort, FLAGS_MAX),
  expiresAt: isTime,
});

export const isSettlementInput = isRecord<SettlementInput>({
  profile: isProfile,
  payment: isPayment,
  polls: isCount,
});
