import type DataLoader from "dataloader";
import { agentsUnder } from "../../activities/budgets.ts";
import type { AgentDocument, ProjectDocument, TeamDocument } from "../../activities/documents.ts";
import type { BudgetPlace } from "../../activities/ports.ts";
import type { Addressed, BudgetCommand } from "../../src/domain/budget/commands.ts";
import { type CapSetting, NO_CAP, type Used } from "../../src/domain/budget/state.ts";
import { remainingCents } from "../../src/domain/budget/caps.ts";
import { refusal } from "../../src/domain/errors.ts";
import { ok, refused, type Result } from "../../src/domain/result.ts";
import type { CapsView } from "../../src/messages/budget.ts";
import type { Budgets } from "../actors/budgets.ts";
import type { AgentMailboxes } from "../actors/mailbox.ts";
import type { TemporalActors } from "../actors/temporal.ts";
import type { Collections } from "../collections.ts";
import { caughtUp } from "../handlers/catch-up.ts";
import { together } from "../together.ts";
import { agentsFollowing } from "../handlers/agent-records.ts";
import { type Children, childrenProblem } from "./children.ts";

/** Agents that are told at the same moment. */
const TOLD_AT_ONCE_MAX = 16;

/** Agents that are named to a budget in one update. */
const ENROLLED_AT_ONCE_MAX = 2_000;

export interface ContainerBudgetsDependencies {
  readonly actors: TemporalActors;
  readonly budgets: Pick<Budgets, "submit">;
  readonly mailboxes: AgentMailboxes;
  readonly collections: Pick<Collections, "agents" | "teams">;
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

type NewProjectBudget = Omit<ProjectBudget, "usage">;
type NewTeamBudget = Omit<TeamBudget, "usage">;

/**
 * Budgets of projects and teams (decisions.md section 4). The project's budget actor decides a replacement, whole or not at
 * all; what follows from it is done here at once, and by that actor surely: agents that a new cap is over are told to
 * ask and report what they have used, and agents get their budgets. A replacement is answered when all of that is so.
 */
export class ContainerBudgets {
  readonly #dependencies: ContainerBudgetsDependencies;
  /** Asked once for all that ask at the same moment. */
  readonly #caps: DataLoader<string, CapsView | null>;

  constructor(dependencies: ContainerBudgetsDependencies) {
    this.#dependencies = dependencies;
    const { actors } = dependencies;
    this.#caps = together((projectIds) => oneEach(projectIds, (projectId) => actors.caps(projectId)));
  }

  async ofProject({ _id }: ProjectDocument): Promise<ProjectBudget> {
    const [caps, teams, used] = await Promise.all([
      this.#caps.load(_id),
      this.#liveTeams(_id),
      this.#used({ projectId: _id }),
    ]);
    const own = caps?.project ?? NO_CAP;
    return {
      ...budgetOf(own, used),
      teams: teams.map((teamId) => ({ teamId, capCents: teamCap(caps, teamId).capCents })),
    };
  }

  async ofTeam({ _id, projectId }: TeamDocument): Promise<TeamBudget> {
    const used = await this.#used({ teamId: _id });
    // In this order: a budget that is under way no more is in the record.
    const caps = await this.#caps.load(projectId);
    const agents = await this.#liveAgents(_id);
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
      teams,
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
      budgets,
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
    const reply = await budgets.submit(place, command);
    if (reply.kind === "stale") return refused(refusal("STALE_BUDGET"));
    if (reply.kind === "incomplete") {
      const problem = childrenProblem(children);
      if (problem === null) throw new Error("a budget missed a child that was named");
      return refused(problem);
    }
    if (reply.kind !== "replaced") throw new Error(`a budget answered ${reply.kind} to a replacement`);
    const { deliveries, enrols, epoch } = reply;
    await this.#tell(place, enrols === null ? deliveries : await this.#enrol(place, epoch, enrols));
    return ok(null);
  }

  /** Looked up after the replacement was decided: whoever was let pay without asking before has a record by now. */
  async #enrol(
    place: BudgetPlace,
    epoch: number,
    teams: "all" | readonly string[],
  ): Promise<readonly Addressed[]> {
    const { budgets, collections } = this.#dependencies;
    const agents = await agentsUnder(collections.agents, place.projectId, teams);
    for (let from = 0; ; from += ENROLLED_AT_ONCE_MAX) {
      const some = agents.slice(from, from + ENROLLED_AT_ONCE_MAX);
      const last = from + ENROLLED_AT_ONCE_MAX >= agents.length;
      const reply = await budgets.submit(place, { kind: "enrol", epoch, agents: some, last });
      if (reply.kind !== "enrolled") throw new Error(`a budget answered ${reply.kind} to an enrolment`);
      if (last) return reply.deliveries;
    }
  }

  async #tell(place: BudgetPlace, deliveries: readonly Addressed[]): Promise<void> {
    const { budgets, collections, mailboxes } = this.#dependencies;
    const following = agentsFollowing(collections, mailboxes);
    const waiting = [...deliveries];
    const tellNext = async (): Promise<void> => {
      for (let next = waiting.pop(); next !== undefined; next = waiting.pop()) {
        const { agentId, ...delivery } = next;
        const { asks, budgetCents, epoch } = delivery;
        const { reply, revision } = await mailboxes.answered(agentId, { kind: "heed_budget", ...delivery });
        const report = reply.kind === "report" ? reply.report : null;
        // While it is under way the budget is read from the delivery, afterwards from the record.
        if (budgetCents !== null) await following(agentId, revision);
        await budgets.submit(place, { kind: "delivered", agentId, epoch, asks, report });
      }
    };
    await Promise.all(Array.from({ length: TOLD_AT_ONCE_MAX }, tellNext));
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

  /** What all agents have used, archived ones too; what this process has just done is in it. */
  async #used(within: { readonly projectId: string } | { readonly teamId: string }): Promise<Used> {
    const { collections, mailboxes } = this.#dependencies;
    const ids = await collections.agents.find(within, { projection: { _id: 1 } }).toArray();
    const behind = ids.filter(({ _id }) => mailboxes.isBehind(_id));
    await caughtUp(Promise.all(behind.map(({ _id }) => mailboxes.flush(_id))));
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

/** One answer for each key, each key asked about once. */
function oneEach<K, V>(keys: readonly K[], answer: (key: K) => Promise<V>): Promise<V[]> {
  const answers = new Map<K, Promise<V>>();
  return Promise.all(
    keys.map((key) => {
      const known = answers.get(key) ?? answer(key);
      answers.set(key, known);
      return known;
    }),
  );
}

const teamCap = (caps: CapsView | null, teamId: string): CapSetting => caps?.teams[teamId] ?? NO_CAP;

const budgetOf = (cap: CapSetting, used: Used): ContainerBudget => ({
  ...cap,
  usage: { ...used, remainingCents: remainingCents(cap, used) },
});
