import type DataLoader from "dataloader";
import type { AgentDocument, ProjectDocument, TeamDocument } from "../../activities/documents.ts";
import type { AgentGateway, BudgetPlace } from "../../activities/ports.ts";
import type { BudgetCommand } from "../../src/domain/budget/commands.ts";
import { type CapSetting, NO_CAP, type Used } from "../../src/domain/budget/state.ts";
import { remainingCents } from "../../src/domain/budget/caps.ts";
import { type Refusal, refusal } from "../../src/domain/errors.ts";
import { ok, refused, type Result } from "../../src/domain/result.ts";
import type { CapsView } from "../../src/messages/budget.ts";
import type { Budgets } from "../actors/budgets.ts";
import type { AgentMailboxes } from "../actors/mailbox.ts";
import type { TemporalActors } from "../actors/temporal.ts";
import type { Collections } from "../collections.ts";
import { AGENTS_UNDER_CAPS_MAX, type Containers } from "../containers/containers.ts";
import { caughtUp } from "../handlers/catch-up.ts";
import { togetherOneByOne } from "../together.ts";
import { CarryingThrough } from "./carrying-through.ts";
import { type Children, childrenProblem } from "./children.ts";

export interface ContainerBudgetsDependencies {
  readonly actors: Pick<TemporalActors, "caps" | "startBudget">;
  readonly agents: AgentGateway;
  readonly budgets: Pick<Budgets, "submit">;
  readonly mailboxes: AgentMailboxes;
  readonly collections: Pick<Collections, "agents" | "projects" | "teams">;
  readonly containers: Pick<Containers, "agentsEver">;
}

export interface Usage extends Used {
  readonly remainingCents: number | null;
}

interface ContainerBudget {
  readonly capCents: number | null;
  readonly version: number;
  readonly usage: Usage;
}
export interface ProjectBudget extends ContainerBudget {
  readonly teams: { readonly teamId: string; readonly capCents: number | null }[];
}
export interface TeamBudget extends ContainerBudget {
  readonly agents: { readonly agentId: string; readonly budgetCents: number }[];
}

type Container = { readonly projectId: string } | { readonly teamId: string };
type NewProjectBudget = Omit<ProjectBudget, "usage">;
type NewTeamBudget = Omit<TeamBudget, "usage">;

/**
 * Budgets of projects and teams. The project's budget actor decides a replacement, whole or not at
 * all; what follows from it is done here at once, and by that actor surely. A replacement is answered, and shown, when all of
 * that is so.
 */
export class ContainerBudgets {
  readonly #dependencies: ContainerBudgetsDependencies;
  /** Asked once for all that ask at the same moment. */
  readonly #caps: DataLoader<string, CapsView | null>;

  readonly #through: CarryingThrough;

  constructor(dependencies: ContainerBudgetsDependencies) {
    this.#dependencies = dependencies;
    const { actors } = dependencies;
    this.#caps = togetherOneByOne((projectId) => actors.caps(projectId));
    this.#through = new CarryingThrough(dependencies);
  }

  /** A project's budget once all of it is in force: what is left of what was decided is carried through first. */
  async ofProject(project: ProjectDocument): Promise<ProjectBudget> {
    const caps = await this.#caps.load(project._id);
    const place = { organizationId: project.organizationId, projectId: project._id };
    if (caps !== null) await this.#through.finish(place, caps.unfinished);
    return this.#projectUnder(caps, project);
  }

  /** The same for a team. */
  async ofTeam(team: TeamDocument): Promise<TeamBudget> {
    const { _id: teamId, organizationId, projectId } = team;
    const caps = await this.#caps.load(projectId);
    if (caps !== null && isUnfinished(caps)) {
      const ids = await this.#agentsIn({ teamId });
      await this.#through.finish({ organizationId, projectId }, caps.unfinished, (id) => ids.has(id));
    }
    return this.#teamUnder(caps, team);
  }

