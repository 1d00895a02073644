import type { AgentCommand, AgentReply } from "../../../src/domain/agent/commands.ts";
import { decide, handle } from "../../../src/domain/agent/decide.ts";
import type { AgentEvent } from "../../../src/domain/agent/evolve.ts";
import { evolve } from "../../../src/domain/agent/evolve.ts";
import type { BudgetPolicy } from "../../../src/domain/agent/policy.ts";
import type { AgentState } from "../../../src/domain/agent/state.ts";
import type { Subject } from "./simulation.ts";
import { realSubject, throughJson } from "./simulation.ts";

type Handle = Subject["handle"];

const handling = (mutant: Handle): Subject => ({ ...realSubject, handle: mutant });

/** Applies events with something done after each. */
const evolving = (after: (state: AgentState, event: AgentEvent, now: number) => void): Subject =>
  handling((state, command, now) => {
    const { events, reply } = decide(state, command, now);
    for (const event of events) {
      evolve(state, event, now);
      after(state, event, now);
    }
    return reply;
  });

/** Decides payments and approvals under another policy than the actor's own. */
const deciding = (policyOf: (policy: BudgetPolicy, command: AgentCommand) => BudgetPolicy): Subject =>
  handling((state, command, now) => {
    if (command.kind !== "pay" && command.kind !== "approve") return handle(state, command, now);
    const { events, reply } = decide({ ...state, policy: policyOf(state.policy, command) }, command, now);
    for (const event of events) evolve(state, event, now);
    return reply;
  });

const plus = (limit: number | null, more: number): number | null => (limit === null ? null : limit + more);
const released = (event: AgentEvent): number =>
  event.type === "payment_changed" && event.payment.denial !== null ? event.payment.request.amountCents : 0;

const without: BudgetPolicy = {
  budgetCents: 1_000_000,
  autoApprovalThresholdCents: null,
  perTransactionLimitCents: null,
  dailySpendLimitCents: null,
  hourlyVelocityLimit: null,
  dailyVelocityLimit: null,
};

function forgetfulPay(state: AgentState, command: AgentCommand, now: number): AgentReply {
  if (command.kind === "pay") {
    delete state.keys[command.request.keyHash];
    state.keyOrder = state.keyOrder.filter((key) => key !== command.request.keyHash);
  }
  return handle(state, command, now);
}

/** Lets a late resolution count as if it had come in time. */
function neverLate(state: AgentState, command: AgentCommand, now: number): AgentReply {
  if (command.kind !== "approve" && command.kind !== "deny") return handle(state, command, now);
  const approval = state.open[command.transactionId]?.payment.approval;
  return handle(state, command, Math.min(now, (approval?.expiresAt ?? Infinity) - 1));
}

/** Takes an outcome of a rail for the truth, whatever the payment has become before. */
function outcomeWins(state: AgentState, command: AgentCommand, now: number): AgentReply {
  const open = command.kind === "confirm" ? state.open[command.transactionId] : undefined;
  if (open !== undefined && command.kind === "confirm" && command.outcome?.result.status === "settled") {
    open.payment = { ...open.payment, phase: "sending" };
  }
  return handle(state, command, now);
}

export interface Mutant {
  readonly fault: string;
  /** What the auditor says of it. */
  readonly complaint: string;
  readonly subject: Subject;
}

