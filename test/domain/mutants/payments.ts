import { handle } from "../../../src/domain/agent/decide.ts";
import type { AgentEvent } from "../../../src/domain/agent/evolve.ts";
import type { BudgetPolicy } from "../../../src/domain/agent/policy.ts";
import { utcDate } from "../../../src/domain/agent/usage.ts";
import {
  agents,
  agentsAfter,
  agentsBefore,
  agentsDeciding,
  agentsRollingOver,
  agentsUnder,
  asActive,
  plus,
} from "./faults.ts";
import type { Mutant } from "./mutant.ts";

/** What a payment that came to nothing gives back. */
const released = (event: AgentEvent): number =>
  event.type === "payment_changed" && event.payment.denial !== null ? event.payment.request.amountCents : 0;

const unlimited: BudgetPolicy = {
  budgetCents: 1_000_000,
  autoApprovalThresholdCents: null,
  perTransactionLimitCents: null,
  dailySpendLimitCents: null,
  hourlyVelocityLimit: null,
  dailyVelocityLimit: null,
};

const limits: readonly Mutant[] = [
  {
    fault: "the limit per transaction lets one cent more through",
    complaint: "a payment of",
    domain: () =>
      agentsUnder((policy) => ({ perTransactionLimitCents: plus(policy.perTransactionLimitCents, 1) })),
  },
  {
    fault: "the limit per transaction refuses the exact amount",
    complaint: "a payment of",
    domain: () =>
      agentsUnder((policy) => ({ perTransactionLimitCents: plus(policy.perTransactionLimitCents, -1) })),
  },
  {
    fault: "the budget lets one cent more through",
    complaint: "a payment of",
    domain: () => agentsUnder(({ budgetCents }) => ({ budgetCents: budgetCents + 1 })),
  },
  {
    fault: "the day's limit lets one cent more through",
    complaint: "DAILY_SPEND_LIMIT_EXCEEDED",
    seed: 20_261_122,
    domain: () => agentsUnder((policy) => ({ dailySpendLimitCents: plus(policy.dailySpendLimitCents, 1) })),
  },
  {
    fault: "the hour's count lets one payment more through",
    complaint: "a payment of",
    domain: () => agentsUnder((policy) => ({ hourlyVelocityLimit: plus(policy.hourlyVelocityLimit, 1) })),
  },
  {
    fault: "the day's count lets one payment more through",
    complaint: "a payment of",
    domain: () => agentsUnder((policy) => ({ dailyVelocityLimit: plus(policy.dailyVelocityLimit, 1) })),
  },
  {
    fault: "a payment at the threshold is held",
    complaint: "whether a person is asked",
    domain: () =>
      agentsUnder((policy) => ({ autoApprovalThresholdCents: plus(policy.autoApprovalThresholdCents, -1) })),
  },
  {
    fault: "a threshold of 0 means never to ask",
    complaint: "whether a person is asked",
    seed: 20_261_122,
    domain: () =>
      agentsUnder(({ autoApprovalThresholdCents: at }) => ({
        autoApprovalThresholdCents: at === 0 ? null : at,
      })),
  },
  {
    fault: "an hour is a millisecond too long",
    complaint: "a payment of",
    seed: 20_261_127,
    domain: () =>
      agentsDeciding(["pay"], (state) => {
        const hour = state.usage.hour.map(([at, count]): [number, number] => [at + 1, count]);
        return { ...state, usage: { ...state.usage, hour } };
      }),
  },
  {
    fault: "the day does not begin anew at midnight",
    complaint: "the usage of",
    domain: () =>
      agentsBefore((state, command, now) => {
        state.usage.day.date = utcDate(now);
        return command;
      }),
  },
];

