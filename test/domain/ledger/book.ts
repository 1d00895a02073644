import { mcOf } from "../../../src/domain/money.ts";
import { isDeepStrictEqual } from "node:util";
import { must, mustEqual } from "../../../lab/simulation/audit/violation.ts";
import {
  type PaymentRequest,
  type StoredPayment,
  withoutPublished,
} from "../../../src/domain/ledger/payment.ts";
import { afterCharge } from "../../../src/domain/ledger/foreseen-charge.ts";
import type { BudgetPolicy } from "../../../src/domain/ledger/policy.ts";
import type { PaymentRules } from "../../../src/domain/rules/checks.ts";
import {
  type Account,
  type Ledger,
  type OpenPayment,
  type AccountStatus,
  summaryOf,
} from "../../../src/domain/ledger/state.ts";
import { weightOf } from "../../../src/domain/ledger/weight.ts";

const HOUR_MS = 3_600_000;

/** One payment as the book has it: what it has of the money follows from its status. */
export interface PaymentModel {
  readonly agentId: string;
  readonly request: PaymentRequest;
  /** When and on which day it counts: never before what was counted earlier. */
  readonly countedAt: number;
  /** The day that its count is on; its amount may move to a later one. */
  readonly countedOn: string;
  readonly passed: boolean;
  day: string;
  /** It is not to be sent any more. */
  isWithdrawn: boolean;
  payment: StoredPayment;
}

export interface AccountModel {
  readonly agentId: string;
  readonly teamId: string;
  policy: BudgetPolicy;
  policyVersion: number;
  status: AccountStatus;
  keyId: string | null;
  /** What is published of it and not confirmed, with the revision of the account that brought it. */
  events: EventModel[];
}

interface EventModel {
  readonly type: string;
  readonly revision: number;
}

const isAbove = (limit: number | null, count: number): boolean => limit !== null && count > limit;
const isAboveCents = (limit: number | null, sumMc: number): boolean => limit !== null && sumMc > mcOf(limit);

const dateOf = (at: number): string => new Date(at).toISOString().slice(0, 10);

/**
 * What a ledger must have by now, kept by a model that knows the contract and not the ledger: every payment is listed, and every total
 * is a sum over the list.
 */
export class LedgerModel {
  readonly agents = new Map<string, AccountModel>();
  readonly payments: PaymentModel[] = [];
  /** The newest day on which a payment of the agent was decided, or changed. */
  readonly #days = new Map<string, string>();
  readonly caps = new Map<string, { capCents: number | null; version: number }>();
  readonly rules = new Map<string, number>();
  /** The newest permit and the newest fence that the ledger gave for an agent. */
  readonly numbers = new Map<string, { readonly permit?: number; readonly fence?: number }>();
  /** What was shown under each revision of an account, and under which account's revision an event's id was first seen. */
  readonly #shown = new Map<string, string>();
  readonly #eventIds = new Map<string, string>();
  /** The latest time there was. */
  #latest = 0;
  /** An account is replaced whenever it changes. */
  readonly #audited = new WeakSet<Account>();

  capOf(id: string): { capCents: number | null; version: number } {
    return this.caps.get(id) ?? { capCents: null, version: 1 };
  }

  /** A child of this budget has changed. */
  raiseVersion(id: string): void {
    const { capCents, version } = this.capOf(id);
    this.caps.set(id, { capCents, version: version + 1 });
  }

