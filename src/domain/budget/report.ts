import type { LimitDenial } from "../agent/policy.ts";

/** What an agent's actor and its project's budget say to each other about caps. */

/**
 * What is still to be asked of a payment: `reserve`, whether its amount fits the caps; `recheck`, whether they still hold
 * with what it has reserved already, since a person has approved it.
 */
export type AskKind = "reserve" | "recheck";

export interface Ask {
  readonly transactionId: string;
  readonly kind: AskKind;
  readonly amountCents: number;
}

/**
 * An agent's money at one revision of it. Totals and no differences, so that telling it twice, or late, does no harm: the
 * newest one stands.
 */
export interface BudgetReport {
  readonly agentId: string;
  readonly teamId: string;
  readonly revision: number;
  readonly spentCents: number;
  /** Without the amounts that `asks` want to reserve. */
  readonly reservedCents: number;
  /** What the agent does not know the answer to, in the order of its payments. */
  readonly asks: readonly Ask[];
}

/** What the budget said; the same for whoever asks, until the agent knows. */
export type CapAnswer =
  { readonly granted: true } | { readonly granted: false; readonly denial: LimitDenial; readonly at: number };

export type NamedAnswer = CapAnswer & { readonly transactionId: string; readonly kind: AskKind };
