import type { BREACH_LEVELS, BREACH_LIMITS } from "./books.ts";
import { mcOf, usedCents } from "../money.ts";

/** Warnings before a limit is used up. */

/** Percentages of a limit at which a warning is sent. */
export const THRESHOLDS = [80, 100] as const;
export type Threshold = (typeof THRESHOLDS)[number];

/** A limit that a payment has brought to a threshold. */
export interface Warning {
  readonly at: number;
  readonly level: (typeof BREACH_LEVELS)[number];
  readonly limit: Exclude<(typeof BREACH_LIMITS)[number], "per_transaction">;
  readonly percent: Threshold;
  readonly limitCents: number;
  readonly usedCents: number;
  /** Window of the limit, in epoch milliseconds; null if it has none. */
  readonly startedAt: number | null;
  readonly resetsAt: number | null;
}

/** A limit on amounts, its use before a payment's change, and the amount that the change adds. */
export interface LimitUse extends Pick<Warning, "level" | "limit" | "limitCents" | "startedAt" | "resetsAt"> {
  readonly usedMc: number;
  /** Negative if the change gives back. */
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

/** Returns a payment with additional warnings; the same object if there are none. */
export const withWarnings = <P extends { readonly warnings?: readonly Warning[] }>(
  payment: P,
  warnings: readonly Warning[],
): P =>
  warnings.length === 0 ? payment : { ...payment, warnings: [...(payment.warnings ?? []), ...warnings] };