  /** As it was decided, for who compares: whether it is in force yet keeps nobody from replacing it. */
  async projectAsDecided(project: ProjectDocument): Promise<ProjectBudget> {
    return this.#projectUnder(await this.#caps.load(project._id), project);
  }

  async teamAsDecided(team: TeamDocument): Promise<TeamBudget> {
    return this.#teamUnder(await this.#caps.load(team.projectId), team);
  }

  /** Tells an agent the budget that its team's replacement gave it, where that is on its way: what is set by hand next is set last. */
  async tellAgent({ _id, organizationId, projectId }: AgentDocument): Promise<void> {
    const caps = await this.#caps.load(projectId);
    if (caps?.budgets[_id] === undefined) return;
    const { deliveries, epoch } = caps.unfinished;
    const toldNow = { deliveries, epoch, enrols: null };
    await this.#through.finish({ organizationId, projectId }, toldNow, (agentId) => agentId === _id);
  }

  async #projectUnder(caps: CapsView | null, { _id }: ProjectDocument): Promise<ProjectBudget> {
    const [teams, used] = await Promise.all([this.#liveTeams(_id), this.#used({ projectId: _id })]);
    return {
      ...budgetOf(caps?.project ?? NO_CAP, used),
      teams: teams.map((teamId) => ({ teamId, capCents: teamCap(caps, teamId).capCents })),
    };
  }

  /** The records are read after the caps: a budget that is under way no more is in the record. */
  async #teamUnder(caps: CapsView | null, { _id }: TeamDocument): Promise<TeamBudget> {
    const [agents, used] = await Promise.all([this.#liveAgents(_id), this.#used({ teamId: _id })]);
    return {
      ...budgetOf(teamCap(caps, _id), used),
      agents: agents.map(({ _id: agentId, policy }) => ({
        agentId,
        budgetCents: caps?.budgets[agentId] ?? policy.budgetCents,
      })),
    };
  }

  async replaceProject(
    project: ProjectDocument,
    { capCents, teams, version }: NewProjectBudget,
  ): Promise<Result<ProjectBudget>> {
    if (project.archivedAt !== null) return refused(refusal("CONTAINER_ARCHIVED"));
    const live = await this.#liveTeams(project._id);
    const children = { live, named: teams.map(({ teamId }) => teamId) };
    const place = { organizationId: project.organizationId, projectId: project._id };
    const complete = childrenProblem(children) === null;
    const replaced = await this.#replace(place, children, {
      kind: "replace_project",
      version,
      capCents,
      // What is refused anyway is not sent along: it may be long.
      teams: complete ? teams : [],
      complete,
    });
    return replaced.ok ? ok(await this.ofProject(project)) : replaced;
  }