/** Faults that such services were seen to have, or that a slip of the hand would make of ours. */
export const mutants: readonly Mutant[] = [
  {
    fault: "a denial after the hold releases nothing",
    complaint: "totals",
    subject: evolving((state, event) => {
      state.usage.reservedCents += released(event);
    }),
  },
  {
    fault: "a denial after the hold releases twice",
    complaint: "totals",
    subject: evolving((state, event) => {
      state.usage.reservedCents -= released(event);
    }),
  },
  {
    fault: "what is released stays in the day's spend",
    complaint: "totals",
    subject: evolving((state, event) => {
      state.usage.day.amountCents += released(event);
    }),
  },
  {
    fault: "a denied payment gives its count back",
    complaint: "totals",
    subject: evolving((state, event) => {
      if (released(event) > 0) state.usage.day.count = Math.max(0, state.usage.day.count - 1);
    }),
  },
  {
    fault: "holding reserves nothing",
    complaint: "totals",
    subject: evolving((state, event) => {
      if (event.type === "payment_decided" && event.payment.phase === "held")
        state.usage.reservedCents -= event.payment.request.amountCents;
    }),
  },
  {
    fault: "the budget lets one cent too much through",
    complaint: "the denial",
    subject: deciding((policy) => ({
      ...policy,
      budgetCents: policy.budgetCents + 1,
    })),
  },
  {
    fault: "the limit per transaction refuses the exact amount",
    complaint: "the denial",
    subject: deciding((policy) => ({
      ...policy,
      perTransactionLimitCents: plus(policy.perTransactionLimitCents, -1),
    })),
  },
  {
    fault: "the hourly limit lets one too many through",
    complaint: "the denial",
    subject: deciding((policy) => ({
      ...policy,
      hourlyVelocityLimit: plus(policy.hourlyVelocityLimit, 1),
    })),
  },
  {
    fault: "a threshold of 0 means never to ask",
    complaint: "whether a person is asked",
    subject: deciding((policy) => ({
      ...policy,
      autoApprovalThresholdCents:
        policy.autoApprovalThresholdCents === 0 ? null : policy.autoApprovalThresholdCents,
    })),
  },
  {
    fault: "an approval is not checked against the limits again",
    complaint: "what approve made of the payment",
    subject: deciding((policy, { kind }) => (kind === "approve" ? without : policy)),
  },
  {
    fault: "a paused agent is approved",
    complaint: "what approve made of the payment",
    subject: handling((state, command, now) => {
      if (command.kind !== "approve") return handle(state, command, now);
      const { events, reply } = decide({ ...state, lifecycle: "active" }, command, now);
      for (const event of events) evolve(state, event, now);
      return reply;
    }),
  },
  {
    fault: "an hour is a millisecond too long",
    complaint: "the denial",
    subject: handling((state, command, now) => {
      if (command.kind !== "pay") return handle(state, command, now);
      const hour = state.usage.hour.map(([at, count]): [number, number] => [at + 1, count]);
      const { events, reply } = decide({ ...state, usage: { ...state.usage, hour } }, command, now);
      for (const event of events) evolve(state, event, now);
      return reply;
    }),
  },
  {
    fault: "expiry is stored and never compared",
    complaint: "changed the payment",
    subject: handling(neverLate),
  },
  {
    fault: "a replayed key decides again",
    complaint: "a known key was answered decided",
    subject: handling(forgetfulPay),
  },
  {
    fault: "a late outcome changes a terminal status",
    complaint: "something is open for ever",
    subject: handling(outcomeWins),
  },
  {
    fault: "a reversal is forgotten",
    complaint: "totals",
    subject: handling((state, command, now) =>
      command.kind === "confirm" && command.outcome?.result.status === "reversed"
        ? { kind: "confirmed" }
        : handle(state, command, now),
    ),
  },
  {
    fault: "a stale version changes the policy",
    complaint: "stale version",
    subject: handling((state, command, now) =>
      command.kind === "change_policy"
        ? handle(state, { ...command, version: state.policyVersion }, now)
        : handle(state, command, now),
    ),
  },
  {
    fault: "continue-as-new forgets the hour",
    complaint: "continue-as-new lost something",
    subject: {
      ...realSubject,
      rollOver: (state) => {
        const next = throughJson(state);
        next.usage.hour = [];
        return next;
      },
    },
  },
  {
    fault: "continue-as-new forgets the keys",
    complaint: "continue-as-new lost something",
    subject: {
      ...realSubject,
      rollOver: (state) => ({ ...throughJson(state), keys: {}, keyOrder: [] }),
    },
  },
];