const money: readonly Mutant[] = [
  {
    fault: "what is denied is not released",
    complaint: "reserved by",
    domain: () => agentsAfter((state, event) => void (state.usage.reservedCents += released(event))),
  },
  {
    fault: "what is denied is released twice",
    complaint: "reserved by",
    domain: () => agentsAfter((state, event) => void (state.usage.reservedCents -= released(event))),
  },
  {
    fault: "what is denied stays in the day's spend",
    complaint: "the usage of",
    domain: () => agentsAfter((state, event) => void (state.usage.day.amountCents += released(event))),
  },
  {
    fault: "what is denied gives its count back",
    complaint: "the usage of",
    domain: () =>
      agentsAfter((state, event) => {
        if (released(event) > 0) state.usage.day.count = Math.max(0, state.usage.day.count - 1);
      }),
  },
  {
    fault: "what is held reserves nothing",
    complaint: "reserved by",
    domain: () =>
      agentsAfter((state, event) => {
        if (event.type !== "payment_decided" || event.payment.phase !== "held") return;
        state.usage.reservedCents -= event.payment.request.amountCents;
      }),
  },
  {
    fault: "a reversal is forgotten",
    complaint: "by agent-1",
    domain: () =>
      agents((state, command, now) =>
        command.kind === "confirm" && command.outcome?.result.status === "reversed"
          ? { kind: "confirmed" }
          : handle(state, command, now),
      ),
  },
  {
    fault: "a reversal gives back to today, whatever day it was spent on",
    complaint: "the usage of",
    domain: () =>
      agentsAfter((state, event, now) => {
        if (event.type !== "payment_changed" || event.payment.status !== "reversed") return;
        if (event.payment.day !== utcDate(now))
          state.usage.day.amountCents -= event.payment.request.amountCents;
      }),
  },
  {
    fault: "a late outcome changes a payment that is over",
    complaint: "open for ever",
    domain: () =>
      agentsBefore((state, command) => {
        const open = command.kind === "confirm" ? state.open[command.transactionId] : undefined;
        const isSettled = command.kind === "confirm" && command.outcome?.result.status === "settled";
        if (open !== undefined && isSettled) open.payment = { ...open.payment, phase: "sending" };
        return command;
      }),
  },
];

const decisions: readonly Mutant[] = [
  {
    fault: "an approval is not checked against the limits again",
    complaint: "the approval of",
    seed: 20_261_127,
    domain: () => agentsDeciding(["approve"], (state) => ({ ...state, policy: unlimited })),
  },
  {
    fault: "a paused agent's payment is approved",
    complaint: "the approval of",
    domain: () => agentsDeciding(["approve"], (state) => asActive(state, "paused")),
  },
  {
    fault: "a paused agent pays",
    complaint: "a payment of",
    domain: () => agentsDeciding(["pay", "approve"], (state) => asActive(state, "paused")),
  },
  {
    fault: "an approval after the window's end pays",
    complaint: "whether approve changed",
    domain: () =>
      agents((state, command, now) => {
        const id = command.kind === "approve" ? command.transactionId : "";
        const expiresAt = state.open[id]?.payment.approval?.expiresAt ?? Infinity;
        return handle(state, command, Math.min(now, expiresAt - 1));
      }),
  },
  {
    fault: "the window's end is stored and never compared",
    complaint: "changed txn_",
    domain: () =>
      agents((state, command, now) => {
        if (command.kind !== "approve" && command.kind !== "deny") return handle(state, command, now);
        const approval = state.open[command.transactionId]?.payment.approval;
        return handle(state, command, Math.min(now, (approval?.expiresAt ?? Infinity) - 1));
      }),
  },
  {
    fault: "a replayed key is decided again",
    complaint: "a known key was answered decided",
    domain: () =>
      agentsBefore((state, command) => {
        if (command.kind !== "pay") return command;
        const { keyHash } = command.request;
        delete state.keys[keyHash];
        state.keyOrder = state.keyOrder.filter((key) => key !== keyHash);
        return command;
      }),
  },
  {
    fault: "a stale version changes the policy",
    complaint: "a stale version",
    domain: () =>
      agentsBefore((state, command) =>
        command.kind === "change_policy" ? { ...command, version: state.policyVersion } : command,
      ),
  },
  {
    fault: "a changed policy keeps its version",
    complaint: "the version of the policy of",
    domain: () =>
      agentsAfter((state, event) => {
        if (event.type === "policy_changed") state.policyVersion -= 1;
      }),
  },
  {
    fault: "continue-as-new forgets the hour",
    complaint: "continue-as-new lost something",
    domain: () => agentsRollingOver((state) => ({ ...state, usage: { ...state.usage, hour: [] } })),
  },
  {
    fault: "continue-as-new forgets the keys",
    complaint: "continue-as-new lost something",
    domain: () => agentsRollingOver((state) => ({ ...state, keys: {}, keyOrder: [] })),
  },
];

/** Faults in an agent's payments. */
export const paymentMutants: readonly Mutant[] = [...limits, ...money, ...decisions];
