import type { RailOutcome } from "../../domain/ledger/payment.ts";
import type { BudgetPolicy, BudgetPolicyPatch } from "../../domain/ledger/policy.ts";
import { type CalendarSettings, PERIODS, type Zone } from "../../domain/ledger/calendar.ts";
import { type Increase, INCREASES_MAX, WINDOWED_LIMITS } from "../../domain/ledger/increases.ts";
import { SPEND_LIMITS_MAX, type SpendLimit } from "../../domain/ledger/windows.ts";
import type { RaiseBasis } from "../../domain/ledger/raises.ts";
import type { DroppedAccount, KnownToActor, LedgerCommand } from "../../domain/ledger/commands.ts";
import {
  type Guard,
  isArrayOf,
  isAtMost,
  isCount,
  isFlag,
  isId,
  isInteger,
  isOneOf,
  isPairOf,
  isRecord,
  isText,
  isTime,
  isVariant,
  optional,
  orNull,
  type Shape,
  type Variants,
} from "./guards.ts";
import {
  areVersions,
  isCents,
  isClosedPayment,
  isFeedback,
  isMc,
  isName,
  isProof,
  isRailOutcome,
  isReports,
  isRequest,
  isResolver,
  isShort,
} from "./payment.ts";
import { isForbidden, isRules } from "./payment-rules.ts";

/** Guards for commands to a project's ledger that arrive through Temporal. */

/** Maximum of the setting: a year. */
const APPROVAL_WINDOW_SECONDS_MAX = 31_536_000;
/** Maximum children in a command; a project has at most 10,000 live agents. */
const CHILDREN_MAX = 20_000;

const isLimit = orNull(isCents);
const isCountLimit = orNull(isCount);

const areLimits = isArrayOf(
  isRecord<SpendLimit>({ period: isOneOf(PERIODS), limitCents: isCents }),
  SPEND_LIMITS_MAX,
);
const areSpendLimits: Guard<readonly SpendLimit[]> = (value): value is readonly SpendLimit[] =>
  areLimits(value) && new Set(value.map(({ period }) => period)).size === value.length;

const areIncreases = isArrayOf(
  isRecord<Increase>({ id: isId, limit: isOneOf(WINDOWED_LIMITS), cents: isCents, endsAt: isTime }),
  INCREASES_MAX,
);

const policy = isRecord<BudgetPolicy>({
  budgetCents: isCents,
  autoApprovalThresholdCents: isLimit,
  perTransactionLimitCents: isLimit,
  dailySpendLimitCents: isLimit,
  hourlyVelocityLimit: isCountLimit,
  dailyVelocityLimit: isCountLimit,
  spendLimits: optional(areSpendLimits),
  increases: optional(areIncreases),
});

const patch = isRecord<BudgetPolicyPatch>({
  budgetCents: optional(isCents),
  autoApprovalThresholdCents: optional(isLimit),
  perTransactionLimitCents: optional(isLimit),
  dailySpendLimitCents: optional(isLimit),
  hourlyVelocityLimit: optional(isCountLimit),
  dailyVelocityLimit: optional(isCountLimit),
  spendLimits: optional(areSpendLimits),
});

/** Maximum segments; no zone changes its offset as often within the covered range. */
const SEGMENTS_MAX = 40;
const OFFSET_MINUTES_MAX = 1_440;
const isBetween =
  (min: number, max: number): Guard<number> =>
  (value): value is number =>
    isInteger(value) && value >= min && value <= max;

const zone: Shape<Zone> = {
  timezone: isShort,
  tz: isShort,
  segments: isArrayOf(isPairOf(isTime, isBetween(-OFFSET_MINUTES_MAX, OFFSET_MINUTES_MAX)), SEGMENTS_MAX),
  until: isTime,
};
const settings: Shape<CalendarSettings> = {
  resetMinutes: isBetween(0, 1_439),
  weekStart: isBetween(0, 6),
  monthDay: isBetween(1, 28),
  yearMonth: isBetween(1, 12),
};

const isOutcome = isRecord<{ readonly result: RailOutcome; readonly at: number }>({
  result: isRailOutcome,
  at: isTime,
});

const isTeamCap = isRecord<{ readonly teamId: string; readonly capCents: number | null }>({
  teamId: isId,
  capCents: isLimit,
});
const isAgentBudget = isRecord<{ readonly agentId: string; readonly budgetCents: number }>({
  agentId: isId,
  budgetCents: isCents,
});
const isRecorded = isRecord<{ readonly agentId: string; readonly revision: number }>({
  agentId: isId,
  revision: isCount,
});
const isKnownToActor = isRecord<KnownToActor>({
  agentId: isId,
  status: isOneOf(["active", "paused"]),
  revokedKeyId: orNull(isId),
});
const isRecordedCap = isRecord<{ readonly teamId: string | null; readonly version: number }>({
  teamId: orNull(isId),
  version: isCount,
});