  /** Of the payments under an agent, a team or (null) the project. */
  #sum(status: "pending" | "approved", isUnder: (payment: PaymentModel) => boolean): number {
    return this.payments
      .filter((each) => each.payment.status === status && isUnder(each))
      .reduce((sum, { request }) => sum + request.amountMc, 0);
  }

  totals(isUnder: (payment: PaymentModel) => boolean): { spentMc: number; reservedMc: number } {
    return { spentMc: this.#sum("approved", isUnder), reservedMc: this.#sum("pending", isUnder) };
  }

  teamOf({ agentId }: PaymentModel): string {
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

  /**
   * Why a payment of so much must be denied now; null: it must not. `own`: a payment on hold that is checked again. `seen`: the code
   * that was answered, since an hour may count a little longer, and never shorter.
   */
  denialOf(
    agent: AccountModel,
    amountMc: number,
    now: number,
    { own, seen }: { readonly own?: PaymentModel; readonly seen: string | null },
  ): string | null {
    const exact = this.#denialIn(HOUR_MS, agent, amountMc, now, own);
    return exact === seen ? exact : this.#denialIn(this.#longestHourMs(now), agent, amountMc, now, own);
  }

  #denialIn(
    hourMs: number,
    agent: AccountModel,
    amountMc: number,
    now: number,
    own?: PaymentModel,
  ): string | null {
    const { agentId, policy, status, teamId } = agent;
    if (status === "paused") return "AGENT_PAUSED";
    if (status === "closed") return "AGENT_ARCHIVED";
    const others = this.payments.filter((each) => each !== own);
    const model = own === undefined ? this.payments : others;
    const used = (isUnder: (payment: PaymentModel) => boolean): number =>
      model
        .filter((each) => isUsed(each) && isUnder(each))
        .reduce((sum, { request }) => sum + request.amountMc, 0);
    const ofAgent = (each: PaymentModel): boolean => each.agentId === agentId;
    const today = this.dayOf(agentId, now);
    const passed = model.filter((each) => ofAgent(each) && each.passed);
    if (isAboveCents(policy.perTransactionLimitCents, amountMc)) return "PER_TRANSACTION_LIMIT_EXCEEDED";
    if (used(ofAgent) + amountMc > mcOf(policy.budgetCents)) return "BUDGET_EXCEEDED";
    const spentToday = used((each) => ofAgent(each) && each.day === today);
    if (isAboveCents(policy.dailySpendLimitCents, spentToday + amountMc)) return "DAILY_SPEND_LIMIT_EXCEEDED";
    const hourly = passed.filter(({ countedAt }) => countedAt > now - hourMs).length;
    if (isAbove(policy.hourlyVelocityLimit, hourly + 1)) return "HOURLY_VELOCITY_EXCEEDED";
    const daily = passed.filter(({ countedOn }) => countedOn === today).length;
    if (isAbove(policy.dailyVelocityLimit, daily + 1)) return "DAILY_VELOCITY_EXCEEDED";
    const inTeam = used((each) => this.teamOf(each) === teamId) + amountMc;
    if (isAboveCents(this.capOf(teamId).capCents, inTeam)) return "TEAM_CAP_EXCEEDED";
    if (isAboveCents(this.capOf("project").capCents, used(() => true) + amountMc))
      return "PROJECT_CAP_EXCEEDED";
    return null;
  }

  /** Which rules flag a payment that is not denied, with windows that are `longer` by this part. */
  flagsOf(
    { agentId, policy }: AccountModel,
    request: PaymentRequest,
    rules: PaymentRules | undefined,
    { longer, now }: { readonly longer: number; readonly now: number },
  ): string[] {
    const { amountMc, fingerprint } = request;
    const { autoApprovalThresholdCents: threshold } = policy;
    const flags = new Set<string>();
    if (threshold !== null && (threshold === 0 || amountMc > mcOf(threshold))) flags.add("agent_threshold");
    const ofAgent = this.payments.filter((each) => each.agentId === agentId);
    for (const check of rules?.checks ?? []) {
      if (check.type === "velocity") {
        const since = now - check.windowSeconds * 1_000 * (1 + longer);
        const count = ofAgent.filter(({ countedAt, passed }) => passed && countedAt > since).length;
        if (count >= check.count) flags.add("velocity");
      }
      if (check.type === "duplicate") {
        const since = now - check.windowSeconds * 1_000;
        const isLike = ({ payment, request: other }: PaymentModel): boolean =>
          payment.status !== "denied" && other.fingerprint === fingerprint && payment.createdAt > since;
        if (ofAgent.some(isLike)) flags.add("duplicate");
      }
    }
    return [...flags];
  }

  /** The first payment under this key; a key that was refused without a decision was not used. */
  under(agentId: string, keyHash: string): PaymentModel | undefined {
    return this.payments.find((each) => each.agentId === agentId && each.request.keyHash === keyHash);
  }

  /** How long an hour may count: its last bucket longer, or the bucket of a time that was earlier by a clock that has gone back. */
  #longestHourMs(now: number): number {
    const aheadMs = Math.max(0, this.#latest - now);
    return aheadMs === 0 ? HOUR_MS * (1 + 1 / 32) : HOUR_MS + (aheadMs + HOUR_MS) / 3;
  }

  /** Holds the ledger against the list. */
  audit(ledger: Ledger, now: number): void {
    this.#latest = Math.max(this.#latest, now);
    const { accounts, project, teams } = ledger;
    mustAgree(
      project.totals,
      this.totals(() => true),
      "the totals of the project",
    );
    for (const [teamId, { totals }] of teams) {
      const own = this.totals((each) => this.teamOf(each) === teamId);
      mustAgree(totals, own, `the totals of ${teamId}`);
    }
    for (const [agentId, agent] of this.agents) {
      const account = accounts.get(agentId);
      if (account === undefined) this.#auditGone(agentId);
      else this.#auditAccount(account, agent, now);
    }
    for (const id of ["project", ...teams.keys()]) {
      const level = id === "project" ? project : teams.get(id);
      mustAgree(level?.cap ?? null, this.capOf(id), `the cap of ${id}`);
      mustAgree(level?.rulesVersion, this.rules.get(id) ?? 0, `the version of the rules of ${id}`);
    }
    const all = [...accounts.values()];
    mustAgree(ledger.openPayments, sumOf(all.map(({ open }) => open.size)), "how many payments are open");
    const { openOfAgent, openOfProject } = ledger.bounds;
    const busiest = Math.max(...all.map(({ open }) => open.size));
    must(busiest <= openOfAgent, "more payments of an agent are open than may be");
    must(ledger.openPayments <= openOfProject, "more payments are open than may be");
    mustAgree(
      ledger.weightBytes,
      sumOf(all.map(({ weightBytes }) => weightBytes)),
      "the weight of all accounts",
    );
    for (const account of all) {
      const isEstimated = weightOf(account, now) <= 1.1 * account.weightBytes + 20;
      must(isEstimated, `the weight of ${account.agentId}`);
    }
    mustAgree(
      ledger.keys.count,
      sumOf([...ledger.keys.byAgent.values()].map(({ size }) => size)),
      "the keys",
    );
    must(ledger.keys.count <= ledger.bounds.closedKeys, "more keys are remembered than may be");
  }

  #auditAccount(account: Account, agent: AccountModel, now: number): void {
    const { agentId, usage } = account;
    const { keyId, policy, policyVersion, status } = agent;
    const { spentMc, reservedMc } = usage;
    const own = this.totals((each) => each.agentId === agentId);
    mustAgree({ spentMc, reservedMc }, own, `the totals of ${agentId}`);
    // One that comes back after its end pays nothing.
    if (status !== "closed")
      mustAgree(account.rulesVersion, this.rules.get(agentId) ?? 0, `the version of the rules of ${agentId}`);
    this.#auditUsage(account, now);
    const known = { status: account.status, keyId: account.keyId };
    mustAgree(known, { status, keyId }, `status and key of ${agentId}`);
    mustAgree({ ...account.policy }, { ...policy }, `the policy of ${agentId}`);
    mustAgree(account.policyVersion, policyVersion, `the version of the policy of ${agentId}`);
    for (const open of account.open.values()) this.#auditOpen(open);
    this.#auditRecord(account, agent);
  }

  #auditUsage({ agentId, usage }: Account, now: number): void {
    const { date, ...day } = usage.day;
    mustAgree(date, this.#days.get(agentId) ?? "", `the newest day of ${agentId}`);
    const passed = this.payments.filter((each) => each.agentId === agentId && each.passed);
    const used = passed.filter((each) => isUsed(each) && each.day === date);
    const amountMc = sumOf(used.map(({ request }) => request.amountMc));
    const count = passed.filter(({ countedOn }) => countedOn === date).length;
    mustAgree(day, { amountMc, count }, `the day of ${agentId}`);
    const inHour = sumOf(usage.counts.map(([at, payments]) => (at > now - HOUR_MS ? payments : 0)));
    const within = (ms: number): number => passed.filter(({ countedAt }) => countedAt > now - ms).length;
    must(inHour >= within(HOUR_MS) && inHour <= within(this.#longestHourMs(now)), `the hour of ${agentId}`);
  }

  #auditOpen({ isWithdrawn, payment }: OpenPayment): void {
    const { transactionId } = payment.request;
    const booked = this.payments.find(({ request }) => request.transactionId === transactionId);
    // Warnings are there until they are published.
    const expected = booked === undefined ? null : withoutPublished(booked.payment);
    mustAgree(withoutPublished(payment), expected, `the open payment ${transactionId}`);
    mustAgree(isWithdrawn === true, booked?.isWithdrawn, `whether ${transactionId} is withdrawn`);
  }

  /**
   * What the agent's record shows under one revision is one thing, also if a server writes it before the ledger's. Each
   * event is published once, until that is confirmed.
   */
  #auditRecord(account: Account, { agentId, events }: AccountModel): void {
    if (this.#audited.has(account)) return;
    this.#audited.add(account);
    const summary = summaryOf(account);
    const { events: published } = summary;
    for (const { events: _events, updatedAt: _at, ...shown } of [summary, afterCharge(summary)]) {
      const revision = `${agentId} ${shown.revision}`;
      const text = JSON.stringify(shown);
      mustAgree(text, this.#shown.get(revision) ?? text, `what one revision of ${agentId} shows`);
      this.#shown.set(revision, text);
    }
    const said = published.map((event) => ({ type: event.type, revision: event.revision }));
    mustAgree(said, events, `what is published of ${agentId}`);
    for (const event of published) {
      const of = `${agentId} ${event.revision}`;
      mustAgree(of, this.#eventIds.get(event.id) ?? of, `what is published under ${event.id}`);
      this.#eventIds.set(event.id, of);
    }
  }

  /** What has no account any more has no money on hold. */
  #auditGone(agentId: string): void {
    const isOwn = (each: PaymentModel): boolean => each.agentId === agentId;
    mustAgree(this.#sum("pending", isOwn), 0, `on hold for ${agentId}, which is gone`);
    mustAgree(this.agents.get(agentId)?.status, "closed", `the status of ${agentId}, which is gone`);
  }
}

const sumOf = (numbers: readonly number[]): number => numbers.reduce((sum, number) => sum + number, 0);

/** Compares what is nearly always alike. */
function mustAgree(actual: unknown, expected: unknown, complaint: string): void {
  if (!isDeepStrictEqual(actual, expected)) mustEqual(actual, expected, complaint);
}

const isUsed = ({ payment }: PaymentModel): boolean => ["pending", "approved"].includes(payment.status);
