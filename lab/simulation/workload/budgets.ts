import type { CommandOf } from "../../../src/domain/ledger/commands.ts";
import {
  type BudgetPolicy,
  type BudgetPolicyPatch,
  withSpendLimits,
} from "../../../src/domain/ledger/policy.ts";
import { PERIODS } from "../../../src/domain/ledger/calendar.ts";
import type { SpendLimit } from "../../../src/domain/ledger/windows.ts";
import type { Random } from "../../random.ts";
import { mcOf } from "../../../src/domain/money.ts";
import { TEAMS, type World } from "../world.ts";
import { DAY, HOUR, MINUTE, SECOND } from "./spans.ts";

/** Changes of budgets by people: of agents, teams and the project, near what is used of them. */
export class Budgets {
  readonly #world: World;
  /** Choices of limits by period leave the others as they were. */
  readonly #limits: Random;
  readonly #raises: Random;

  constructor(world: World) {
    this.#world = world;
    this.#limits = world.random.fork("spend limits");
    this.#raises = world.random.fork("raises");
  }

  /** Few, and near what is used. */
  #spendLimits(usedCents: number): readonly SpendLimit[] {
    if (!this.#limits.chance(0.25)) return [];
    const limitCents = Math.max(0, usedCents + this.#limits.between(-50, 1_500));
    const one = { period: this.#limits.pick(PERIODS), limitCents };
    const day = { period: "day", limitCents: this.#limits.between(100, 1_500) } as const;
    return one.period !== "day" && this.#limits.chance(0.3) ? [day, one] : [one];
  }

  policy(usedCents = 0): BudgetPolicy {
    const { random } = this.#world;
    const some = <T>(probability: number, value: T): T | null => (random.chance(probability) ? value : null);
    return {
      budgetCents: Math.max(0, usedCents + random.between(-50, 1_200)),
      autoApprovalThresholdCents: some(0.4, random.pick([0, 10, 25])),
      perTransactionLimitCents: some(0.2, random.between(20, 100)),
      dailySpendLimitCents: some(0.3, random.between(50, 900)),
      hourlyVelocityLimit: some(0.3, random.between(0, 12)),
      dailyVelocityLimit: some(0.2, random.between(1, 60)),
      ...withSpendLimits(this.#spendLimits(usedCents)),
    };
  }

  changePolicy(): void {
    const { random, records } = this.#world;
    const { agentId } = random.pick(this.#world.profiles);
    const known = records.agents.get(agentId)?.account.policyVersion ?? 1;
    const version = random.chance(0.1) ? known - 1 : known;
    const policy = this.policy(this.#usedBy(agentId));
    const patch: BudgetPolicyPatch = random.chance(0.4)
      ? { budgetCents: policy.budgetCents }
      : random.chance(0.5)
        ? { autoApprovalThresholdCents: policy.autoApprovalThresholdCents }
        : { spendLimits: [], ...policy };
    const requestId = this.#world.nextId("request");
    void this.#world.request((process) =>
      process.submit({ kind: "change_policy", agentId, patch, version, requestId }),
    );
  }

  /**
   * A raise as an agent asks for it; a person grants it until windows end, for good or until some time. Often somebody else finishes the
   * grant, meanwhile or when it is long over.
   */
  grantRaise(): void {
    const random = this.#raises;
    const { engineNow, profiles, timeline } = this.#world;
    const profile = random.pick(profiles);
    const endsAt = engineNow + random.pick([10 * MINUTE, HOUR, 2 * DAY, 40 * DAY]);
    const raise = {
      raiseId: this.#world.nextId("raise"),
      amountMc: mcOf(random.between(20, 600)),
      ...random.pick([{}, {}, { endsAt: null }, { endsAt }]),
    };
    const grant = (): void => void this.#world.request((process) => process.grantRaise(profile, raise));
    grant();
    if (random.chance(0.4)) timeline.after(random.pick([5, SECOND, 20 * SECOND, HOUR]), grant);
  }

  replaceProject(): void {
    const { random } = this.#world;
    const teams = TEAMS.map((teamId) => ({
      teamId,
      capCents: random.chance(0.2) ? this.#cap(teamId) : this.#world.capOf(teamId).capCents,
    }));
    this.#replace({
      kind: "replace_project",
      version: this.#version(this.#world.capOf(null).version),
      capCents: this.#cap(null),
      ...this.#someLimits(null),
      teams,
      requestId: this.#world.nextId("request"),
    });
  }

  /** While the one is carried through, the other is decided. */
  replaceBoth(): void {
    this.replaceProject();
    const { timeline, random } = this.#world;
    timeline.after(random.between(1, 20), () => this.replaceTeam());
  }

  replaceTeam(): void {
    const { random, records } = this.#world;
    const teamId = random.pick(TEAMS);
    const live = [...records.agents].filter(
      ([, record]) => record.teamId === teamId && record.life.archivedAt === null,
    );
    this.#replace({
      kind: "replace_team",
      teamId,
      version: this.#version(this.#world.capOf(teamId).version),
      capCents: this.#cap(teamId),
      ...this.#someLimits(teamId),
      agents: live.map(([agentId, { account }]) => ({
        agentId,
        budgetCents: random.chance(0.2)
          ? Math.max(0, this.#usedBy(agentId) + random.between(-50, 500))
          : account.policy.budgetCents,
      })),
      requestId: this.#world.nextId("request"),
    });
  }

  #replace(command: CommandOf<"replace_project" | "replace_team"> & { readonly requestId: string }): void {
    void this.#world.request((process) => process.replace(command));
  }

  #version(current: number): number {
    return this.#world.random.chance(0.1) ? Math.max(1, current - 1) : current;
  }

  #usedBy(agentId: string): number {
    const account = this.#world.records.agents.get(agentId)?.account;
    return account === undefined ? 0 : account.spentCents + account.reservedCents;
  }

  /** Left out, they stay. */
  #someLimits(teamId: string | null): { readonly spendLimits?: readonly SpendLimit[] } {
    return this.#limits.chance(0.5) ? { spendLimits: this.#spendLimits(this.#usedWithin(teamId)) } : {};
  }

  #usedWithin(teamId: string | null): number {
    const within = this.#world.profiles.filter((profile) => teamId === null || profile.teamId === teamId);
    return within.reduce((cents, { agentId }) => cents + this.#usedBy(agentId), 0);
  }

  /** A cap near what is used: little is left, nothing, or less than that; sometimes none at all. */
  #cap(teamId: string | null): number | null {
    const { random } = this.#world;
    if (random.chance(0.35)) return null;
    return Math.max(0, this.#usedWithin(teamId) + random.between(-100, random.chance(0.3) ? 150 : 2_500));
  }
}