  async replaceTeam(
    team: TeamDocument,
    { agents, capCents, version }: NewTeamBudget,
  ): Promise<Result<TeamBudget>> {
    if (team.archivedAt !== null) return refused(refusal("CONTAINER_ARCHIVED"));
    const { _id: teamId, organizationId, projectId } = team;
    // In this order: a budget that is under way no more is in the record.
    const caps = await this.#caps.load(projectId);
    // Whose version is still to come would be compared with records from before it.
    if (teamCap(caps, teamId).version !== version) return refused(refusal("STALE_BUDGET"));
    const live = await this.#liveAgents(teamId);
    const children = { live: live.map(({ _id }) => _id), named: agents.map(({ agentId }) => agentId) };
    const recorded = new Map(live.map(({ _id, policy }) => [_id, policy.budgetCents]));
    // What is under way is told anew, else it would overtake this one; the rest only where it changes.
    const isUnderWay = (agentId: string): boolean => caps?.budgets[agentId] !== undefined;
    const budgets = agents.filter(
      ({ agentId, budgetCents }) => isUnderWay(agentId) || recorded.get(agentId) !== budgetCents,
    );
    const complete = childrenProblem(children) === null;
    const place = { organizationId, projectId };
    const replaced = await this.#replace(place, children, {
      kind: "replace_team",
      teamId,
      version,
      capCents,
      budgets: complete ? budgets : [],
      complete,
    });
    return replaced.ok ? ok(await this.ofTeam(team)) : replaced;
  }

  /** Decides, and carries through. */
  async #replace(
    place: BudgetPlace,
    children: Children,
    command: Extract<BudgetCommand, { kind: "replace_project" | "replace_team" }>,
  ): Promise<Result<null>> {
    const { budgets } = this.#dependencies;
    const full = await this.#noteCaps(place);
    if (full !== null) return refused(full);
    const reply = await budgets.submit(place, command);
    if (reply.kind === "stale") return refused(refusal("STALE_BUDGET"));
    if (reply.kind === "incomplete") {
      const problem = childrenProblem(children);
      if (problem === null) throw new Error("a budget missed a child that was named");
      return refused(problem);
    }
    if (reply.kind !== "replaced") throw new Error(`a budget answered ${reply.kind} to a replacement`);
    await this.#through.finish(place, reply);
    return ok(null);
  }

  /** From now on an actor that is gone is missed, instead of begun anew without caps. It runs by then, or nobody could begin it. */
  async #noteCaps(place: BudgetPlace): Promise<Refusal | null> {
    const { actors, collections, containers } = this.#dependencies;
    const { projectId } = place;
    const unnoted = { _id: projectId, hadCaps: { $exists: false } };
    if ((await collections.projects.findOne(unnoted, { projection: { _id: 1 } })) === null) return null;
    if ((await containers.agentsEver(projectId)) > AGENTS_UNDER_CAPS_MAX) return refusal("PROJECT_FULL");
    await actors.startBudget(place);
    await collections.projects.updateOne(unnoted, { $set: { hadCaps: true } });
    return null;
  }

  async #liveTeams(projectId: string): Promise<string[]> {
    const { teams } = this.#dependencies.collections;
    const found = await teams
      .find({ projectId, archivedAt: null }, { projection: { _id: 1 } })
      .sort({ createdAt: -1, _id: -1 })
      .toArray();
    return found.map(({ _id }) => _id);
  }

  #liveAgents(teamId: string): Promise<Pick<AgentDocument, "_id" | "policy">[]> {
    const { agents } = this.#dependencies.collections;
    return agents
      .find({ teamId, lifecycle: { $ne: "archived" } }, { projection: { policy: 1 } })
      .sort({ createdAt: -1, _id: -1 })
      .toArray();
  }

  /** Archived ones too. */
  async #agentsIn(within: Container): Promise<ReadonlySet<string>> {
    const { agents } = this.#dependencies.collections;
    const found = await agents.find(within, { projection: { _id: 1 } }).toArray();
    return new Set(found.map(({ _id }) => _id));
  }

  /** What all agents have used, archived ones too; what this process has just done is in it. */
  async #used(within: Container): Promise<Used> {
    const { collections, mailboxes } = this.#dependencies;
    const behind = [...(await this.#agentsIn(within))].filter((id) => mailboxes.isBehind(id));
    await caughtUp(Promise.all(behind.map((id) => mailboxes.flush(id))));
    const [used] = await collections.agents
      .aggregate<Used>([
        { $match: within },
        {
          $group: {
            _id: null,
            spentCents: { $sum: "$spentCents" },
            reservedCents: { $sum: "$reservedCents" },
          },
        },
      ])
      .toArray();
    return { spentCents: used?.spentCents ?? 0, reservedCents: used?.reservedCents ?? 0 };
  }
}

const isUnfinished = ({ unfinished: { deliveries, enrols } }: CapsView): boolean =>
  enrols !== null || deliveries.length > 0;

const teamCap = (caps: CapsView | null, teamId: string): CapSetting => caps?.teams[teamId] ?? NO_CAP;

const budgetOf = (cap: CapSetting, used: Used): ContainerBudget => ({
  ...cap,
  usage: { ...used, remainingCents: remainingCents(cap, used) },
});
