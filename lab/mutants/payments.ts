import { moneyOf, totalOf } from "../../src/domain/ledger/payment.ts";
import type { BudgetPolicy } from "../../src/domain/ledger/policy.ts";
import { utcDate } from "../../src/domain/ledger/usage.ts";
import { isClosedKey } from "../../src/domain/ledger/closed-keys.ts";
import { judge } from "../../src/domain/ledger/judge.ts";
import type { LedgerDomain } from "../../test/domain/ledger/world.ts";
import { HOUR, MINUTE } from "../../test/domain/support/actor.ts";
import {
  accountOf,
  after,
  before,
  judging,
  judgingAs,
  onRelease,
  plus,
  putDay,
  putUsage,
  releasedMc,
  under,
} from "./ledger-faults.ts";
import type { Mutant } from "./mutant.ts";

type LedgerMutant = Mutant<LedgerDomain>;

const unlimited: BudgetPolicy = {
  budgetCents: 1_000_000,
  autoApprovalThresholdCents: null,
  perTransactionLimitCents: null,
  dailySpendLimitCents: null,
  hourlyVelocityLimit: null,
  dailyVelocityLimit: null,
};

const limits: readonly LedgerMutant[] = [
  {
    fault: "the limit per transaction lets one cent more through",
    complaint: "PER_TRANSACTION_LIMIT_EXCEEDED",
    seed: 7,
    domain: () => under((policy) => ({ perTransactionLimitCents: plus(policy.perTransactionLimitCents, 1) })),
  },
  {
    fault: "the limit per transaction refuses the exact amount",
    complaint: "PER_TRANSACTION_LIMIT_EXCEEDED",
    domain: () =>
      under((policy) => ({ perTransactionLimitCents: plus(policy.perTransactionLimitCents, -1) })),
  },
  {
    fault: "the budget lets one cent more through",
    complaint: "BUDGET_EXCEEDED",
    domain: () => under(({ budgetCents }) => ({ budgetCents: budgetCents + 1 })),
  },
  {
    fault: "the day's limit lets one cent more through",
    complaint: "DAILY_SPEND_LIMIT_EXCEEDED",
    domain: () => under((policy) => ({ dailySpendLimitCents: plus(policy.dailySpendLimitCents, 1) })),
  },
  {
    fault: "the hour's count lets one payment more through",
    complaint: "HOURLY_VELOCITY_EXCEEDED",
    domain: () => under((policy) => ({ hourlyVelocityLimit: plus(policy.hourlyVelocityLimit, 1) })),
  },
  {
    fault: "the day's count lets one payment more through",
    complaint: "DAILY_VELOCITY_EXCEEDED",
    domain: () => under((policy) => ({ dailyVelocityLimit: plus(policy.dailyVelocityLimit, 1) })),
  },
  {
    fault: "a payment at the threshold is held",
    complaint: "what flags",
    domain: () =>
      under((policy) => ({ autoApprovalThresholdCents: plus(policy.autoApprovalThresholdCents, -1) })),
  },
  {
    fault: "a threshold of 0 means never to ask",
    complaint: "what flags",
    domain: () =>
      under(({ autoApprovalThresholdCents: at }) => ({ autoApprovalThresholdCents: at === 0 ? null : at })),
  },
  {
    fault: "an hour is an eighth too long",
    complaint: "the hour of",
    domain: () =>
      before((ledger, command, now) => {
        const account = command.kind === "pay" ? accountOf(ledger, command) : undefined;
        if (account === undefined) return;
        const counts = account.usage.counts.map(
          ([at, count]) => [at > now - 2 * HOUR ? at + HOUR / 8 : at, count] as const,
        );
        putUsage(ledger, account, { counts });
      }),
  },
  {
    fault: "the day does not begin anew at midnight",
    complaint: "of agent-",
    domain: () =>
      before((ledger, command, now) => {
        const account = accountOf(ledger, command);
        const today = utcDate(now);
        if (account !== undefined && account.usage.day.date < today && account.usage.day.date !== "")
          putDay(ledger, account, { date: today });
      }),
  },
  {
    fault: "a clock that goes back over midnight lifts the day's limits",
    complaint: "day of",
    domain: () =>
      before((ledger, command, now) => {
        const account = accountOf(ledger, command);
        if (account !== undefined && account.usage.day.date > utcDate(now))
          putDay(ledger, account, { date: utcDate(now), amountMc: 0, count: 0 });
      }),
  },
];

