import { z } from "zod";
import {
  type Approval,
  type BudgetContext,
  type Payment,
  type PaymentRequest,
  type PaymentTexts,
  RAIL_FAILURE_CODES,
  RAILS,
  type Resolver,
  type RulesVersions,
  type StoredPayment,
} from "../../src/domain/ledger/payment.ts";
import type { BudgetPolicy, Denial, DenialDetails } from "../../src/domain/ledger/policy.ts";
import type { AgentProfile, AgentSummary, FollowedAgent } from "../../src/domain/agent/state.ts";
import type { RecordedCap } from "../../src/domain/ledger/commands.ts";
import type { AccountSummary, Cap } from "../../src/domain/ledger/state.ts";
import type { ToldActor } from "../../src/messages/agent.ts";
import type { MirroredLimits, UnfinishedPayment } from "../types.ts";
import {
  EVENT_TYPES,
  type EventType,
  LIFECYCLE_EVENTS,
  type LifecycleEvent,
  lifecycleEventId,
  type LifecycleEventType,
} from "../../src/domain/events.ts";
import { MAX_CENTS } from "../../src/domain/money.ts";

/** What activities are given, field by field. Bounds are those of the kinds of things, not those of the contract. */

type ShapeOf<T> = { readonly [K in keyof T]-?: z.ZodType<Required<T>[K]> };

/** An object with these fields and no other; a field that the type gets later does not compile until it is here. */
export function exactly<T>(shape: ShapeOf<T>): z.ZodType<T>;
export function exactly(shape: z.ZodRawShape): z.ZodType {
  return z.strictObject(shape);
}

/** Ids of all kinds, and hashes: one plain word, never an operator of a query. */
export const id = z.string().regex(/^[\w-]{1,200}$/);
/** A MAC behind the id of its master key. */
const proof = z.string().regex(/^[\w.-]{1,200}$/);

const TEXT_MAX = 4_000;
const LATEST_MS = 8_640_000_000_000_000;
const ITEMS_MAX = 10_000;

const text = z.string().max(TEXT_MAX);
const cents = z.int().min(0).max(MAX_CENTS);
const totalCents = z.int().min(0);
const count = z.int().min(0);
export const instant = z.int().min(0).max(LATEST_MS);
export const version = z.int().min(0);
export const items = <T>(each: z.ZodType<T>) => z.array(each).max(ITEMS_MAX);

const rail = z.enum(RAILS);

export const profile = exactly<AgentProfile>({
  organizationId: id,
  projectId: id,
  teamId: id,
  agentId: id,
  name: text,
});

export const policy = exactly<BudgetPolicy>({
  budgetCents: cents,
  autoApprovalThresholdCents: cents.nullable(),
  perTransactionLimitCents: cents.nullable(),
  dailySpendLimitCents: cents.nullable(),
  hourlyVelocityLimit: count.nullable(),
  dailyVelocityLimit: count.nullable(),
});

const texts = { recipient: text, purpose: text } as const satisfies ShapeOf<PaymentTexts>;

const requestFacts = {
  transactionId: id,
  approvalId: id,
  keyHash: id,
  payloadHash: id,
  rail,
  amountCents: cents,
  currency: z.literal("USD"),
  merchantCategory: text.nullable(),
  fingerprint: id,
  proof,
  rulesVersions: exactly<RulesVersions>({
    project: version.nullable(),
    team: version.nullable(),
  }).exactOptional(),
} as const satisfies ShapeOf<Omit<PaymentRequest, keyof PaymentTexts>>;

const request = exactly<PaymentRequest>({ ...requestFacts, ...texts });

const storedRequest = exactly<StoredPayment["request"]>({
  ...requestFacts,
  recipient: text.nullable(),
  purpose: text.nullable(),
});

const denial = exactly<Denial>({
  code: z.enum([
    "PER_TRANSACTION_LIMIT_EXCEEDED",
    "BUDGET_EXCEEDED",
    "DAILY_SPEND_LIMIT_EXCEEDED",
    "HOURLY_VELOCITY_EXCEEDED",
    "DAILY_VELOCITY_EXCEEDED",
    "TEAM_CAP_EXCEEDED",
    "PROJECT_CAP_EXCEEDED",
    "AGENT_PAUSED",
    "AGENT_ARCHIVED",
    "APPROVAL_DENIED",
    "APPROVAL_EXPIRED",
    "CANCELLED_BY_AGENT",
    ...RAIL_FAILURE_CODES,
  ]),
  reason: text,
  details: exactly<DenialDetails>({
    limit: totalCents,
    remaining: totalCents,
    resetsAt: instant.nullable(),
  }).nullable(),
});

