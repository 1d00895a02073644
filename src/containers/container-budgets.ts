import type DataLoader from "dataloader";
import type { ProjectDocument, TeamDocument } from "../store/documents.ts";
import type { Projections } from "../payments/ports.ts";
import type { CommandOf, RecordedCap } from "../domain/ledger/commands.ts";
import { remainingCents } from "../domain/ledger/caps.ts";
import type { Calendar } from "../domain/ledger/calendar.ts";
import type { Increase } from "../domain/ledger/increases.ts";
import { type ShownSpendLimit, type SpendLimit, withUse } from "../domain/ledger/windows.ts";
import { zoneAround } from "../actors/calendar-zone.ts";
import { type CalendarView, settingsIn } from "./calendar-view.ts";
import { NO_CAP, NO_TOTALS } from "../domain/ledger/state.ts";
import { mcOf, usedCents } from "../domain/money.ts";
import { refusal } from "../domain/errors.ts";
import { ok, refused, type Result } from "../domain/result.ts";
import type { BudgetView, CapsView, ProjectRef, TeamBudgetView } from "../messages/ledger.ts";
import type { Ledgers } from "../actors/ledgers.ts";
import type { TemporalActors } from "../actors/temporal.ts";
import type { Collections } from "../store/collections.ts";
import { awaitFlush } from "../actors/catch-up.ts";
import { newUuid } from "../lib/ids.ts";
import { concurrentLoader } from "../lib/batch-loader.ts";
import { childrenProblem } from "./children.ts";

export interface ContainerBudgetsDependencies {
  readonly actors: Pick<TemporalActors, "caps" | "teamBudget">;
  readonly ledgers: Ledgers;
  readonly writeCaps: Projections["writeCaps"];
  readonly collections: Pick<Collections, "agents" | "projects" | "teams">;
}

export interface Usage {
  readonly spentCents: number;
  readonly reservedCents: number;
  readonly remainingCents: number | null;
}

export interface ContainerUsage extends Usage {
  readonly increases: readonly Increase[];
}

interface ContainerBudget {
  readonly capCents: number | null;
  readonly spendLimits: readonly ShownSpendLimit[];
  readonly version: number;
  readonly usage: ContainerUsage;
}
export interface ProjectBudget extends ContainerBudget {
  readonly teams: { readonly teamId: string; readonly capCents: number | null }[];
}
export interface TeamBudget extends ContainerBudget {
  readonly agents: { readonly agentId: string; readonly budgetCents: number }[];
}

/** A budget in a request. Without `spendLimits`, the present ones stay. */
type Sent<B extends ContainerBudget> = Omit<B, "spendLimits" | "usage"> & {
  readonly spendLimits?: readonly SpendLimit[] | undefined;
};
type NewProjectBudget = Sent<ProjectBudget>;
type NewTeamBudget = Sent<TeamBudget>;

/**
 * Budgets of projects and teams. The project's ledger decides on a replacement as a whole, which is then in force. The
 * response is sent once the records show it too.
 */
export class ContainerBudgets {
  readonly #dependencies: ContainerBudgetsDependencies;
  /** Shares one query among concurrent calls. */
  readonly #caps: DataLoader<string, CapsView>;

  constructor(dependencies: ContainerBudgetsDependencies) {
    this.#dependencies = dependencies;
    const { actors } = dependencies;
    this.#caps = concurrentLoader((projectId) => actors.caps(projectId));
  }

