import type { RailBooks } from "../../domain/ledger/books.ts";
import { PERIODS } from "../../domain/ledger/calendar.ts";
import type { CommandOf, DroppedAccount, KnownToActor, LedgerCommand } from "../../domain/ledger/commands.ts";
import { type Increase, WINDOWED_LIMITS } from "../../domain/ledger/increases.ts";
import {
  type OnChain,
  type PaymentCard,
  type PaymentRequest,
  PROTOCOLS,
  type RailOutcome,
  RAILS,
  type Resolver,
  type RulesVersions,
  type StoredPayment,
} from "../../domain/ledger/payment.ts";
import type { BudgetPolicy, BudgetPolicyPatch } from "../../domain/ledger/policy.ts";
import { RAIL_FAILURE_CODES } from "../../domain/ledger/rail-failures.ts";
import type { RaiseBasis } from "../../domain/ledger/raises.ts";
import type { SpendLimit } from "../../domain/ledger/windows.ts";
import type { PaymentRules } from "../../domain/rules/checks.ts";
import { type Forbidden, RESTRICTED_LEVELS, RESTRICTION_CODES } from "../../domain/rules/restrictions.ts";
import {
  type LedgerCheck,
  type RuleCheck,
  SERVER_RULE_TYPES,
  type ServerRuleType,
} from "../../domain/rules/rules.ts";
import type { ZoneOffsets } from "../../domain/rules/time-window.ts";
import {
  either,
  type Guard,
  isArrayOf,
  isCount,
  isFields,
  isFlag,
  isNumber,
  isOneOf,
  isPairOf,
  isRecord,
  isText,
  isVariant,
  optional,
  orNull,
} from "./guards.ts";

const isLedgerCheck = isVariant<LedgerCheck, "type">("type", {
  velocity: { count: isCount, windowSeconds: isCount },
  duplicate: { windowSeconds: isCount },
  time_window: {
    zone: isCount,
    days: isArrayOf(isCount),
    fromMinutes: isCount,
    toMinutes: isCount,
    outside: isFlag,
  },
});

const areChecks = isArrayOf(
  either<RuleCheck>(
    isRecord<{ readonly type: ServerRuleType }>({ type: isOneOf(SERVER_RULE_TYPES) }),
    isLedgerCheck,
  ),
);

/** Offset in minutes, historically also with fractions. An absurd one would keep the calendar computing for ever. */
const isOffset: Guard<number> = (value): value is number => isNumber(value) && Math.abs(value) <= 1_440;

const areSegments = isArrayOf(isPairOf(isNumber, isOffset));

const isForbidden = isRecord<Forbidden>({
  code: isOneOf(RESTRICTION_CODES),
  level: isOneOf(RESTRICTED_LEVELS),
});

const isRules = isRecord<PaymentRules>({
  checks: areChecks,
  shadow: optional(areChecks),
  zones: optional(isArrayOf(isRecord<ZoneOffsets>({ segments: areSegments, untilMs: isNumber }))),
  similarAt: optional(isCount),
});

const isVersion = orNull(isCount);

const areVersions = isRecord<RulesVersions>({
  project: isVersion,
  team: isVersion,
  agent: isVersion,
});

const isRequest = isRecord<PaymentRequest>({
  transactionId: isText,
  approvalId: isText,
  keyHash: isText,
  payloadHash: isText,
  rail: isOneOf(RAILS),
  amountMc: isCount,
  currency: isOneOf(["USD"]),
  merchantCategory: orNull(isText),
  protocol: optional(isOneOf(PROTOCOLS)),
  fingerprint: isText,
  proof: isText,
  rulesVersions: optional(areVersions),
  recipient: isText,
  purpose: isText,
  resource: optional(isText),
});

const areReports = isArrayOf(
  isRecord<RailBooks>({
    authorization: isText,
    requests: isCount,
    authorizedMc: isCount,
    capturedMc: isCount,
    creditedMc: isCount,
    recalledMc: isCount,
    disputedMc: isCount,
    isOpen: isFlag,
  }),
);

const onChain = optional(isRecord<OnChain>({ txHash: isText, chainCaip2: isText }));
const receipt = optional(isText);

const isRailOutcome = isVariant<RailOutcome, "status">("status", {
  settled: { onChain, receipt },
  pending: { onChain, receipt },
  failed: { onChain, code: isOneOf(RAIL_FAILURE_CODES), reason: isText },
  armed: { card: isRecord<PaymentCard>({ last4: isText, readyUntil: isCount }) },
  charged: { books: areReports },
  withheld: {},
});

/**
 * A payment from its record, which the ledger takes back when the network reports on it again. Only the outline: its
 * reader has verified the record's proofs of order and books.
 */
const isClosedPayment: Guard<StoredPayment> = (value): value is StoredPayment =>
  isFields(value) && value["phase"] === "done";

const isLimit = orNull(isCount);

const areSpendLimits = isArrayOf(isRecord<SpendLimit>({ period: isOneOf(PERIODS), limitCents: isCount }));

const areIncreases = isArrayOf(
  isRecord<Increase>({ id: isText, limit: isOneOf(WINDOWED_LIMITS), cents: isCount, endsAt: isCount }),
);

const policy = isRecord<BudgetPolicy>({
  budgetCents: isCount,
  autoApprovalThresholdCents: isLimit,
  perTransactionLimitCents: isLimit,
  dailySpendLimitCents: isLimit,
  hourlyVelocityLimit: isLimit,
  dailyVelocityLimit: isLimit,
  spendLimits: optional(areSpendLimits),
  increases: optional(areIncreases),
});