const isDropped = isRecord<DroppedAccount>({
  asOfRevision: isCount,
  teamId: isId,
  name: isName,
  policy,
  policyVersion: isCount,
  spentMc: isCount,
  day: isRecord<DroppedAccount["day"]>({ date: isShort, amountMc: isCount, count: isCount }),
  windows: isRecord<DroppedAccount["windows"]>({ at: isTime, mc: isArrayOf(isCount, PERIODS.length) }),
  closed: isCount,
  revision: isCount,
});

const isRaiseBasis = isRecord<RaiseBasis>({
  grants: isCount,
  policyVersion: isCount,
  teamVersion: isCount,
  projectVersion: isCount,
});

const requestId = optional(isId);
const ofAgent = { agentId: isId, requestId } as const;
const ofPayment = { ...ofAgent, transactionId: isId } as const;

const commands: Variants<LedgerCommand, "kind"> = {
  open_account: { ...ofAgent, teamId: isId, name: isName, policy, keyId: orNull(isId) },
  pay: {
    ...ofAgent,
    keyId: isId,
    cachedAgentRevision: optional(isCount),
    request: isRequest,
    approvalWindowSeconds: isAtMost(APPROVAL_WINDOW_SECONDS_MAX),
    recordsCheckedThrough: isCount,
    rules: optional(isRules),
    forbidden: optional(isForbidden),
  },
  confirm: { ...ofPayment, revision: isCount, outcome: orNull(isOutcome) },
  book: {
    ...ofPayment,
    books: isReports,
    closed: optional(isClosedPayment),
    recordsCheckedThrough: isCount,
    dropped: optional(isDropped),
  },
  authorize: {
    ...ofPayment,
    authorization: isText(100),
    position: orNull(isCount),
    amountMc: isMc,
    merchant: isShort,
    forbidden: optional(isForbidden),
    rulesVersions: optional(areVersions),
    answerBy: isTime,
  },
  confirm_limits: { ...ofAgent, policyVersion: isCount },
  approve: {
    ...ofPayment,
    by: isResolver,
    proof: isProof,
    forbidden: optional(isForbidden),
    rulesVersions: optional(areVersions),
  },
  deny: { ...ofPayment, by: isResolver, feedback: isFeedback, proof: isProof },
  expire: ofPayment,
  cancel: ofPayment,
  request_permission: ofPayment,
  read_payment: ofPayment,
  grant_raise: {
    ...ofAgent,
    raiseId: isId,
    amountMc: isMc,
    endsAt: optional(orNull(isTime)),
    basis: isRaiseBasis,
  },
  confirm_raise: { ...ofAgent, raiseId: isId },
  change_policy: { ...ofAgent, patch, version: isInteger },
  pause: ofAgent,
  resume: { ...ofAgent, pausedAt: optional(orNull(isTime)) },
  follow_agent: { ...ofAgent, revision: isCount, name: isName, keyId: orNull(isId), isArchived: isFlag },
  follow_restrictions: { ...ofAgent, version: isCount },
  replace_project: {
    requestId,
    version: isInteger,
    capCents: isLimit,
    spendLimits: optional(areSpendLimits),
    teams: isArrayOf(isTeamCap, CHILDREN_MAX),
  },
  replace_team: {
    requestId,
    teamId: isId,
    version: isInteger,
    capCents: isLimit,
    spendLimits: optional(areSpendLimits),
    agents: isArrayOf(isAgentBudget, CHILDREN_MAX),
  },
  stop_accounts: { requestId, teamId: orNull(isId), revokeKeys: isFlag },
  confirm_actors: { requestId, actors: isArrayOf(isKnownToActor, CHILDREN_MAX) },
  replace_calendar: { requestId, version: isInteger, ...settings, ...zone },
  follow_zone: { requestId, ...zone },
  follow_rules: { requestId, teamId: orNull(isId), version: isCount },
  confirm_records: { requestId, records: isArrayOf(isRecorded, CHILDREN_MAX) },
  confirm_caps: { requestId, caps: isArrayOf(isRecordedCap, CHILDREN_MAX) },
};

export const LEDGER_COMMAND_KINDS: ReadonlySet<string> = new Set(Object.keys(commands));

export const isLedgerCommand = isVariant<LedgerCommand, "kind">("kind", commands);
