import { countPayment } from "../../../src/domain/agent/usage.ts";
import { handleBudget } from "../../../src/domain/budget/budget.ts";
import { agentsAfter, agentsBefore, budget, budgetAfter, readBeforeAwait, withCapsRaised } from "./faults.ts";
import type { Mutant } from "./mutant.ts";

/** Faults between agents and their project's budget: slips of the hand, and what the simulation has found. */
export const capMutants: readonly Mutant[] = [
  {
    fault: "a team's cap lets one cent more through",
    complaint: "a cap of",
    seed: 20_261_123,
    domain: () =>
      budget((state, command, now) =>
        command.kind === "report"
          ? withCapsRaised(state, { teamCents: 1, projectCents: 0 }, () => handleBudget(state, command, now))
          : handleBudget(state, command, now),
      ),
  },
  {
    fault: "the project's cap lets one cent more through",
    complaint: "on top of",
    seed: 20_261_123,
    domain: () =>
      budget((state, command, now) =>
        command.kind === "report"
          ? withCapsRaised(state, { teamCents: 0, projectCents: 1 }, () => handleBudget(state, command, now))
          : handleBudget(state, command, now),
      ),
  },
  {
    fault: "the caps' usage is read before an await",
    complaint: "left of",
    seed: 20_261_123,
    domain: () => budget(readBeforeAwait()),
  },
  {
    fault: "a replaced budget keeps its version",
    complaint: "a budget replaced from a stale version",
    seed: 20_261_122,
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
    complaint: "used under the cap of",
    seed: 20_261_122,
    domain: () =>
      agentsAfter((state) => {
        if (state.caps !== undefined && !state.caps.exempt) state.caps.owedRevision = 0;
      }),
  },
  {
    fault: "an exemption is heeded though the agent has heard of a newer cap",
    complaint: "did not ask",
    seed: 20_261_127,
    domain: () =>
      agentsBefore((state, command) =>
        command.kind === "confirm" && command.caps !== undefined && command.caps.exemptEpoch !== null
          ? { ...command, caps: { ...command.caps, exemptEpoch: state.caps?.epoch ?? 0 } }
          : command,
      ),
  },
  {
    fault: "an agent that was told to ask goes on without",
    complaint: "did not ask",
    seed: 20_261_122,
    domain: () =>
      agentsAfter((state, event) => {
        if (event.type === "payment_decided" && state.caps !== undefined) state.caps.exempt = true;
      }),
  },
  {
    fault: "tombstones are not looked at, and who comes back is taken for asking",
    complaint: "used under the cap of",
    seed: 20_261_130,
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
    complaint: "the budget's answer to",
    seed: 20_261_121,
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
    complaint: "the budget's answer to",
    seed: 20_261_121,
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
    complaint: "a cap of",
    seed: 20_261_123,
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
    complaint: "was paid before the caps were asked again",
    seed: 20_261_124,
    domain: () =>
      agentsBefore((state, command) => {
        const open = command.kind === "confirm" ? state.open[command.transactionId] : undefined;
        if (open?.payment.ask === "recheck") open.payment = { ...open.payment, ask: null };
        return command;
      }),
  },
  {
    fault: "what a cap refused still counts",
    complaint: "the usage of",
    seed: 20_261_123,
    domain: () =>
      agentsAfter((state, event, now) => {
        const isRefused =
          event.type === "payment_changed" && event.payment.denial?.code.endsWith("CAP_EXCEEDED") === true;
        if (isRefused && event.payment.status === "denied") countPayment(state.usage, now);
      }),
  },
  {
    fault: "an outcome that comes before the caps' word is dropped",
    complaint: "spent by",
    seed: 20_261_125,
    domain: () =>
      agentsBefore((state, command) => {
        if (command.kind !== "confirm" || command.caps !== undefined) return command;
        const isAsking = (state.open[command.transactionId]?.payment.ask ?? null) !== null;
        return isAsking ? { ...command, outcome: null } : command;
      }),
  },
  {
    fault: "a team's budget reaches no agent that has to ask",
    complaint: "the version of the policy of",
    seed: 20_261_122,
    domain: () =>
      agentsBefore((_state, command) =>
        command.kind === "heed_budget" && command.asks ? { ...command, budgetCents: null } : command,
      ),
  },
];