const money: readonly LedgerMutant[] = [
  {
    fault: "what is released twice is free twice",
    complaint: "the totals of agent-",
    domain: () =>
      onRelease((ledger, account, mc) => {
        putUsage(ledger, account, { reservedMc: account.usage.reservedMc - mc });
      }),
  },
  {
    fault: "what is denied stays in the day's spend",
    complaint: "the day of",
    domain: () =>
      onRelease((ledger, account, mc) => {
        putDay(ledger, account, { amountMc: account.usage.day.amountMc + mc });
      }),
  },
  {
    fault: "what is denied gives its count back",
    complaint: "the day of",
    domain: () =>
      onRelease((ledger, account) => {
        putDay(ledger, account, { count: Math.max(0, account.usage.day.count - 1) });
      }),
  },
  {
    fault: "what is held reserves nothing",
    complaint: "the totals of agent-",
    domain: () =>
      after(({ command, is, ledger, reply }) => {
        if (command.kind !== "pay" || is === undefined || reply.kind !== "decided") return;
        if (reply.decision.approval === null) return;
        putUsage(ledger, is, { reservedMc: is.usage.reservedMc - command.request.amountMc });
      }),
  },
  {
    fault: "what is given back is given back to today, whatever day it was counted on",
    complaint: "the day of",
    domain: () =>
      after((judged) => {
        const { command, is, ledger, was } = judged;
        if (command.kind !== "confirm" || is === undefined || releasedMc(judged) === 0) return;
        const day = was?.open.get(command.transactionId)?.payment.day;
        if (day === is.usage.day.date) return;
        putDay(ledger, is, { amountMc: is.usage.day.amountMc - releasedMc(judged) });
      }),
  },
  {
    fault: "a late outcome changes a payment that is over",
    complaint: "what settled makes of",
    domain: () =>
      before((ledger, command) => {
        if (command.kind !== "confirm" || command.outcome?.result.status !== "settled") return;
        const account = accountOf(ledger, command);
        const open = account?.open.get(command.transactionId);
        if (account === undefined || open === undefined || totalOf(moneyOf(open.payment)) > 0) return;
        const payment = { ...open.payment, phase: "sending" } as const;
        account.open.set(command.transactionId, { ...open, payment });
      }),
  },
];

const decisions: readonly LedgerMutant[] = [
  {
    fault: "an approval is not checked against the limits again",
    complaint: "what is approved, by its limits",
    domain: () => judgingAs(["approve"], () => ({ policy: unlimited })),
  },
  {
    fault: "a paused agent's payment is approved",
    complaint: "what is approved, by its limits",
    domain: () => judgingAs(["approve"], () => ({ status: "active" })),
  },
  {
    fault: "a paused agent pays",
    complaint: "AGENT_PAUSED",
    domain: () => judgingAs(["pay"], ({ status }) => ({ status: status === "paused" ? "active" : status })),
  },
  {
    fault: "an approval after the window's end pays",
    complaint: "whether approve came in time",
    domain: () =>
      judging((ledger, command, now) => {
        if (command.kind !== "approve") return judge(ledger, command, now);
        const payment = accountOf(ledger, command)?.open.get(command.transactionId)?.payment;
        return judge(ledger, command, Math.min(now, (payment?.approval?.expiresAt ?? Infinity) - 1));
      }),
  },
  {
    fault: "the window's end is stored and never compared",
    complaint: "came in time",
    domain: () =>
      judging((ledger, command, now) => {
        if (command.kind !== "deny" && command.kind !== "cancel") return judge(ledger, command, now);
        const payment = accountOf(ledger, command)?.open.get(command.transactionId)?.payment;
        return judge(ledger, command, Math.min(now, (payment?.approval?.expiresAt ?? Infinity) - 1));
      }),
  },
  {
    fault: "what comes in time is taken for too late",
    complaint: "came in time",
    domain: () =>
      judging((ledger, command, now) =>
        judge(ledger, command, command.kind === "deny" ? now + 24 * HOUR - 10 * MINUTE : now),
      ),
  },
  {
    fault: "a replayed key is decided again",
    complaint: "a replay",
    domain: () => {
      let times = 0;
      return before((ledger, command) => {
        if (command.kind !== "pay") return;
        const { agentId, request } = command;
        const open = [...(accountOf(ledger, command)?.open.values() ?? [])];
        const isOpen = open.some(({ payment }) => payment.request.keyHash === request.keyHash);
        if (!isOpen && !isClosedKey(ledger.keys, agentId, request.keyHash)) return;
        times += 1;
        return { ...command, request: { ...request, keyHash: `${request.keyHash} ${times}` } };
      });
    },
  },
  {
    fault: "a key that may be forgotten is decided without a look-up",
    complaint: "a replay was answered decided",
    domain: () =>
      before((_ledger, command) =>
        command.kind === "pay" ? { ...command, recordsCheckedThrough: Infinity } : undefined,
      ),
  },
  {
    fault: "the fingerprint of closed payments is forgotten",
    complaint: "what flags",
    seed: 19,
    domain: () =>
      before(({ keys }, command) => {
        if (command.kind !== "pay") return;
        for (const ofAgent of keys.byAgent.values()) {
          for (const [keyHash, [closedAs, createdAt, , revision]] of ofAgent)
            ofAgent.set(keyHash, [closedAs, createdAt, null, revision]);
        }
      }),
  },
  {
    fault: "a stale version changes the policy",
    complaint: "a stale policy",
    domain: () =>
      before((ledger, command) =>
        command.kind === "change_policy"
          ? { ...command, version: accountOf(ledger, command)?.policyVersion ?? 1 }
          : undefined,
      ),
  },
  {
    fault: "a changed policy keeps its version",
    complaint: "the version of the policy of",
    domain: () =>
      after(({ is, reply }) => {
        if (reply.kind === "policy" && is !== undefined) is.policyVersion -= 1;
      }),
  },
  {
    fault: "a field that a patch leaves out is cleared",
    complaint: "the policy of",
    domain: () =>
      before((_ledger, command) =>
        command.kind === "change_policy"
          ? { ...command, patch: { dailySpendLimitCents: null, ...command.patch } }
          : undefined,
      ),
  },
];

/** Faults in payments. */
export const paymentMutants: readonly LedgerMutant[] = [...limits, ...money, ...decisions];
