import type { LimitDenial } from "../../../src/domain/agent/policy.ts";
import type { AgentBook, Verdict } from "./agent-book.ts";
import { must, mustEqual } from "./violation.ts";

/** One value that a cap was given. */
interface Setting {
  readonly version: number;
  readonly capCents: number | null;
}

/** A project's or a team's cap. Until a replacement is answered as done, what was in force before may be, too. */
class Container {
  version = 1;
  /** Released since the world was last at rest, so that the budget may not know yet. */
  releasedCents = 0;
  #settled: Setting = { version: 1, capCents: null };
  #pending: Setting[] = [];

  get decidedCents(): number | null {
    return (this.#pending.at(-1) ?? this.#settled).capCents;
  }

  /** All that may be in force. */
  candidates(): (number | null)[] {
    return [this.#settled.capCents, ...this.#pending.map(({ capCents }) => capCents)];
  }

  decide(capCents: number | null): Setting {
    this.version += 1;
    const setting = { version: this.version, capCents };
    this.#pending.push(setting);
    return setting;
  }

  /** From now on this one is in force, or a later one. */
  settle(setting: Setting): void {
    if (setting.version > this.#settled.version) this.#settled = setting;
    this.#pending = this.#pending.filter(({ version }) => version > setting.version);
  }

  rest(): void {
    const last = this.#pending.at(-1);
    if (last !== undefined) this.settle(last);
    this.releasedCents = 0;
  }
}

const LEVELS = ["TEAM_CAP_EXCEEDED", "PROJECT_CAP_EXCEEDED"] as const;

/**
 * The caps over all agents of a project, and what is used of them: the sum of what was granted, or accepted by agents that
 * no cap was over, while it is reserved or spent.
 */
export class CapBook {
  readonly #project = new Container();
  readonly #teams = new Map<string, Container>();
  readonly #agents: ReadonlyMap<string, AgentBook>;
  readonly #settings = new WeakMap<object, { container: Container; setting: Setting }[]>();

  constructor(agents: ReadonlyMap<string, AgentBook>) {
    this.#agents = agents;
  }

  /** Of the project; of a team by its id. */
  of(teamId: string | null): Container {
    if (teamId === null) return this.#project;
    const known = this.#teams.get(teamId) ?? new Container();
    this.#teams.set(teamId, known);
    return known;
  }

  usedCents(teamId: string | null): number {
    let cents = 0;
    for (const agent of this.#agents.values()) {
      if (teamId === null || agent.teamId === teamId) cents += agent.underCapsCents;
    }
    return cents;
  }

  /** A replacement was decided by this command. */
  decide(command: object, settings: readonly { teamId: string | null; capCents: number | null }[]): void {
    const decided = settings.map(({ capCents, teamId }) => {
      const container = this.of(teamId);
      return { container, setting: container.decide(capCents) };
    });
    this.#settings.set(command, decided);
  }

  /** And it is in force. */
  settle(command: object): void {
    for (const { container, setting } of this.#settings.get(command) ?? []) container.settle(setting);
  }

  release(teamId: string, amountCents: number): void {
    this.#project.releasedCents += amountCents;
    this.of(teamId).releasedCents += amountCents;
  }

  rest(): void {
    this.#project.rest();
    for (const team of this.#teams.values()) team.rest();
  }

  /** An amount was accepted: it fits every level, under a cap that was in force. `own`: of it, what is counted already. */
  mustFit(teamId: string, amountCents: number, own: number, what: string): void {
    for (const level of [teamId, null]) {
      const used = this.usedCents(level) - own;
      const caps = this.of(level).candidates();
      const fits = caps.some((cap) => cap === null || used + amountCents <= cap);
      must(
        fits,
        () =>
          `${what}: ${amountCents} on top of ${used} under the cap of ${level ?? "project"}, ${caps.join("/")}`,
      );
    }
  }

  /** A cap refused an amount: it is over the limit, as far as the budget could know, and says how much is left. */
  mustExceed(teamId: string, amountCents: number, own: number, denial: LimitDenial): void {
    const { code, details } = denial;
    const index = LEVELS.findIndex((level) => level === code);
    must(index >= 0, `the budget refused with ${code}`);
    const level = index === 0 ? teamId : null;
    const used = this.usedCents(level) - own;
    const { releasedCents } = this.of(level);
    const caps = this.of(level).candidates();
    must(caps.includes(details.limit), () => `a cap of ${details.limit} was named, not ${caps.join("/")}`);
    const atLeast = Math.max(0, details.limit - used - releasedCents);
    const atMost = Math.max(0, details.limit - used);
    const isKnown = caps.length > 1 || details.remaining <= atMost;
    must(
      details.remaining >= atLeast && isKnown,
      () => `${details.remaining} left of ${details.limit}, with ${used} used`,
    );
    must(
      amountCents > details.remaining,
      () => `${amountCents} was refused with ${details.remaining} left: a false denial`,
    );
    if (level === null) {
      const team = this.of(teamId).candidates();
      const teamUsed = this.usedCents(teamId) - own;
      const fits = team.some((cap) => cap === null || teamUsed + amountCents <= cap);
      must(fits, "the project's cap was named, though the team's comes first");
    }
  }

  /** What the caps say to an amount when nothing is under way. */
  verdict(teamId: string, amountCents: number, own: number): Verdict | null {
    for (const [index, level] of [teamId, null].entries()) {
      const cap = this.of(level).decidedCents;
      const used = this.usedCents(level) - own;
      if (cap === null || used + amountCents <= cap) continue;
      const details = { limit: cap, remaining: cap > used ? cap - used : 0, resetsAt: null };
      return { code: LEVELS[index] ?? "", details };
    }
    return null;
  }

  /** The budget's own totals, where a cap makes it keep them. */
  mustAgree(level: string | null, used: { spentCents: number; reservedCents: number }): void {
    const isProjectCapped = this.#project.decidedCents !== null;
    if (!isProjectCapped && (level === null || this.of(level).decidedCents === null)) return;
    const agents = [...this.#agents.values()].filter(({ teamId }) => level === null || teamId === level);
    const sum = (of: (agent: AgentBook) => number): number =>
      agents.reduce((cents, agent) => cents + of(agent), 0);
    // What was reserved and is spent now is no news to the budget, until the next report.
    const usedCents = sum(({ reservedCents, spentCents }) => spentCents + reservedCents);
    mustEqual(used.spentCents + used.reservedCents, usedCents, `used under the cap of ${level ?? "project"}`);
  }
}
