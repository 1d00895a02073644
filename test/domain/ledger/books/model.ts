import {
  BookedPayment,
  type LimitName,
  sum,
  type Used,
} from "../../../../lab/simulation/audit/booked-payment.ts";
import type { BudgetPolicy } from "../../../../src/domain/ledger/policy.ts";

/** A payment with its books, and whose it is. */
export class PaymentModel extends BookedPayment {
  readonly id: string;
  readonly agentId: string;
  readonly teamId: string;

  constructor(
    { agentId, id, teamId }: Pick<PaymentModel, "agentId" | "id" | "teamId">,
    requestedMc: number,
    day: string,
  ) {
    super(requestedMc, day);
    this.id = id;
    this.agentId = agentId;
    this.teamId = teamId;
  }
}

/** All payments of a project, and its limits. */
export class BooksModel {
  readonly payments = new Map<string, PaymentModel>();
  readonly policies = new Map<string, BudgetPolicy>();
  readonly caps: { readonly project: number | null; readonly team: number | null };

  constructor(caps: { readonly project: number | null; readonly team: number | null }) {
    this.caps = caps;
  }

  of(place: { readonly agentId?: string; readonly teamId?: string }): PaymentModel[] {
    const { agentId, teamId } = place;
    return [...this.payments.values()].filter(
      (each) => (agentId ?? each.agentId) === each.agentId && (teamId ?? each.teamId) === each.teamId,
    );
  }

  totals(payments: readonly PaymentModel[]): { readonly spentMc: number; readonly reservedMc: number } {
    return {
      spentMc: sum(payments.map(({ spentMc }) => spentMc)),
      reservedMc: sum(payments.map(({ heldMc }) => heldMc)),
    };
  }

  countedOn(agentId: string, day: string): number {
    return sum(this.of({ agentId }).map((each) => each.countedOn(day)));
  }

  /** What is used of every limit that counts for a payment; `day`: today. */
  used({ agentId, id, teamId }: { agentId: string; id: string | null; teamId: string }, day: string): Used[] {
    const policy = this.policies.get(agentId);
    if (policy === undefined) throw new Error(`no policy of ${agentId}`);
    const own = this.payments.get(id ?? "")?.totalMc ?? 0;
    const limits: readonly (readonly [LimitName, number | null, number])[] = [
      ["agent/per_transaction", policy.perTransactionLimitCents, own],
      ["agent/budget", policy.budgetCents, usedIn(this.of({ agentId }))],
      ["agent/daily_spend", policy.dailySpendLimitCents, this.countedOn(agentId, day)],
      ["team/cap", this.caps.team, usedIn(this.of({ teamId }))],
      ["project/cap", this.caps.project, usedIn([...this.payments.values()])],
    ];
    return limits.map(([limit, cents, usedMc]) => ({ limit, limitMc: mcOrNull(cents), usedMc }));
  }
}

const usedIn = (payments: readonly PaymentModel[]): number => sum(payments.map(({ totalMc }) => totalMc));
const mcOrNull = (cents: number | null): number | null => (cents === null ? null : cents * 1_000);
