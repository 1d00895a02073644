import type { PaymentRules, RuleCheck } from "./checks.ts";
import type { RuleType } from "./rules.ts";
import { timeWindowFlags } from "./time-window.ts";

/** What rules ask of the agent's other payments. */
interface PaymentHistory {
  /** Payments that passed policy in the window that ends now, of this many milliseconds; one as old as it has left it. */
  readonly countWithin: (windowMs: number) => number;
  /** When the newest like payment was made that is not denied; null: there is none. */
  readonly newestSimilarAt: () => number | null;
}

/** The types of the rules that flag a payment made now, each once, the first that flags first. */
export function flaggedTypes(rules: PaymentRules, history: PaymentHistory, now: number): RuleType[] {
  const flagged = new Set<RuleType>();
  for (const check of rules.checks) {
    if (!flagged.has(check.type) && flags(check, rules, history, now)) flagged.add(check.type);
  }
  return [...flagged];
}

function flags(check: RuleCheck, rules: PaymentRules, history: PaymentHistory, now: number): boolean {
  switch (check.type) {
    case "velocity":
      return history.countWithin(check.windowSeconds * 1_000) >= check.count;
    case "duplicate": {
      const similarAt = history.newestSimilarAt();
      return similarAt !== null && similarAt > now - check.windowSeconds * 1_000;
    }
    case "time_window":
      return timeWindowFlags(check, rules.zones?.[check.zone], now);
    default:
      // The server has seen that it flags.
      return true;
  }
}
