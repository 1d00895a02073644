import { handle } from "../../../src/domain/agent/decide.ts";
import type { AgentEvent } from "../../../src/domain/agent/evolve.ts";
import { countPayment, utcDate } from "../../../src/domain/agent/usage.ts";
import { handleBudget } from "../../../src/domain/budget/budget.ts";
import type { Domain } from "../../../scripts/simulation/domain.ts";
import {
  agents,
  agentsAfter,
  agentsBefore,
  agentsDeciding,
  agentsUnder,
  budget,
  budgetAfter,
  readBeforeAwait,
  withCapsRaised,
} from "./faults.ts";

export interface Mutant {
  readonly fault: string;
  readonly domain: () => Domain;
}

const plusOne = (limit: number | null): number | null => (limit === null ? null : limit + 1);

/** What a payment that came to nothing gives back. */
const released = (event: AgentEvent): number =>
  event.type === "payment_changed" && event.payment.denial !== null ? event.payment.request.amountCents : 0;

/** Faults that such services were seen to have, that a slip of the hand would make of ours, or that the simulation has found. */
export const mutants: readonly Mutant[] = [
  {
    fault: "the limit per transaction lets one cent more through",
    domain: () =>
      agentsUnder((policy) => ({ perTransactionLimitCents: plusOne(policy.perTransactionLimitCents) })),
  },
  {
    fault: "the budget lets one cent more through",
    domain: () => agentsUnder(({ budgetCents }) => ({ budgetCents: budgetCents + 1 })),
  },
  {
    fault: "the day's limit lets one cent more through",
    domain: () => agentsUnder((policy) => ({ dailySpendLimitCents: plusOne(policy.dailySpendLimitCents) })),
  },
  {
    fault: "the hour's count lets one payment more through",
    domain: () => agentsUnder((policy) => ({ hourlyVelocityLimit: plusOne(policy.hourlyVelocityLimit) })),
  },
  {
    fault: "the day's count lets one payment more through",
    domain: () => agentsUnder((policy) => ({ dailyVelocityLimit: plusOne(policy.dailyVelocityLimit) })),
  },
  {
    fault: "a payment at the threshold is held",
    domain: () =>
      agentsUnder(({ autoApprovalThresholdCents: at }) => ({
        autoApprovalThresholdCents: at === null ? null : Math.max(0, at - 1),
      })),
  },
  {
    fault: "a team's cap lets one cent more through",
    domain: () =>
      budget((state, command, now) =>
        command.kind === "report"
          ? withCapsRaised(state, { teamCents: 1, projectCents: 0 }, () => handleBudget(state, command, now))
          : handleBudget(state, command, now),
      ),
  },
  {
    fault: "the project's cap lets one cent more through",
    domain: () =>
      budget((state, command, now) =>
        command.kind === "report"
          ? withCapsRaised(state, { teamCents: 0, projectCents: 1 }, () => handleBudget(state, command, now))
          : handleBudget(state, command, now),
      ),
  },
  {
    fault: "what is denied is not released",
    domain: () => agentsAfter((state, event) => void (state.usage.reservedCents += released(event))),
  },
  {
    fault: "what is denied is released twice",
    domain: () => agentsAfter((state, event) => void (state.usage.reservedCents -= released(event))),
  },
  {
    fault: "what is held reserves nothing",
    domain: () =>
      agentsAfter((state, event) => {
        if (event.type !== "payment_decided" || event.payment.phase !== "held") return;
        state.usage.reservedCents -= event.payment.request.amountCents;
      }),
  },
  { fault: "the caps' usage is read before an await", domain: () => budget(readBeforeAwait()) },
  {
    fault: "a changed policy keeps its version",
    domain: () =>
      agentsAfter((state, event) => {
        if (event.type === "policy_changed") state.policyVersion -= 1;
      }),
  },
  {
    fault: "a replaced budget keeps its version",
    domain: () =>
      budget((state, command, now) => {
        const before = state.project.version;
        const reply = handleBudget(state, command, now);
        state.project = { ...state.project, version: before };
        return reply;
      }),
  },
  {
    fault: "what is released is not reported",
    domain: () =>
      agentsAfter((state) => {
        if (state.caps !== undefined && !state.caps.exempt) state.caps.owedRevision = 0;
      }),
  },
  {
    fault: "an exemption is heeded though the agent has heard of a newer cap",
    domain: () =>
      agentsBefore((state, command) =>
        command.kind === "confirm" && command.caps !== undefined && command.caps.exemptEpoch !== null
          ? { ...command, caps: { ...command.caps, exemptEpoch: state.caps?.epoch ?? 0 } }
          : command,
      ),
  },
  {
    fault: "an agent that was told to ask goes on without",
    domain: () =>
      agentsAfter((state, event) => {
        if (event.type === "payment_decided" && state.caps !== undefined) state.caps.exempt = true;
      }),
  },
  {
    fault: "tombstones are not looked at, and who comes back is taken for asking",
    domain: () =>
      budget((state, command, now) => {
        state.gone = {};
        const reply = handleBudget(state, command, now);
        const member = command.kind === "report" ? state.members[command.report.agentId] : undefined;
        const isCapped = reply.kind === "reported" && reply.exemptEpoch === null;
        if (isCapped && member !== undefined) delete member.offered;
        return reply;
      }),
  },
  {
    fault: "a refusal is forgotten, so that who asks again is judged again",
    domain: () =>
      budgetAfter((state) => {
        for (const member of Object.values(state.members)) {
          const kept = (member.answers ?? []).filter(({ granted }) => granted);
          if (kept.length > 0) member.answers = kept;
          else delete member.answers;
          // Whoever asks again comes with the same revision.
          member.revision -= 1;
        }
      }),
  },
  {
    fault: "a grant is forgotten, so that who asks again reserves again",
    domain: () =>
      budgetAfter((state, command) => {
        const member = command.kind === "report" ? state.members[command.report.agentId] : undefined;
        if (member?.answers === undefined) return;
        delete member.answers;
        member.revision -= 1;
      }),
  },
  {
    fault: "what is checked again on approval is held against itself",
    domain: () =>
      budget((state, command, now) => {
        if (command.kind !== "report") return handleBudget(state, command, now);
        const own = command.report.asks.reduce(
          (cents, ask) => (ask.kind === "recheck" ? cents + ask.amountCents : cents),
          0,
        );
        const raise = { teamCents: -own, projectCents: -own };
        return withCapsRaised(state, raise, () => handleBudget(state, command, now));
      }),
  },
  {
    fault: "an approval is not put to the caps again",
    domain: () =>
      agentsBefore((state, command) => {
        const open = command.kind === "confirm" ? state.open[command.transactionId] : undefined;
        if (open?.payment.ask === "recheck") open.payment = { ...open.payment, ask: null };
        return command;
      }),
  },
  {
    fault: "what a cap refused still counts",
    domain: () =>
      agentsAfter((state, event, now) => {
        const isRefused =
          event.type === "payment_changed" && event.payment.denial?.code.endsWith("CAP_EXCEEDED") === true;
        if (isRefused && event.payment.status === "denied") countPayment(state.usage, now);
      }),
  },
  {
    fault: "a reversal gives back to today, whatever day it was spent on",
    domain: () =>
      agentsAfter((state, event, now) => {
        if (event.type !== "payment_changed" || event.payment.status !== "reversed") return;
        if (event.payment.day !== utcDate(now))
          state.usage.day.amountCents -= event.payment.request.amountCents;
      }),
  },
  {
    fault: "a replayed key is decided again",
    domain: () =>
      agentsBefore((state, command) => {
        if (command.kind === "pay") delete state.keys[command.request.keyHash];
        return command;
      }),
  },
  {
    fault: "the day does not begin anew at midnight",
    domain: () =>
      agentsBefore((state, command, now) => {
        state.usage.day.date = utcDate(now);
        return command;
      }),
  },
  {
    fault: "an approval after the window's end pays",
    domain: () =>
      agents((state, command, now) => {
        const id = command.kind === "approve" ? command.transactionId : "";
        const expiresAt = state.open[id]?.payment.approval?.expiresAt ?? Infinity;
        return handle(state, command, Math.min(now, expiresAt - 1));
      }),
  },
  {
    fault: "a paused agent pays",
    domain: () =>
      agentsDeciding((state) => (state.lifecycle === "paused" ? { ...state, lifecycle: "active" } : state)),
  },
  {
    fault: "an archived agent keeps what is on hold",
    domain: () =>
      agents((state, command, now) =>
        command.kind === "archive" && state.lifecycle !== "archived"
          ? handle({ ...state, open: {} }, command, now).kind === "archive"
            ? archivedAlone(state, now)
            : handle(state, command, now)
          : handle(state, command, now),
      ),
  },
  {
    fault: "an outcome that comes before the caps' word is dropped",
    domain: () =>
      agentsBefore((state, command) => {
        if (command.kind !== "confirm" || command.caps !== undefined) return command;
        const isAsking = (state.open[command.transactionId]?.payment.ask ?? null) !== null;
        return isAsking ? { ...command, outcome: null } : command;
      }),
  },
  {
    fault: "a team's budget reaches no agent that has to ask",
    domain: () =>
      agentsBefore((_state, command) =>
        command.kind === "heed_budget" && command.asks ? { ...command, budgetCents: null } : command,
      ),
  },
];

function archivedAlone(state: Parameters<typeof handle>[0], now: number): ReturnType<typeof handle> {
  const { open } = state;
  state.open = {};
  const reply = handle(state, { kind: "archive", by: { type: "user" } }, now);
  state.open = open;
  return reply;
}
