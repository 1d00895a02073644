import type { BREACH_LEVELS, BREACH_LIMITS } from "./books.ts";
import { mcOf, usedCents } from "../money.ts";

/** Warnings before a limit is used up. */

/** Percentages of a limit that are told when they are reached. */
export const THRESHOLDS = [80, 100] as const;
export type Threshold = (typeof THRESHOLDS)[number];

/** A limit that a payment has brought to a threshold. */
export interface Warning {
  /** Epoch milliseconds. */
  readonly at: number;
  readonly level: (typeof BREACH_LEVELS)[number];
  readonly limit: Exclude<(typeof BREACH_LIMITS)[number], "per_transaction">;
  readonly percent: Threshold;
  readonly limitCents: number;
  readonly usedCents: number;
  /** The window of the limit, in epoch milliseconds; null: it has none. */
  readonly startedAt: number | null;
  readonly resetsAt: number | null;
}

/** A limit of what may be used, its use before a change of a payment, and what the change adds to it. */
export interface LimitUse extends Pick<Warning, "level" | "limit" | "limitCents" | "startedAt" | "resetsAt"> {
  readonly usedMc: number;
  /** Below 0: it gives back. */
  readonly addedMc: number;
}

/** Returns the thresholds that a payment's amounts have crossed. */
export const warningsOf = (uses: readonly LimitUse[], at: number): readonly Warning[] =>
  uses.flatMap(({ addedMc, usedMc, ...limit }) =>
    THRESHOLDS.filter((percent) => {
      const thresholdMc = (mcOf(limit.limitCents) * percent) / 100;
      return usedMc < thresholdMc && usedMc + addedMc >= thresholdMc;
    }).map((percent) => ({ ...limit, at, percent, usedCents: usedCents(usedMc + addedMc) })),
  );

/** A payment with warnings beside those that it has; the same object where there are none. */
export const withWarnings = <P extends { readonly warnings?: readonly Warning[] }>(
  payment: P,
  warnings: readonly Warning[],
): P =>
  warnings.length === 0 ? payment : { ...payment, warnings: [...(payment.warnings ?? []), ...warnings] };
