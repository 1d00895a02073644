import { preparsePolicySet, statefulIsAuthorized } from "@cedar-policy/cedar-wasm/nodejs";
import { assess } from "../../src/domain/ledger/pay.ts";
import type { Account, Ledger } from "../../src/domain/ledger/state.ts";
import { countToday, countWithinHour, spentToday } from "../../src/domain/ledger/usage.ts";
import { accountIn, BENCH_PAYMENT, type Outcome, type Timed } from "./ours.ts";
import { AGENTS, agentIdOf, amountOf, POLICY, timeOf } from "./workload.ts";

/** The same limits as Cedar policies, parsed once and kept by the library; usage comes with each request. */
const POLICIES: Readonly<Record<string, string>> = {
  allowed: "permit (principal, action, resource);",
  per_transaction: forbidden(`context.amount > ${limit(POLICY.perTransactionLimitCents)}`),
  budget: forbidden(`context.used + context.amount > ${limit(POLICY.budgetCents)}`),
  daily_spend: forbidden(`context.today + context.amount > ${limit(POLICY.dailySpendLimitCents)}`),
  hourly_velocity: forbidden(`context.hourCount >= ${limit(POLICY.hourlyVelocityLimit)}`),
  daily_velocity: forbidden(`context.dayCount >= ${limit(POLICY.dailyVelocityLimit)}`),
  threshold: forbidden(`context.amount > ${limit(POLICY.autoApprovalThresholdCents)}`),
};

/** Cedar only allows or denies. What only the threshold forbids waits for a person. */
const HOLDS = "threshold";
const POLICY_SET = "limits";
const PAY = { type: "Action", id: "pay" };
const PROJECT = { type: "Project", id: "project-1" };
const BLOCK = 100;

function forbidden(condition: string): string {
  return `forbid (principal, action, resource) when { ${condition} };`;
}

function limit(value: number | null): string {
  if (value === null) throw new Error("every limit of the bench is set");
  return String(value);
}

export function prepareCedar(): void {
  const answer = preparsePolicySet(POLICY_SET, { staticPolicies: POLICIES });
  if (answer.type === "failure") throw new Error(answer.errors.map(({ message }) => message).join("; "));
}

function decide(agent: number, { usage }: Account, amount: number, now: number): Outcome {
  const answer = statefulIsAuthorized({
    principal: { type: "Agent", id: agentIdOf(agent) },
    action: PAY,
    resource: PROJECT,
    context: {
      amount,
      used: usage.spentCents + usage.reservedCents,
      today: spentToday(usage, now).amountCents,
      hourCount: countWithinHour(usage, now),
      dayCount: countToday(usage, now),
    },
    preparsedPolicySetId: POLICY_SET,
    entities: [],
  });
  if (answer.type === "failure") throw new Error(answer.errors.map(({ message }) => message).join("; "));
  const { decision, diagnostics } = answer.response;
  if (decision === "allow") return "approved";
  return diagnostics.reason.every((policy) => policy === HOLDS) ? "held" : "denied";
}

/** The verdicts on the same amounts, by agents as they are. */
export function assessByCedar(ledger: Ledger, now: number, ms: number): Timed {
  const end = performance.now() + ms;
  const from = performance.now();
  let decisions = 0;
  while (performance.now() < end) {
    for (let index = 0; index < BLOCK; index += 1) {
      const agent = index % AGENTS;
      decide(agent, accountIn(ledger, agent), amountOf(decisions + index), now);
    }
    decisions += BLOCK;
  }
  return { decisions, ms: performance.now() - from };
}

/** Amounts on which the two do not say the same; none. */
export function disagreements(ledger: Ledger, from: number, count: number): number {
  let differing = 0;
  for (let number = from; number < from + count; number += 1) {
    const agent = number % AGENTS;
    const account = accountIn(ledger, agent);
    const amount = amountOf(number);
    const now = timeOf(from);
    const { denial, flaggedByRuleTypes } = assess(
      ledger,
      account,
      { ...BENCH_PAYMENT, amountCents: amount },
      now,
    );
    const ours: Outcome = denial !== null ? "denied" : flaggedByRuleTypes.length > 0 ? "held" : "approved";
    if (ours !== decide(agent, account, amount, now)) differing += 1;
  }
  return differing;
}
