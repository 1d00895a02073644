import type { PaymentRules, RuleCheck } from "../../domain/rules/checks.ts";
import type { TimeWindowCheck, ZoneOffsets } from "../../domain/rules/time-window.ts";
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
  optional,
} from "./guards.ts";

/** What the rules of project and team say of a payment, as it may come through Temporal. */

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

export const isRules = isRecord<PaymentRules>({
  checks: isArrayOf(isRuleCheck, RULE_CHECKS_MAX),
  zones: optional(isArrayOf(isZone, RULE_CHECKS_MAX)),
  similarAt: optional(isTime),
});