const approval = exactly<Approval>({
  id,
  flaggedByRuleTypes: items(text),
  budgetContext: exactly<BudgetContext>({
    budgetCents: totalCents,
    spentCents: totalCents,
    reservedCents: totalCents,
    remainingCents: totalCents,
  }),
  expiresAt: instant,
  resolution: z.enum(["approved", "executing", "denied", "failed", "expired"]).nullable(),
  resolvedAt: instant.nullable(),
  resolvedBy: exactly<Resolver>({ userId: id, name: text }).nullable(),
  feedback: text.nullable(),
  proof: proof.exactOptional(),
  isForged: z.literal(true).exactOptional(),
  policyVersion: version.exactOptional(),
});

const paymentFacts = {
  sequence: count,
  createdAt: instant,
  countedAt: instant,
  day: z.string().regex(/^\d{4}-\d\d-\d\d$/),
  status: z.enum(["approved", "pending", "denied", "failed", "reversed", "expired"]),
  phase: z.enum(["held", "sending", "following", "done"]),
  executor: z.enum(["server", "approval"]),
  denial: denial.nullable(),
  deniedAt: instant.nullable(),
  approval: approval.nullable(),
  onChainTxHash: text.nullable(),
  chainCaip2: text.nullable(),
  policyVersion: version,
  revision: count,
} as const satisfies ShapeOf<Omit<Payment, "request">>;

export const payment = exactly<Payment>({ request, ...paymentFacts });

export const unfinished = exactly<UnfinishedPayment>({
  profile,
  payment: exactly<StoredPayment>({ request: storedRequest, ...paymentFacts }),
  executor: z.enum(["server", "approval"]).exactOptional(),
});

export const mirrored = exactly<MirroredLimits>({ agentId: id, policy, policyVersion: version });

export const toldActor = exactly<ToldActor>({
  agentId: id,
  status: z.enum(["active", "paused"]),
  revision: count,
  revokedKeyId: id.nullable(),
});

export const recordedCap = exactly<RecordedCap>({
  teamId: id.nullable(),
  cap: exactly<Cap>({ capCents: cents.nullable(), version }),
});

export const followed = exactly<FollowedAgent>({
  revision: count,
  name: text,
  keyId: id.nullable(),
  isArchived: z.boolean(),
});

const isLifecycle = (type: EventType): type is LifecycleEventType => type in LIFECYCLE_EVENTS;
const LIFECYCLE_TYPES = EVENT_TYPES.filter(isLifecycle);

const event = exactly<LifecycleEvent>({
  id,
  type: z.literal(LIFECYCLE_TYPES),
  at: instant,
  revision: count,
});

/** Nothing of whose the agent is, of where it lies, of its wallet or of what authenticates it. */
const agentSummary = exactly<AgentSummary>({
  agentId: id,
  name: text,
  archivedAt: instant.nullable(),
  walletDetached: z.boolean(),
  keyId: id.nullable(),
  authenticatedAt: instant.nullable(),
  revision: count,
  updatedAt: instant,
  events: items(event),
});

const accountSummary = exactly<AccountSummary>({
  agentId: id,
  status: z.enum(["active", "paused", "closed"]),
  policy,
  policyVersion: version,
  spentCents: totalCents,
  reservedCents: totalCents,
  revokedKeyId: id.nullable(),
  revision: count,
  updatedAt: instant,
  events: items(event),
});

interface AgentWrite {
  readonly summary: AgentSummary;
}

interface AccountWrites {
  readonly accounts: readonly AccountSummary[];
}

/** The first write of an event wins, so no event may be published under the id of another. */
const areOwn = (
  { agentId, events }: Pick<AgentSummary, "agentId" | "events">,
  of: "agent" | "account",
): boolean => events.every((each) => each.id === lifecycleEventId(agentId, of, each.revision));
const NOT_OWN = "an event is not this agent's";

export const agentWrite = exactly<AgentWrite>({ summary: agentSummary }).refine(
  ({ summary }) => areOwn(summary, "agent"),
  NOT_OWN,
);

export const accountWrites = exactly<AccountWrites>({ accounts: items(accountSummary) }).refine(
  ({ accounts }) => accounts.every((each) => areOwn(each, "account")),
  NOT_OWN,
);