const patch = isRecord<BudgetPolicyPatch>({
  budgetCents: optional(isCount),
  autoApprovalThresholdCents: optional(isLimit),
  perTransactionLimitCents: optional(isLimit),
  dailySpendLimitCents: optional(isLimit),
  hourlyVelocityLimit: optional(isLimit),
  dailyVelocityLimit: optional(isLimit),
  spendLimits: optional(areSpendLimits),
});

const zone = { timezone: isText, tz: isText, segments: areSegments, until: isCount } as const;

const isOutcome = isRecord<NonNullable<CommandOf<"confirm">["outcome"]>>({
  result: isRailOutcome,
  at: isCount,
});

const areTeams = isArrayOf(
  isRecord<CommandOf<"replace_project">["teams"][number]>({ teamId: isText, capCents: isLimit }),
);
const areAgents = isArrayOf(
  isRecord<CommandOf<"replace_team">["agents"][number]>({ agentId: isText, budgetCents: isCount }),
);
const areRecords = isArrayOf(
  isRecord<CommandOf<"confirm_records">["records"][number]>({ agentId: isText, revision: isCount }),
);
const areCaps = isArrayOf(
  isRecord<CommandOf<"confirm_caps">["caps"][number]>({ teamId: orNull(isText), version: isCount }),
);
const areActors = isArrayOf(
  isRecord<KnownToActor>({
    agentId: isText,
    status: isOneOf(["active", "paused"]),
    revokedKeyId: orNull(isText),
  }),
);

const isResolver = isRecord<Resolver>({ userId: isText, name: isText });

const isDropped = isRecord<DroppedAccount>({
  asOfRevision: isCount,
  teamId: isText,
  name: isText,
  policy,
  policyVersion: isCount,
  spentMc: isCount,
  day: isRecord<DroppedAccount["day"]>({ date: isText, amountMc: isCount, count: isCount }),
  windows: isRecord<DroppedAccount["windows"]>({ at: isCount, mc: isArrayOf(isCount) }),
  closed: isCount,
  revision: isCount,
});

const isRaiseBasis = isRecord<RaiseBasis>({
  grants: isCount,
  policyVersion: isCount,
  teamVersion: isCount,
  projectVersion: isCount,
});

const requestId = optional(isText);
const ofAgent = { agentId: isText, requestId } as const;
const ofPayment = { ...ofAgent, transactionId: isText } as const;

/** Guard of a command to a project's ledger. */
export const isLedgerCommand = isVariant<LedgerCommand, "kind">("kind", {
  open_account: { ...ofAgent, teamId: isText, name: isText, policy, keyId: orNull(isText) },
  pay: {
    ...ofAgent,
    keyId: isText,
    cachedAgentRevision: optional(isCount),
    request: isRequest,
    approvalWindowSeconds: isCount,
    recordsCheckedThrough: isCount,
    rules: optional(isRules),
    forbidden: optional(isForbidden),
  },
  confirm: { ...ofPayment, revision: isCount, outcome: orNull(isOutcome) },
  book: {
    ...ofPayment,
    books: areReports,
    closed: optional(isClosedPayment),
    recordsCheckedThrough: isCount,
    dropped: optional(isDropped),
  },
  authorize: {
    ...ofPayment,
    authorization: isText,
    position: orNull(isCount),
    amountMc: isCount,
    merchant: isText,
    forbidden: optional(isForbidden),
    rulesVersions: optional(areVersions),
    answerBy: isCount,
  },
  confirm_limits: { ...ofAgent, policyVersion: isCount },
  approve: {
    ...ofPayment,
    by: isResolver,
    proof: isText,
    forbidden: optional(isForbidden),
    rulesVersions: optional(areVersions),
  },
  deny: { ...ofPayment, by: isResolver, feedback: isText, proof: isText },
  expire: ofPayment,
  cancel: ofPayment,
  request_permission: ofPayment,
  read_payment: ofPayment,
  grant_raise: {
    ...ofAgent,
    raiseId: isText,
    amountMc: isCount,
    endsAt: optional(orNull(isCount)),
    basis: isRaiseBasis,
  },
  confirm_raise: { ...ofAgent, raiseId: isText },
  change_policy: { ...ofAgent, patch, version: isNumber },
  pause: ofAgent,
  resume: { ...ofAgent, pausedAt: optional(orNull(isCount)) },
  follow_agent: { ...ofAgent, revision: isCount, name: isText, keyId: orNull(isText), isArchived: isFlag },
  follow_restrictions: { ...ofAgent, version: isCount },
  replace_project: {
    requestId,
    version: isNumber,
    capCents: isLimit,
    spendLimits: optional(areSpendLimits),
    teams: areTeams,
  },
  replace_team: {
    requestId,
    teamId: isText,
    version: isNumber,
    capCents: isLimit,
    spendLimits: optional(areSpendLimits),
    agents: areAgents,
  },
  stop_accounts: { requestId, teamId: orNull(isText), revokeKeys: isFlag },
  confirm_actors: { requestId, actors: areActors },
  replace_calendar: {
    requestId,
    version: isNumber,
    resetMinutes: isCount,
    weekStart: isCount,
    monthDay: isCount,
    yearMonth: isCount,
    ...zone,
  },
  follow_zone: { requestId, ...zone },
  follow_rules: { requestId, teamId: orNull(isText), version: isCount },
  confirm_records: { requestId, records: areRecords },
  confirm_caps: { requestId, caps: areCaps },
});