  /** Returns a project's budget, including this process's latest payments. */
  async ofProject({ _id }: Pick<ProjectDocument, "_id">): Promise<ProjectBudget> {
    await awaitFlush(this.#dependencies.ledgers.flushProject(_id));
    const [caps, teams] = await Promise.all([this.#caps.load(_id), this.#liveTeams(_id)]);
    return {
      ...budgetOf(caps.project),
      teams: teams.map((teamId) => ({ teamId, capCents: levelOf(caps, teamId).cap.capCents })),
    };
  }

  async ofTeam({ _id, projectId }: Pick<TeamDocument, "_id" | "projectId">): Promise<TeamBudget> {
    const { actors, ledgers } = this.#dependencies;
    await awaitFlush(ledgers.flushProject(projectId));
    const [team, agents] = await Promise.all([actors.teamBudget(projectId, _id), this.#liveAgents(_id)]);
    return { ...budgetOf(team), agents: agents.map((agent) => budgetIn(team, agent)) };
  }

  /** Returns the budgets of a project and of one of its teams, with their usage. */
  async levels(projectId: string, teamId: string): Promise<Record<"project" | "team", ContainerBudget>> {
    const caps = await this.#caps.load(projectId);
    return { project: budgetOf(caps.project), team: budgetOf(levelOf(caps, teamId)) };
  }

  async replaceProject(
    project: ProjectDocument,
    { capCents, spendLimits, teams, version }: NewProjectBudget,
  ): Promise<Result<ProjectBudget>> {
    if (project.archivedAt !== null) return refused(refusal("CONTAINER_ARCHIVED"));
    const known = await this.#caps.load(project._id);
    // A stale version is reported before a defect of the children.
    if (known.project.cap.version !== version) return refused(refusal("STALE_BUDGET"));
    const live = await this.#liveTeams(project._id);
    const problem = childrenProblem({ live, named: teams.map(({ teamId }) => teamId) });
    if (problem !== null) return refused(problem);
    const command = {
      kind: "replace_project",
      version,
      capCents,
      ...(spendLimits === undefined ? {} : { spendLimits }),
      teams,
      requestId: newUuid(),
    } as const;
    const replaced = await this.#replace(project.organizationId, project._id, command);
    if (!replaced.ok) return replaced;
    const decided = new Map(teams.map((team) => [team.teamId, team.capCents]));
    const { teams: after, ...shown } = await this.ofProject(project);
    const children = after.map((team) => {
      const cents = decided.get(team.teamId);
      return cents === undefined ? team : { ...team, capCents: cents };
    });
    return ok({ ...asDecided({ capCents, spendLimits, version }, shown), teams: children });
  }

  async replaceTeam(
    team: TeamDocument,
    { agents, capCents, spendLimits, version }: NewTeamBudget,
  ): Promise<Result<TeamBudget>> {
    if (team.archivedAt !== null) return refused(refusal("CONTAINER_ARCHIVED"));
    const { _id: teamId, organizationId, projectId } = team;
    const known = await this.#caps.load(projectId);
    if (levelOf(known, teamId).cap.version !== version) return refused(refusal("STALE_BUDGET"));
    const live = await this.#liveAgents(teamId);
    const named = agents.map(({ agentId }) => agentId);
    const problem = childrenProblem({ live: live.map(({ _id }) => _id), named });
    if (problem !== null) return refused(problem);
    const requestId = newUuid();
    const command = {
      kind: "replace_team",
      teamId,
      version,
      capCents,
      ...(spendLimits === undefined ? {} : { spendLimits }),
      agents,
      requestId,
    } as const;
    const replaced = await this.#replace(organizationId, projectId, command);
    if (!replaced.ok) return replaced;
    const decided = new Map(agents.map((agent) => [agent.agentId, agent.budgetCents]));
    const { agents: after, ...shown } = await this.ofTeam(team);
    const children = after.map(({ agentId, budgetCents }) => ({
      agentId,
      budgetCents: decided.get(agentId) ?? budgetCents,
    }));
    return ok({ ...asDecided({ capCents, spendLimits, version }, shown), agents: children });
  }

  async calendar({ _id }: Pick<ProjectDocument, "_id">): Promise<Calendar> {
    return (await this.#caps.load(_id)).calendar;
  }

  /** Replaces a project's calendar; its ledger decides the moment of the change. */
  async replaceCalendar(
    { _id: projectId, archivedAt, organizationId }: ProjectDocument,
    sent: CalendarView,
  ): Promise<Result<{ readonly before: Calendar; readonly calendar: Calendar }>> {
    if (archivedAt !== null) return refused(refusal("CONTAINER_ARCHIVED"));
    const { ledgers } = this.#dependencies;
    const command = {
      kind: "replace_calendar",
      requestId: newUuid(),
      version: sent.version,
      ...settingsIn(sent),
      ...zoneAround(sent.timezone, new Date()),
    } as const;
    const project = { organizationId, projectId };
    const reply = await ledgers.submit(project, command);
    if (reply.kind === "version_conflict") return refused(refusal("STALE_CALENDAR"));
    if (reply.kind !== "calendar") throw new Error(`a ledger answered ${reply.kind} to a calendar`);
    await this.record(project, reply.caps);
    return ok(reply);
  }

  async #replace(
    organizationId: string,
    projectId: string,
    command: CommandOf<"replace_project" | "replace_team">,
  ): Promise<Result<null>> {
    const { ledgers } = this.#dependencies;
    const project = { organizationId, projectId };
    const reply = await ledgers.submit(project, command);
    if (reply.kind === "version_conflict") return refused(refusal("STALE_BUDGET"));
    if (reply.kind !== "replaced") throw new Error(`a ledger answered ${reply.kind} to a replacement`);
    await this.record(project, reply.caps);
    return ok(null);
  }

  /** Writes decided caps to the records and confirms them to the ledger. */
  async record(project: ProjectRef, decided: readonly RecordedCap[]): Promise<void> {
    const { ledgers, writeCaps } = this.#dependencies;
    const { projectId } = project;
    await Promise.all([writeCaps(projectId, decided), ledgers.flushProject(projectId)]);
    const caps = decided.map(({ cap, teamId }) => ({ teamId, version: cap.version }));
    await ledgers.submit(project, { kind: "confirm_caps", caps });
  }

  async #liveTeams(projectId: string): Promise<string[]> {
    const { teams } = this.#dependencies.collections;
    const found = await teams
      .find({ projectId, archivedAt: null }, { projection: { _id: 1 } })
      .sort({ createdAt: -1, _id: -1 })
      .toArray();
    return found.map(({ _id }) => _id);
  }

  #liveAgents(teamId: string): Promise<LiveAgent[]> {
    const { agents } = this.#dependencies.collections;
    return agents
      .find({ teamId, lifecycle: { $ne: "archived" } }, { projection: { "policy.budgetCents": 1 } })
      .sort({ createdAt: -1, _id: -1 })
      .toArray();
  }
}

/** Returns a budget as this replacement made it: a later version would seem the caller's own. */
const asDecided = (
  { capCents, spendLimits, version }: Pick<NewProjectBudget, "capCents" | "spendLimits" | "version">,
  shown: ContainerBudget,
): ContainerBudget => {
  const { usage } = shown;
  const totals = { spentMc: mcOf(usage.spentCents), reservedMc: mcOf(usage.reservedCents) };
  const decided = budgetOf({ cap: { capCents, version: version + 1 }, totals, spendLimits: [] });
  return {
    ...decided,
    spendLimits: spendLimits === undefined ? shown.spendLimits : withUse(spendLimits, shown.spendLimits),
    usage: { ...decided.usage, increases: usage.increases },
  };
};

interface LiveAgent {
  readonly _id: string;
  readonly policy: { readonly budgetCents: number };
}

/** Returns an agent's budget, preferably from the ledger; an account that was just closed has none there. */
const budgetIn = ({ agents }: TeamBudgetView, { _id, policy }: LiveAgent) => ({
  agentId: _id,
  budgetCents: agents[_id] ?? policy.budgetCents,
});

const NO_LEVEL: BudgetView = { cap: NO_CAP, totals: NO_TOTALS, spendLimits: [] };

const levelOf = ({ teams }: CapsView, teamId: string): BudgetView => teams[teamId] ?? NO_LEVEL;

const budgetOf = ({ cap, spendLimits, totals }: BudgetView): ContainerBudget => ({
  capCents: cap.capCents,
  spendLimits,
  version: cap.version,
  usage: {
    spentCents: usedCents(totals.spentMc),
    reservedCents: usedCents(totals.reservedMc),
    remainingCents: remainingCents(cap, totals),
    increases: cap.increases ?? [],
  },
});
