import type { AgentCommand, AgentReply } from "../../../src/domain/agent/commands.ts";
import { decide, handle } from "../../../src/domain/agent/decide.ts";
import { type AgentEvent, evolve } from "../../../src/domain/agent/evolve.ts";
import type { BudgetPolicy } from "../../../src/domain/agent/policy.ts";
import type { AgentState } from "../../../src/domain/agent/state.ts";
import { handleBudget } from "../../../src/domain/budget/budget.ts";
import type { BudgetCommand, BudgetReply } from "../../../src/domain/budget/commands.ts";
import type { BudgetState } from "../../../src/domain/budget/state.ts";
import { type Domain, realDomain } from "../../../scripts/simulation/domain.ts";

/** Ways to put a fault into the domain that the auditor watches. */

export type Handle = (state: AgentState, command: AgentCommand, now: number) => AgentReply;
export type HandleBudget = (state: BudgetState, command: BudgetCommand, now: number) => BudgetReply;

export const agents = (faulty: Handle): Domain => ({ ...realDomain, handle: faulty });

/** Before a command is handled, something is done to it, or to the state. */
export const agentsBefore = (
  before: (state: AgentState, command: AgentCommand, now: number) => AgentCommand,
): Domain => agents((state, command, now) => handle(state, before(state, command, now), now));

/** What was decided is done, and after each event of it something else. */
function apply(
  state: AgentState,
  { events, reply }: ReturnType<typeof decide>,
  now: number,
  after: (event: AgentEvent) => void = () => undefined,
): AgentReply {
  for (const event of events) {
    evolve(state, event, now);
    after(event);
  }
  return reply;
}

/** And after each event of it. */
export const agentsAfter = (after: (state: AgentState, event: AgentEvent, now: number) => void): Domain =>
  agents((state, command, now) => {
    if (command.kind === "heed_budget" || command.kind === "read_report") return handle(state, command, now);
    return apply(state, decide(state, command, now), now, (event) => after(state, event, now));
  });

/** Commands of these kinds are decided as if the state were another. */
export const agentsDeciding = (
  kinds: readonly AgentCommand["kind"][],
  as: (state: AgentState, command: AgentCommand) => AgentState,
): Domain =>
  agents((state, command, now) =>
    kinds.includes(command.kind)
      ? apply(state, decide(as(state, command), command, now), now)
      : handle(state, command, now),
  );

/** These archives are decided by a clock that is wrong. */
export const agentsArchivingAt = (by: "user" | "organization_key", when: (now: number) => number): Domain =>
  agents((state, command, now) =>
    command.kind === "archive" && command.by.type === by
      ? apply(state, decide(state, command, when(now)), now)
      : handle(state, command, now),
  );

const PAYING = ["pay", "approve"] as const;

/** Payments and approvals are decided under another policy than the agent's own. */
export const agentsUnder = (policyOf: (policy: BudgetPolicy) => Partial<BudgetPolicy>): Domain =>
  agentsDeciding(PAYING, (state) => ({ ...state, policy: { ...state.policy, ...policyOf(state.policy) } }));

/** Actors go on with another state than theirs. */
export const agentsRollingOver = (lose: (state: AgentState) => AgentState): Domain => ({
  ...realDomain,
  rollOverAgent: (state) => lose(realDomain.rollOverAgent(state)),
});

type Access = NonNullable<AgentState["access"]>;
type Bundled = NonNullable<Access["bundled"]>;

export const withAccess = (state: AgentState, change: Partial<Access>): AgentState =>
  state.access === undefined ? state : { ...state, access: { ...state.access, ...change } };

export function withBundled(state: AgentState, change: Partial<Bundled>): AgentState {
  const bundled = state.access?.bundled ?? null;
  return bundled === null ? state : withAccess(state, { bundled: { ...bundled, ...change } });
}

export const asActive = (state: AgentState, from: AgentState["lifecycle"]): AgentState =>
  state.lifecycle === from ? { ...state, lifecycle: "active" } : state;

export const plus = (limit: number | null, more: number): number | null =>
  limit === null ? null : Math.max(0, limit + more);

export const budget = (faulty: HandleBudget): Domain => ({ ...realDomain, handleBudget: faulty });

export const budgetAfter = (after: (state: BudgetState, command: BudgetCommand) => void): Domain =>
  budget((state, command, now) => {
    const reply = handleBudget(state, command, now);
    after(state, command);
    return reply;
  });

const raised = (capCents: number | null, cents: number): number | null =>
  capCents === null ? null : capCents + cents;

/** Reports are answered as if all caps of these levels were higher by so much. */
export function withCapsRaised(
  state: BudgetState,
  raise: { readonly teamCents: number; readonly projectCents: number },
  work: () => BudgetReply,
): BudgetReply {
  const { project, teams } = state;
  state.project = { ...project, capCents: raised(project.capCents, raise.projectCents) };
  state.teams = Object.fromEntries(
    Object.entries(teams).map(([id, team]) => [
      id,
      { ...team, capCents: raised(team.capCents, raise.teamCents) },
    ]),
  );
  const reply = work();
  state.project = project;
  state.teams = teams;
  return reply;
}

/** Commands that are handled between a read and what is written for it. */
const AWAITED_COMMANDS = 6;

/** Answers reports from what was used some commands ago: read, then awaited, then written. */
export function readBeforeAwait(): HandleBudget {
  const read: BudgetState["used"][] = [];
  return (state, command, now) => {
    const real = structuredClone(state.used);
    const stale = read.at(0) ?? real;
    read.push(structuredClone(real));
    if (read.length > AWAITED_COMMANDS) read.shift();
    if (command.kind !== "report") return handleBudget(state, command, now);
    state.used = structuredClone(stale);
    const reply = handleBudget(state, command, now);
    const after = state.used;
    state.used = real;
    addDifference(real.project, stale.project, after.project);
    for (const [teamId, team] of Object.entries(after.teams)) {
      const none = { spentCents: 0, reservedCents: 0 };
      addDifference((real.teams[teamId] ??= { ...none }), stale.teams[teamId] ?? none, team);
    }
    return reply;
  };
}

type Used = BudgetState["used"]["project"];

function addDifference(to: Used, from: Used, until: Used): void {
  to.spentCents += until.spentCents - from.spentCents;
  to.reservedCents += until.reservedCents - from.reservedCents;
}
