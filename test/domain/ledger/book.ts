import { must, mustEqual } from "../../../scripts/simulation/audit/violation.ts";
import type { Payment, PaymentRequest } from "../../../src/domain/agent/payment.ts";
import type { BudgetPolicy } from "../../../src/domain/agent/policy.ts";
import type { PaymentRules } from "../../../src/domain/rules/checks.ts";
import type { Ledger, Standing } from "../../../src/domain/ledger/state.ts";

const HOUR_MS = 3_600_000;

/** One payment as the book has it: what it has of the money follows from its status. */
export interface BookedPayment {
  readonly agentId: string;
  readonly request: PaymentRequest;
  /** When and on which day it counts: never before what was counted earlier. */
  readonly countedAt: number;
  readonly passed: boolean;
  day: string;
  payment: Payment;
}

export interface BookedAgent {
  readonly agentId: string;
  readonly teamId: string;
  policy: BudgetPolicy;
  policyVersion: number;
  standing: Standing;
  keyId: string | null;
}

const isAbove = (limit: number | null, sum: number): boolean => limit !== null && sum > limit;

const dateOf = (at: number): string => new Date(at).toISOString().slice(0, 10);

/**
 * What a ledger must have by now, kept by somebody who knows the contract and not the ledger: every payment is listed, and every total
 * is a sum over the list.
 */
export class LedgerBook {
  readonly agents = new Map<string, BookedAgent>();
  readonly payments: BookedPayment[] = [];
  /** The newest day on which a payment of the agent was decided, or changed. */
  readonly #days = new Map<string, string>();
  readonly caps = new Map<string, { capCents: number | null; version: number }>();
  readonly rules = new Map<string, number>();

  capOf(id: string): { capCents: number | null; version: number } {
    return this.caps.get(id) ?? { capCents: null, version: 1 };
  }

