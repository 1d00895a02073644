import type { WorkflowHandle } from "@temporalio/client";
import type { BudgetCommand, BudgetReply } from "../../../src/domain/budget/commands.ts";
import {
  BUDGET_SETTINGS,
  BUDGET_STATE_QUERY,
  BUDGET_WORKFLOW,
  type BudgetInput,
  type BudgetSettings,
  type BudgetStateView,
  budgetWorkflowId,
} from "../../../src/messages/budget.ts";
import { budgetSearchAttributes } from "../../../src/messages/search-attributes.ts";
import { human, type StagedAgent } from "./agent.ts";
import { projectIdOf, type Stage } from "./stage.ts";

type Of<K extends BudgetReply["kind"]> = Extract<BudgetReply, { kind: K }>;

/** The budget of a scene's project, and what a server does with it. */
export class StagedBudget {
  readonly #stage: Stage;
  readonly place: { readonly organizationId: string; readonly projectId: string };
  readonly handle: WorkflowHandle;

  private constructor(stage: Stage) {
    this.#stage = stage;
    this.place = { organizationId: human.userId, projectId: projectIdOf(stage.scene) };
    this.handle = stage.client.workflow.getHandle(budgetWorkflowId(this.place.projectId));
  }

  static async start(stage: Stage, settings: Partial<BudgetSettings> = {}): Promise<StagedBudget> {
    const budget = new StagedBudget(stage);
    const { handle, place } = budget;
    const input: BudgetInput = {
      start: { kind: "create", ...place },
      settings: { ...BUDGET_SETTINGS, ...settings },
    };
    await stage.client.workflow.start(BUDGET_WORKFLOW, {
      taskQueue: stage.taskQueue,
      workflowId: handle.workflowId,
      args: [input],
      typedSearchAttributes: budgetSearchAttributes(place.organizationId, place.projectId),
    });
    return budget;
  }

  async ask<K extends BudgetReply["kind"]>(kind: K, command: BudgetCommand): Promise<Of<K>> {
    const [reply] = await this.#stage.actors.submitToBudget(this.place, [command]);
    if (reply === undefined || !isOf(kind, reply)) throw new Error(`got ${JSON.stringify(reply)}`);
    return reply;
  }

  /** Decides a cap over the whole project, and nothing more: whoever was to carry it through is gone. */
  capProject(version: number, capCents: number | null): Promise<Of<"replaced">> {
    return this.ask("replaced", { kind: "replace_project", version, capCents, teams: [], complete: true });
  }

  /** The same for a team, with budgets of its agents. */
  replaceTeam(
    teamId: string,
    version: number,
    capCents: number | null,
    budgets: readonly { readonly agentId: string; readonly budgetCents: number }[] = [],
  ): Promise<Of<"replaced">> {
    return this.ask("replaced", { kind: "replace_team", teamId, version, capCents, budgets, complete: true });
  }

  state(): Promise<BudgetStateView> {
    return this.handle.query<BudgetStateView>(BUDGET_STATE_QUERY);
  }

  /** What is used of the project's cap, and how many agents are known under it. */
  async used(): Promise<{ spent: number; reserved: number; members: number }> {
    const { memberCount, used } = await this.state();
    return { spent: used.project.spentCents, reserved: used.project.reservedCents, members: memberCount };
  }

  /** Tells an agent what it is to be told, as a server does. */
  async tell(agent: StagedAgent, replaced: Of<"replaced" | "enrolled">): Promise<void> {
    const { agentId } = agent.profile;
    const delivery = replaced.deliveries.find((one) => one.agentId === agentId);
    if (delivery === undefined) throw new Error("the agent is told nothing");
    const { agentId: _agentId, ...told } = delivery;
    const { report } = await agent.ask("report", { kind: "heed_budget", ...told });
    const { asks, epoch } = delivery;
    await this.ask("confirmed", { kind: "delivered", agentId, epoch, asks, report });
  }

  /** Names agents as under a cap, as a server does that has looked them up. */
  enrol(epoch: number, agents: readonly StagedAgent[]): Promise<Of<"enrolled">> {
    const named = agents.map(({ profile: { agentId, teamId } }) => ({ agentId, teamId }));
    return this.ask("enrolled", { kind: "enrol", epoch, agents: named, last: true });
  }
}

const isOf = <K extends BudgetReply["kind"]>(kind: K, reply: BudgetReply): reply is Of<K> =>
  reply.kind === kind;
