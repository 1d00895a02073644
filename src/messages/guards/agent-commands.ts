import type { AgentCommand, CapsHeard } from "../../domain/agent/commands.ts";
import type { Archiver } from "../../domain/agent/archive.ts";
import type { AssessedPayment } from "../../domain/agent/decide.ts";
import type { RailOutcome } from "../../domain/agent/payment.ts";
import type { BudgetPolicyPatch } from "../../domain/agent/policy.ts";
import type { CapAnswer, NamedAnswer } from "../../domain/budget/report.ts";
import type { PaymentRules, RuleCheck } from "../../domain/rules/checks.ts";
import type { TimeWindowCheck, ZoneOffsets } from "../../domain/rules/time-window.ts";
import type { BudgetQueryInput } from "../agent.ts";
import {
  either,
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
  type Variants,
} from "./guards.ts";
import {
  isCents,
  isFeedback,
  isLimitDenial,
  isName,
  isProof,
  isRailOutcome,
  isRequest,
  isResolver,
  RECIPIENT_CHARACTERS_MAX,
} from "./payment.ts";

/** What an agent's actor is told, as it may come through Temporal. */

/** As in the settings, a year. */
const APPROVAL_WINDOW_SECONDS_MAX = 31_536_000;
/** Of a project and a team, 50 each; the wall clock of each may be another one's. */
const RULE_CHECKS_MAX = 100;
const ZONE_SEGMENTS_MAX = 1_000;
const DAY_MINUTES = 1_440;
const WEEKDAYS = 7;

const isMinutes = isAtMost(DAY_MINUTES);

const isTimeWindow = isRecord<TimeWindowCheck>({
  type: isOneOf(["time_window"]),
  zone: isCount,
  days: isArrayOf(isAtMost(WEEKDAYS), WEEKDAYS),
  fromMinutes: isMinutes,
  toMinutes: isMinutes,
  outside: isFlag,
});

type CheckOf<T extends RuleCheck["type"]> = Extract<RuleCheck, { readonly type: T }>;
type Flagging = Exclude<RuleCheck, { readonly type: "velocity" | "time_window" | "duplicate" }>;

const isRuleCheck: Guard<RuleCheck> = either<RuleCheck>(
  isRecord<Flagging>({
    type: isOneOf(["amount_above", "new_recipient", "recipient", "merchant_category", "rail"]),
  }),
  isRecord<CheckOf<"velocity">>({ type: isOneOf(["velocity"]), count: isCount, windowSeconds: isCount }),
  isRecord<CheckOf<"duplicate">>({ type: isOneOf(["duplicate"]), windowSeconds: isCount }),
  isTimeWindow,
);

const isZone = isRecord<ZoneOffsets>({
  // A segment that began before 1970 is one from then on, or earlier.
  segments: isArrayOf(isPairOf(isInteger, isFinite), ZONE_SEGMENTS_MAX),
  untilMs: isInteger,
});

/** Some zones were off by seconds once. */
function isFinite(value: unknown): value is number {
  return Number.isFinite(value);
}

const isRules = isRecord<PaymentRules>({
  checks: isArrayOf(isRuleCheck, RULE_CHECKS_MAX),
  zones: optional(isArrayOf(isZone, RULE_CHECKS_MAX)),
  likeAt: optional(isTime),
});

/** A budget's answer comes with the payment and the kind of question that it is of. */
type Named<T> = T & Partial<Omit<NamedAnswer, keyof CapAnswer>>;
type Granted = Named<Extract<CapAnswer, { readonly granted: true }>>;
type Refused = Named<Extract<CapAnswer, { readonly granted: false }>>;

const isAskKind = isOneOf(["reserve", "recheck"]);
const named = { transactionId: optional(isId), kind: optional(isAskKind) };

const isCapAnswer = either<CapAnswer>(
  isRecord<Granted>({ ...named, granted: (value): value is true => value === true }),
  isRecord<Refused>({
    ...named,
    granted: (value): value is false => value === false,
    denial: isLimitDenial,
    at: isTime,
  }),
);

const isCapsHeard = isRecord<CapsHeard>({
  kind: isAskKind,
  answer: isCapAnswer,
  reportRevision: isCount,
  exemptEpoch: orNull(isCount),
});

const patch = isRecord<BudgetPolicyPatch>({
  budgetCents: optional(isCents),
  autoApprovalThresholdCents: optional(orNull(isCents)),
  perTransactionLimitCents: optional(orNull(isCents)),
  dailySpendLimitCents: optional(orNull(isCents)),
  hourlyVelocityLimit: optional(orNull(isCount)),
  dailyVelocityLimit: optional(orNull(isCount)),
});

const isArchiver = isVariant<Archiver, "type">("type", {
  user: {},
  organization_key: { lineageId: isId, balance: isOneOf(["zero", "not_zero", "unreadable"]) },
});

const isOutcome = isRecord<{ readonly result: RailOutcome; readonly at: number }>({
  result: isRailOutcome,
  at: isTime,
});

const commands: Variants<AgentCommand, "kind"> = {
  pay: {
    keyId: isId,
    request: isRequest,
    approvalWindowSeconds: isAtMost(APPROVAL_WINDOW_SECONDS_MAX),
    lookedUpThrough: isCount,
    rules: optional(isRules),
  },
  confirm: {
    transactionId: isId,
    revision: isCount,
    outcome: orNull(isOutcome),
    caps: optional(isCapsHeard),
  },
  confirm_report: { revision: isCount },
  heed_budget: {
    epoch: isCount,
    asks: isFlag,
    budgetCents: orNull(isCents),
    budgetEpoch: optional(isCount),
  },
  read_report: {},
  confirm_summary: { revision: isCount },
  confirm_limits: { policyVersion: isCount },
  approve: { transactionId: isId, by: isResolver, proof: isProof },
  deny: { transactionId: isId, by: isResolver, feedback: isFeedback, proof: isProof },
  expire: { transactionId: isId },
  cancel: { transactionId: isId },
  change_policy: { patch, version: isInteger },
  ask_to_send: { transactionId: isId },
  pause: {},
  resume: {},
  read_payment: { transactionId: isId },
  rename: { name: isName },
  authenticate: { keyId: isId },
  mint_key: { keyId: isId, recordedKeyId: orNull(isId) },
  revoke_key: { recordedKeyId: orNull(isId) },
  prove_non_delivery: { lineageId: isId },
  confirm_erased: {},
  archive: { by: isArchiver },
  confirm_detached: {},
};

export const AGENT_COMMAND_KINDS: ReadonlySet<string> = new Set(Object.keys(commands));

export const isAgentCommand = isVariant<AgentCommand, "kind">("kind", commands);

const isAssessed = isRecord<AssessedPayment>({
  rail: isOneOf(["card", "wallet"]),
  recipient: isText(RECIPIENT_CHARACTERS_MAX),
  amountCents: isCents,
  likenessHash: optional(isId),
  rules: optional(isRules),
});

export const isBudgetQueryInput = isRecord<BudgetQueryInput>({
  now: isTime,
  payment: optional(orNull(isAssessed)),
});
