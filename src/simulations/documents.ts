import type { Calendar } from "../domain/ledger/calendar.ts";
import { withoutIncreases } from "../domain/ledger/increases.ts";
import { type BudgetPolicy, withSpendLimits } from "../domain/ledger/policy.ts";
import { type Cap, NO_CAP } from "../domain/ledger/state.ts";
import type { SpendLimit } from "../domain/ledger/windows.ts";
import {
  type ReadyRestrictions,
  readyRestrictions,
  type Restrictions,
} from "../domain/rules/restrictions.ts";
import { type ApprovalRule, readyRules, type ReadyRule } from "../domain/rules/rules.ts";
import type { AgentDocument, ContainerDocument, RuledDocument } from "../store/documents.ts";

/** The documents of a simulation: those in force, with one of them replaced. */

/** A cap or spend limits; an omitted field stays. */
interface CapChange {
  readonly capCents?: number | null;
  readonly spendLimits?: readonly SpendLimit[] | undefined;
}

/** The replacement, keyed by the ids of the replaced documents' owners. */
export interface SimulatedChange {
  readonly caps?: ReadonlyMap<string, CapChange>;
  readonly budgets?: ReadonlyMap<string, number>;
  readonly policyOf?: (policy: BudgetPolicy) => BudgetPolicy;
  readonly rules?: readonly ApprovalRule[];
  readonly restrictions?: Restrictions;
  readonly calendar?: Omit<Calendar, "changedAt" | "keptStarts" | "version">;
}

export class Documents {
  readonly #targetId: string;
  readonly #change: SimulatedChange;

  constructor(targetId: string, change: SimulatedChange) {
    this.#targetId = targetId;
    this.#change = change;
  }

  capOf({ _id, cap = NO_CAP }: Pick<ContainerDocument, "_id" | "cap">): Cap {
    const changed = this.#change.caps?.get(_id);
    if (changed === undefined) return withoutIncreases(cap);
    const { capCents = cap.capCents, spendLimits = cap.spendLimits } = changed;
    return { version: cap.version, capCents, ...withSpendLimits(spendLimits) };
  }

  policyOf({ _id, policy }: Pick<AgentDocument, "_id" | "policy">): BudgetPolicy {
    const { budgets, policyOf } = this.#change;
    if (policyOf !== undefined && _id === this.#targetId) return withoutIncreases(policyOf(policy));
    return { ...withoutIncreases(policy), budgetCents: budgets?.get(_id) ?? policy.budgetCents };
  }

  rulesOf({ _id, approvalRules }: Pick<RuledDocument, "_id" | "approvalRules">): readonly ReadyRule[] {
    const replaced = _id === this.#targetId ? this.#change.rules : undefined;
    return readyRules((replaced ?? approvalRules?.rules ?? []).filter(({ enabled }) => enabled));
  }

  longestWindowSeconds({ _id, approvalRules }: Pick<RuledDocument, "_id" | "approvalRules">): number {
    const rules = (_id === this.#targetId ? this.#change.rules : undefined) ?? approvalRules?.rules ?? [];
    return rules.reduce(
      (longest, { enabled, params }) =>
        enabled && "windowSeconds" in params ? Math.max(longest, params.windowSeconds) : longest,
      0,
    );
  }

  restrictionsOf(_id: string, stored: RuledDocument["restrictions"]): ReadyRestrictions | undefined {
    const replaced = _id === this.#targetId ? this.#change.restrictions : undefined;
    const lists = replaced ?? stored?.lists;
    return lists === undefined ? undefined : readyRestrictions(lists);
  }

  calendarOf(current: Calendar): SimulatedCalendar {
    return this.#change.calendar ?? current;
  }
}

type SimulatedCalendar = NonNullable<SimulatedChange["calendar"]>;