  /** Of the payments under an agent, a team or (null) the project. */
  #sum(status: "pending" | "approved", isUnder: (payment: BookedPayment) => boolean): number {
    return this.payments
      .filter((each) => each.payment.status === status && isUnder(each))
      .reduce((sum, { request }) => sum + request.amountCents, 0);
  }

  totals(isUnder: (payment: BookedPayment) => boolean): { spentCents: number; reservedCents: number } {
    return { spentCents: this.#sum("approved", isUnder), reservedCents: this.#sum("pending", isUnder) };
  }

  teamOf({ agentId }: BookedPayment): string {
    return this.agents.get(agentId)?.teamId ?? "";
  }

  /** The newest payment of the agent that passed policy counts no earlier than this. */
  #newestCounted(agentId: string): number {
    const counted = this.payments.filter((each) => each.agentId === agentId && each.passed);
    return Math.max(0, ...counted.map(({ countedAt }) => countedAt));
  }

  countedAt(agentId: string, now: number): number {
    return Math.max(now, this.#newestCounted(agentId));
  }

  /** The day of now, or the newest day that anything of the agent was counted on. */
  dayOf(agentId: string, now: number): string {
    const known = this.#days.get(agentId) ?? "";
    return known > dateOf(now) ? known : dateOf(now);
  }

  /** Something of the agent's money was counted now. */
  counted(agentId: string, now: number): void {
    this.#days.set(agentId, this.dayOf(agentId, now));
  }

  /** Why a payment of so much must be denied now; null: it must not. `own`: a payment on hold that is checked again. */
  denialOf(agent: BookedAgent, amountCents: number, now: number, own?: BookedPayment): string | null {
    const { agentId, policy, standing, teamId } = agent;
    if (standing === "paused") return "AGENT_PAUSED";
    if (standing === "closed") return "AGENT_ARCHIVED";
    const others = this.payments.filter((each) => each !== own);
    const book = own === undefined ? this.payments : others;
    const used = (isUnder: (payment: BookedPayment) => boolean): number =>
      book
        .filter((each) => ["pending", "approved"].includes(each.payment.status) && isUnder(each))
        .reduce((sum, { request }) => sum + request.amountCents, 0);
    const ofAgent = (each: BookedPayment): boolean => each.agentId === agentId;
    const today = this.dayOf(agentId, now);
    const passed = book.filter((each) => ofAgent(each) && each.passed);
    if (isAbove(policy.perTransactionLimitCents, amountCents)) return "PER_TRANSACTION_LIMIT_EXCEEDED";
    if (used(ofAgent) + amountCents > policy.budgetCents) return "BUDGET_EXCEEDED";
    const spentToday = used((each) => ofAgent(each) && each.day === today);
    if (isAbove(policy.dailySpendLimitCents, spentToday + amountCents)) return "DAILY_SPEND_LIMIT_EXCEEDED";
    const hourly = passed.filter(({ countedAt }) => countedAt > now - HOUR_MS).length;
    if (isAbove(policy.hourlyVelocityLimit, hourly + 1)) return "HOURLY_VELOCITY_EXCEEDED";
    const daily = passed.filter(({ countedAt }) => dateOf(countedAt) === today).length;
    if (isAbove(policy.dailyVelocityLimit, daily + 1)) return "DAILY_VELOCITY_EXCEEDED";
    const inTeam = used((each) => this.teamOf(each) === teamId) + amountCents;
    if (isAbove(this.capOf(teamId).capCents, inTeam)) return "TEAM_CAP_EXCEEDED";
    if (isAbove(this.capOf("project").capCents, used(() => true) + amountCents))
      return "PROJECT_CAP_EXCEEDED";
    return null;
  }

  /** Which rules flag a payment that is not denied. */
  flagsOf(
    { agentId, policy }: BookedAgent,
    request: PaymentRequest,
    rules: PaymentRules | undefined,
    now: number,
  ): string[] {
    const { amountCents, likenessHash } = request;
    const { autoApprovalThresholdCents: threshold } = policy;
    const flags = new Set<string>();
    if (threshold !== null && (threshold === 0 || amountCents > threshold)) flags.add("agent_threshold");
    const ofAgent = this.payments.filter((each) => each.agentId === agentId);
    for (const check of rules?.checks ?? []) {
      if (check.type === "velocity") {
        const since = now - check.windowSeconds * 1_000;
        const count = ofAgent.filter(({ countedAt, passed }) => passed && countedAt > since).length;
        if (count >= check.count) flags.add("velocity");
      }
      if (check.type === "duplicate") {
        const since = now - check.windowSeconds * 1_000;
        const isLike = ({ payment, request: other }: BookedPayment): boolean =>
          payment.status !== "denied" && other.likenessHash === likenessHash && payment.createdAt > since;
        if (ofAgent.some(isLike)) flags.add("duplicate");
      }
    }
    return [...flags];
  }

  /** The first payment under this key; a key that was refused without a decision was not used. */
  under(agentId: string, keyHash: string): BookedPayment | undefined {
    return this.payments.find((each) => each.agentId === agentId && each.request.keyHash === keyHash);
  }

  /** Holds the ledger against the list. */
  audit(ledger: Ledger): void {
    mustEqual(
      ledger.project.totals,
      this.totals(() => true),
      "the project's totals",
    );
    for (const [teamId, { totals }] of ledger.teams) {
      mustEqual(
        totals,
        this.totals((each) => this.teamOf(each) === teamId),
        `the totals of ${teamId}`,
      );
    }
    for (const [agentId, { policy, policyVersion, standing, keyId }] of this.agents) {
      const account = ledger.accounts.get(agentId);
      if (account === undefined) {
        must(standing === "closed", `the account of ${agentId} is gone`);
        this.#auditGone(agentId);
        continue;
      }
      const { spentCents, reservedCents } = account.usage;
      const own = this.totals((each) => each.agentId === agentId);
      mustEqual({ spentCents, reservedCents }, own, `the totals of ${agentId}`);
      const known = { standing: account.standing, keyId: account.keyId };
      mustEqual(known, { standing, keyId }, `standing and key of ${agentId}`);
      mustEqual({ ...account.policy }, { ...policy }, `the policy of ${agentId}`);
      mustEqual(account.policyVersion, policyVersion, `the version of the policy of ${agentId}`);
      for (const { payment } of account.open.values()) this.#auditOpen(payment);
    }
    for (const id of ["project", ...ledger.teams.keys()]) {
      const cap = id === "project" ? ledger.project.cap : ledger.teams.get(id)?.cap;
      mustEqual(cap ?? null, this.capOf(id), `the cap of ${id}`);
    }
  }

  #auditOpen(payment: Payment): void {
    const { transactionId } = payment.request;
    const booked = this.payments.find(({ request }) => request.transactionId === transactionId);
    mustEqual(payment, booked?.payment ?? null, `the open payment ${transactionId}`);
  }

  /** What has no account any more has no money on hold. */
  #auditGone(agentId: string): void {
    mustEqual(
      this.#sum("pending", (each) => each.agentId === agentId),
      0,
      `on hold for ${agentId}, which is gone`,
    );
  }
}
