import { expect } from "chai";
import { type Answer, onceReachable } from "./api.ts";
import { type Success, successOf } from "./contract-api.ts";
import type { TestAgent, World } from "./world.ts";

export type TeamBudget = Success<"getTeamBudget">;
export type ProjectBudget = Success<"getProjectBudget">;

/** Budgets of an organization's containers as its owner sees and sets them; its default ones unless others are named. */
export class TestBudgets {
  readonly #world: World;

  constructor(world: World) {
    this.#world = world;
  }

  team(id = this.#world.organization.teamId): Promise<TeamBudget> {
    return this.#world.api.ok("getTeamBudget", 200, { token: this.#world.token, id });
  }

  project(id = this.#world.organization.projectId): Promise<ProjectBudget> {
    return this.#world.api.ok("getProjectBudget", 200, { token: this.#world.token, id });
  }

  /** Replaces the whole budget by what is read and changed; read anew where a replacement may have been made and was not told. */
  async setTeam(
    change: Partial<Pick<TeamBudget, "agents" | "capCents">>,
    id = this.#world.organization.teamId,
  ): Promise<TeamBudget> {
    const { api, token } = this.#world;
    return successOf(
      "setTeamBudget",
      await replaced(async () => {
        const { usage: _usage, ...body } = { ...(await this.team(id)), ...change };
        return api.call("setTeamBudget", { token, id, body });
      }),
    );
  }

  async setProject(
    change: Partial<Pick<ProjectBudget, "teams" | "capCents">>,
    id = this.#world.organization.projectId,
  ): Promise<ProjectBudget> {
    const { api, token } = this.#world;
    return successOf(
      "setProjectBudget",
      await replaced(async () => {
        const { usage: _usage, ...body } = { ...(await this.project(id)), ...change };
        return api.call("setProjectBudget", { token, id, body });
      }),
    );
  }

  async newTeam(projectId = this.#world.organization.projectId): Promise<string> {
    const body = { name: "Team", projectId };
    return (await this.#world.api.ok("createTeam", 201, { token: this.#world.token, body })).team.id;
  }

  async newProject(): Promise<string> {
    const body = { name: "Project" };
    return (await this.#world.api.ok("createProject", 201, { token: this.#world.token, body })).project.id;
  }
}

async function replaced(replace: () => Promise<Answer>): Promise<unknown> {
  const { body, status } = await onceReachable(replace);
  expect(status, JSON.stringify(body)).to.equal(200);
  return body;
}

/** Pays; what came of it: the denial's code, or the status. */
export async function outcomeOf(
  agent: TestAgent,
  amountCents: number,
  fields: Readonly<Record<string, unknown>> = {},
): Promise<string> {
  const { transaction } = await agent.pay({ amountCents, ...fields });
  return transaction.denialCode ?? transaction.status;
}
