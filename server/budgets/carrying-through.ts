import { agentsUnder, heeded } from "../../activities/budgets.ts";
import type { AgentGateway, BudgetPlace } from "../../activities/ports.ts";
import type { Addressed, Unfinished } from "../../src/domain/budget/commands.ts";
import type { Budgets } from "../actors/budgets.ts";
import type { Collections } from "../collections.ts";
import { Joined } from "../joined.ts";

/** Agents that are told at the same moment. */
const TOLD_AT_ONCE_MAX = 16;

/** Agents that are named to a budget in one update. */
const ENROLLED_AT_ONCE_MAX = 2_000;

export interface CarryingThroughDependencies {
  readonly agents: AgentGateway;
  readonly budgets: Pick<Budgets, "submit">;
  readonly collections: Pick<Collections, "agents">;
}

/**
 * Does what follows from a budget's replacement: agents that a new cap is over are told to ask and report what they have
 * used, and agents get their budgets. Every step may be repeated, so whoever waits for it does it: who replaces, who reads
 * what was replaced, and the budget's actor itself. In this process those who wait at the same time share it.
 */
export class CarryingThrough {
  readonly #dependencies: CarryingThroughDependencies;
  readonly #enrolling = new Joined<readonly Addressed[]>();
  readonly #telling = new Joined<void>();

  constructor(dependencies: CarryingThroughDependencies) {
    this.#dependencies = dependencies;
  }

  /** Done when all of it is in force; of the deliveries, those that are wanted. */
  async finish(
    place: BudgetPlace,
    { deliveries, enrols, epoch }: Unfinished,
    isWanted: (agentId: string) => boolean = () => true,
  ): Promise<void> {
    const all =
      enrols === null
        ? deliveries
        : await this.#enrolling.do(`${place.projectId} ${epoch}`, () => this.#enrol(place, epoch, enrols));
    await this.#tell(
      place,
      all.filter(({ agentId }) => isWanted(agentId)),
    );
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
    const waiting = [...deliveries];
    const tellNext = async (): Promise<void> => {
      for (let next = waiting.pop(); next !== undefined; next = waiting.pop()) {
        const delivery = next;
        const { agentId, asks, epoch } = delivery;
        await this.#telling.do(`${agentId} ${epoch} ${asks}`, () => this.#tellOne(place, delivery));
      }
    };
    await Promise.all(Array.from({ length: TOLD_AT_ONCE_MAX }, tellNext));
  }

  async #tellOne(place: BudgetPlace, delivery: Addressed): Promise<void> {
    const { agents, budgets } = this.#dependencies;
    const { agentId, asks, epoch } = delivery;
    const report = await heeded(agents, delivery);
    await budgets.submit(place, { kind: "delivered", agentId, epoch, asks, report });
  }
}
