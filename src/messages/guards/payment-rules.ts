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
  isAtMost,
  isCount,
  isFlag,
  isInteger,
  isOneOf,
  isPairOf,
  isRecord,
  isTime,
  isVariant,
  optional,
} from "./guards.ts";

/** Guard of the rule inputs in a payment command. */

/** Maximum checks: 50 rules each of a project and a team. */
const RULE_CHECKS_MAX = 100;
const ZONE_SEGMENTS_MAX = 1_000;
const DAY_MINUTES = 1_440;
const WEEKDAYS = 7;

const isMinutes = isAtMost(DAY_MINUTES);

const isLedgerCheck = isVariant<LedgerCheck, "type">("type", {
  velocity: { count: isCount, windowSeconds: isCount },
  duplicate: { windowSeconds: isCount },
  time_window: {
    zone: isCount,
    days: isArrayOf(isAtMost(WEEKDAYS), WEEKDAYS),
    fromMinutes: isMinutes,
    toMinutes: isMinutes,
    outside: isFlag,
  },
});

const isRuleCheck: Guard<RuleCheck> = either<RuleCheck>(
  isRecord<{ readonly type: ServerRuleType }>({ type: isOneOf(SERVER_RULE_TYPES) }),
  isLedgerCheck,
);

const isZone = isRecord<ZoneOffsets>({
  // A segment may have begun before 1970, so times may be negative.
  segments: isArrayOf(isPairOf(isInteger, isFinite), ZONE_SEGMENTS_MAX),
  untilMs: isInteger,
});

/** Accepts fractions: historically, some zones' offsets were not whole minutes. */
function isFinite(value: unknown): value is number {
  return Number.isFinite(value);
}

export const isForbidden = isRecord<Forbidden>({
  code: isOneOf(RESTRICTION_CODES),
  level: isOneOf(RESTRICTED_LEVELS),
});

export const isRules = isRecord<PaymentRules>({
  checks: isArrayOf(isRuleCheck, RULE_CHECKS_MAX),
  shadow: optional(isArrayOf(isRuleCheck, RULE_CHECKS_MAX)),
  zones: optional(isArrayOf(isZone, RULE_CHECKS_MAX)),
  similarAt: optional(isTime),
});
