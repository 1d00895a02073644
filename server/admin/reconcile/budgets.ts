import { budgetReport, owesReport } from "../../../src/domain/agent/caps.ts";
import type { Member, Used } from "../../../src/domain/budget/state.ts";
import type { AgentStateView } from "../../../src/messages/agent.ts";
import type { BudgetBooksView } from "../../../src/messages/budget.ts";
import type { ProjectBooks } from "./books.ts";
import { ADVICE, type Difference } from "./difference.ts";
import { cents } from "./rails.ts";

type Found = Pick<Difference, "kind" | "what" | "expected" | "found" | "mayBeInFlight"> &
  Partial<Pick<Difference, "steady">> & { readonly agentId: string | null };

/**
 * A project's budget with its agents. The agents were asked first. What the budget holds of an agent is one of its reports:
 * of the same revision, it says the same; of an earlier one, its sum does, as long as the agent neither asks for anything nor
 * owes a report, since all that it keeps to itself is that something reserved was spent.
 */
export function compareProject({
  agents,
  budget,
  isBudgetLost,
  projectId,
}: ProjectBooks): readonly Difference[] {
  const lost = isBudgetLost ? [LOST] : [];
  const found = agents.flatMap((agent) => compareMember(agent, budget));
  const sums = budget === null ? [] : compareUsed(budget);
  return [...lost, ...found, ...sums].map(({ agentId, ...rest }) => ({
    ...rest,
    of: agentId === null ? "project" : "agent",
    id: agentId ?? projectId,
    agentId,
    projectId,
    advice: rest.kind === "budget_lost" ? ADVICE.lostBudget : ADVICE.budget,
    repair: null,
  }));
}

const LOST: Found = {
  kind: "budget_lost",
  agentId: null,
  what: "the project's budget",
  expected: "an actor that knows its caps",
  found: "none",
  mayBeInFlight: false,
};

function compareMember(agent: AgentStateView, budget: BudgetBooksView | null): Found[] {
  const { agentId } = agent.profile;
  const member = budget?.members[agentId];
  return member === undefined ? compareOutside(agent, budget) : compareInside(agent, member);
}

/** Whoever the budget does not know has used nothing under a cap. */
function compareOutside(agent: AgentStateView, budget: BudgetBooksView | null): Found[] {
  const { caps, profile, usage } = agent;
  const isAsking = caps !== undefined && !caps.exempt;
  const used = usage.spentCents + usage.reservedCents;
  const teamCap = budget?.teams[profile.teamId]?.capCents ?? null;
  const isCapped = teamCap !== null || (budget?.project.capCents ?? null) !== null;
  // An agent that asks is made known by its next payment, or has never begun one.
  if (!isCapped || (isAsking && used === 0)) return [];
  if (budget?.enrolling === true || budget?.untold.includes(profile.agentId) === true) return [];
  return [
    {
      kind: "agent_not_under_cap",
      agentId: profile.agentId,
      what: isAsking ? "the agent in its project's budget" : "the agent pays without asking, under a cap",
      expected: `known with ${cents(used)}`,
      found: "not known",
      mayBeInFlight: true,
      steady: "not known",
    },
  ];
}

function compareInside(agent: AgentStateView, member: Member): Found[] {
  const { caps, open, profile, usage } = agent;
  const { agentId } = profile;
  const what = "what the project's budget has of the agent";
  const revision = caps?.revision ?? 0;
  const found = `${cents(member.spentCents)} spent, ${cents(member.reservedCents)} reserved`;
  const base = { kind: "budget_differs", agentId, what, found } as const;
  if (member.revision > revision) {
    const expected = `revision ${String(revision)} at the most`;
    return [{ ...base, expected, found: `revision ${String(member.revision)}`, mayBeInFlight: true }];
  }
  const report = budgetReport(agent);
  if (report !== null && member.revision === revision) {
    const granted = report.asks
      .filter((ask) => ask.kind === "reserve" && isGranted(member, ask.transactionId))
      .reduce((sum, { amountCents }) => sum + amountCents, 0);
    const reserved = report.reservedCents + granted;
    if (member.spentCents === report.spentCents && member.reservedCents === reserved) return [];
    const expected = `${cents(report.spentCents)} spent, ${cents(reserved)} reserved`;
    return [{ ...base, expected, mayBeInFlight: false }];
  }
  const isAsking = Object.values(open).some(({ payment }) => (payment.ask ?? null) !== null);
  const used = usage.spentCents + usage.reservedCents;
  if (member.spentCents + member.reservedCents === used) return [];
  const mayBeInFlight = isAsking || owesReport(agent) || caps?.exempt !== false;
  return [{ ...base, expected: `${cents(used)} in sum`, mayBeInFlight }];
}

const isGranted = ({ answers = [] }: Member, transactionId: string): boolean =>
  answers.some(
    (answer) => answer.kind === "reserve" && answer.granted && answer.transactionId === transactionId,
  );

/** What project and teams have used is what their members have. */
function compareUsed({ members, used }: BudgetBooksView): Found[] {
  const sums: { project: Used; teams: Record<string, Used> } = { project: none(), teams: {} };
  for (const { reservedCents, spentCents, teamId } of Object.values(members)) {
    for (const sum of [sums.project, (sums.teams[teamId] ??= none())]) {
      sum.spentCents += spentCents;
      sum.reservedCents += reservedCents;
    }
  }
  const teams = Object.entries(used.teams).map(
    ([teamId, said]) => [`team ${teamId}`, said, sums.teams[teamId] ?? none()] as const,
  );
  return [["the project", used.project, sums.project] as const, ...teams]
    .filter(([, said, sum]) => textOf(said) !== textOf(sum))
    .map(([who, said, sum]) => ({
      kind: "budget_differs",
      agentId: null,
      what: `what ${who} has used, to the sum over its agents`,
      expected: textOf(sum),
      found: textOf(said),
      mayBeInFlight: false,
    }));
}

const none = (): Used => ({ spentCents: 0, reservedCents: 0 });
const textOf = ({ reservedCents, spentCents }: Used): string =>
  `${cents(spentCents)} spent, ${cents(reservedCents)} reserved`;
