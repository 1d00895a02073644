import type { AgentCommand } from "../../src/domain/agent/commands.ts";
import { assess } from "../../src/domain/agent/decide.ts";
import { budgetReport } from "../../src/domain/agent/caps.ts";
import type { Payment, PaymentRequest } from "../../src/domain/agent/payment.ts";
import type { BudgetPolicy, BudgetPolicyPatch } from "../../src/domain/agent/policy.ts";
import type { AgentProfile, AgentState } from "../../src/domain/agent/state.ts";
import { previewCaps } from "../../src/domain/budget/budget.ts";
import type { BudgetCommand } from "../../src/domain/budget/commands.ts";
import { teamOf } from "../../src/domain/budget/state.ts";
import { FATES, recipientOf } from "./counterparts.ts";
import { TEAMS, type World } from "./world.ts";

const SECOND = 1_000;
const MINUTE = 60 * SECOND;
const HOUR = 60 * MINUTE;
const DAY = 24 * HOUR;

const AGENTS_AT_FIRST = 10;
const AGENTS_MAX = 40;
const REPEATS_MAX = 4;
const KEYS_REMEMBERED = 200;

/** A payment that a client has asked for, and may ask for again. */
interface Order {
  readonly profile: AgentProfile;
  readonly keyHash: string;
  readonly payloadHash: string;
  readonly amountCents: number;
  readonly recipient: string;
}

const isWaiting = ({ lifecycle, open }: AgentState): boolean =>
  lifecycle === "paused" && Object.values(open).some(({ payment }) => payment.phase === "sending");

/** What clients, people and fate do to a world, as its seed says. */
export class Workload {
  readonly #world: World;
  readonly #orders: Order[] = [];
  readonly #weighted: readonly (() => void)[];
  #isPaused = false;
  #isPlanned = false;

  constructor(world: World) {
    this.#world = world;
    const asksAtFirst = world.random.chance(0.7);
    for (let index = 0; index < AGENTS_AT_FIRST; index += 1) {
      world.createAgent(this.#policy(), asksAtFirst || world.random.chance(0.5));
    }
    const actions: readonly (readonly [weight: number, action: () => void])[] = [
      [45, () => this.#pay()],
      [6, () => this.#replay()],
      [14, () => this.#resolve()],
      [4, () => this.#changePolicy()],
      [2, () => this.#replaceProject()],
      [3, () => this.#replaceTeam()],
      [1, () => this.#replaceBoth()],
      [4, () => this.#pauseOrResume()],
      [2, () => this.#changeKey()],
      [2, () => this.#archiveOrCreate()],
      [2, () => world.crash()],
      [3, () => this.#rollOver()],
      [1, () => this.#read()],
    ];
    this.#weighted = actions.flatMap(([weight, action]) => Array.from({ length: weight }, () => action));
  }

  /** Goes on with requests, one after another at random intervals. */
  resume(): void {
    this.#isPaused = false;
    this.#plan();
  }

  pause(): void {
    this.#isPaused = true;
  }

  /** With nothing under way: what a dry run says of a payment, which is then made. */
  probe(): void {
    const { agents, budget, observer, random, timeline } = this.#world;
    const profile = random.pick(this.#world.profiles);
    const actor = agents.get(profile.agentId);
    if (actor === undefined || actor.state.lifecycle === "archived") return;
    const amountCents = this.#probed(profile);
    const report = budgetReport(actor.state);
    const probe = { rail: "card", recipient: "a shop", amountCents } as const;
    const own = assess(actor.state, probe, timeline.now).denial;
    const caps = report === null ? null : previewCaps(budget.state, report, amountCents).denial;
    observer.checked(profile.agentId, amountCents, (own ?? caps)?.code ?? null, timeline.now);
    this.#order(profile, amountCents);
  }

  /** Often just what is left, or a cent more. */
  #probed({ agentId, teamId }: AgentProfile): number {
    const { agents, budget, random } = this.#world;
    const report = budgetReport(agents.get(agentId)?.state ?? fail());
    if (report === null || random.chance(0.3)) return random.between(1, 60);
    const { projectRemainingCents, teamRemainingCents } = previewCaps(
      budget.state,
      { ...report, teamId },
      null,
    );
    const left = random.chance(0.5) ? teamRemainingCents : projectRemainingCents;
    return left === null ? random.between(1, 60) : Math.max(1, left + random.between(-1, 1));
  }

  #plan(): void {
    if (this.#isPlanned) return;
    this.#isPlanned = true;
    this.#world.timeline.after(this.#gapMs(), () => this.#act(), true);
  }

  #act(): void {
    this.#isPlanned = false;
    if (this.#isPaused) return;
    this.#world.random.pick(this.#weighted)();
    this.#plan();
  }

  #gapMs(): number {
    const { random, timeline } = this.#world;
    const dice = random.next();
    if (dice < 0.7) return random.between(0, 20);
    if (dice < 0.93) return random.between(20, 2 * SECOND);
    if (dice < 0.98) return random.between(SECOND, MINUTE);
    if (dice < 0.995) return random.pick([HOUR - 1, HOUR, 20 * MINUTE, random.between(MINUTE, 3 * HOUR)]);
    // Just before, at or after UTC midnight.
    return DAY - (timeline.now % DAY) + random.between(-3, 3);
  }

  #pay(): void {
    const { profiles, random } = this.#world;
    // A few agents are busier than others.
    const profile = random.chance(0.4) ? profiles[random.between(0, 2)] : random.pick(profiles);
    if (profile !== undefined) this.#order(profile, random.between(1, random.chance(0.8) ? 30 : 120));
  }

  #order(profile: AgentProfile, amountCents: number): void {
    const { random } = this.#world;
    const fate = random.chance(0.4) ? "settle" : random.pick(FATES);
    // Over midnight only now and then: its rail is asked again and again meanwhile.
    const afterMs = random.chance(fate === "reverse" ? 0.3 : 0.02)
      ? 26 * HOUR
      : random.pick([SECOND, 3 * SECOND, 30 * SECOND, 5 * MINUTE]);
    const keyHash = this.#world.nextId("key");
    const order = {
      profile,
      keyHash,
      payloadHash: `payload of ${keyHash}`,
      amountCents,
      recipient: recipientOf({ fate, afterMs }),
    };
    this.#orders.push(order);
    if (this.#orders.length > KEYS_REMEMBERED) this.#orders.shift();
    void this.#place(order);
  }

  /** A client asks, and asks again under the same key while it has no answer; some give up. */
  async #place(order: Order): Promise<void> {
    const { network, random } = this.#world;
    for (let attempt = 0; attempt < REPEATS_MAX; attempt += 1) {
      const answer = await this.#world.request((process) =>
        process.pay(order.profile, this.#requestOf(order)),
      );
      if (answer !== null) return this.#answered(order, answer);
      if (random.chance(0.2)) return;
      await network.sleep(this.#world.clients, random.between(1, 5 * SECOND));
    }
  }

  #answered({ keyHash, profile }: Order, { request }: Payment): void {
    this.#world.observer.clientAnswered(profile.agentId, keyHash, request.transactionId);
  }

  #requestOf({ amountCents, keyHash, payloadHash, recipient }: Order): PaymentRequest {
    return {
      transactionId: this.#world.nextId("txn"),
      approvalId: this.#world.nextId("apr"),
      keyHash,
      payloadHash,
      rail: "card",
      amountCents,
      currency: "USD",
      recipient,
      merchantCategory: null,
      purpose: "simulated",
      proof: "",
    };
  }

  /** The same key once more, now and then with another payload. */
  #replay(): void {
    const { random } = this.#world;
    if (this.#orders.length === 0) return;
    const order = random.pick(this.#orders);
    void this.#place(random.chance(0.2) ? { ...order, payloadHash: "another" } : order);
  }

  #resolve(): void {
    const { random, records } = this.#world;
    const waiting = [...records.pending];
    if (waiting.length === 0) return;
    // The oldest, too: its window is about to close, or just has.
    const transactionId = (random.chance(0.5) ? waiting[0] : undefined) ?? random.pick(waiting);
    const profile = this.#profileOf(transactionId);
    const by = { userId: "user-1", name: "Ada" };
    const commands: readonly AgentCommand[] = [
      { kind: "approve", transactionId, by, proof: "" },
      { kind: "approve", transactionId, by, proof: "" },
      { kind: "deny", transactionId, by, feedback: "Too dear.", proof: "" },
      { kind: "cancel", transactionId },
    ];
    const command = random.pick(commands);
    void this.#world.request((process) => process.resolve(profile, command));
    // Two people at once.
    if (random.chance(0.15)) {
      const other = random.pick(commands);
      void this.#world.request((process) => process.resolve(profile, other));
    }
  }

  #profileOf(transactionId: string): AgentProfile {
    for (const { state } of this.#world.agents.values()) {
      if (state.open[transactionId] !== undefined) return state.profile;
    }
    return this.#world.profiles[0] ?? fail();
  }

  #changePolicy(): void {
    const { random, records } = this.#world;
    const { agentId } = random.pick(this.#world.profiles);
    const known = records.agents.get(agentId)?.summary.policyVersion ?? 1;
    const version = random.chance(0.1) ? known - 1 : known;
    const policy = this.#policy(this.#usedBy(agentId));
    const patch: BudgetPolicyPatch = random.chance(0.4)
      ? { budgetCents: policy.budgetCents }
      : random.chance(0.5)
        ? { autoApprovalThresholdCents: policy.autoApprovalThresholdCents }
        : { ...policy };
    const command: AgentCommand = { kind: "change_policy", patch, version };
    void this.#world.request((process) => process.of(agentId).submit(command));
  }

  #policy(usedCents = 0): BudgetPolicy {
    const { random } = this.#world;
    const some = <T>(probability: number, value: T): T | null => (random.chance(probability) ? value : null);
    return {
      budgetCents: Math.max(0, usedCents + random.between(-50, 1_200)),
      autoApprovalThresholdCents: some(0.4, random.pick([0, 10, 25])),
      perTransactionLimitCents: some(0.2, random.between(20, 100)),
      dailySpendLimitCents: some(0.3, random.between(50, 900)),
      hourlyVelocityLimit: some(0.3, random.between(0, 12)),
      dailyVelocityLimit: some(0.2, random.between(1, 60)),
    };
  }

  #usedBy(agentId: string): number {
    const summary = this.#world.records.agents.get(agentId)?.summary;
    return summary === undefined ? 0 : summary.spentCents + summary.reservedCents;
  }

  /** A cap near what is used: little is left, nothing, or less than that; sometimes none at all. */
  #cap(teamId: string | null): number | null {
    const { profiles, random } = this.#world;
    if (random.chance(0.35)) return null;
    const within = profiles.filter((profile) => teamId === null || profile.teamId === teamId);
    const used = within.reduce((cents, { agentId }) => cents + this.#usedBy(agentId), 0);
    return Math.max(0, used + random.between(-100, random.chance(0.3) ? 150 : 2_500));
  }

  #replaceProject(): void {
    const { budget, random } = this.#world;
    const { state } = budget;
    const teams = TEAMS.map((teamId) => ({
      teamId,
      capCents: random.chance(0.2) ? this.#cap(teamId) : teamOf(state, teamId).capCents,
    }));
    this.#replace({
      kind: "replace_project",
      version: this.#version(state.project.version),
      capCents: this.#cap(null),
      teams,
      complete: random.chance(0.97),
    });
  }

  /** While the one is carried through, the other is decided. */
  #replaceBoth(): void {
    this.#replaceProject();
    const { timeline, random } = this.#world;
    timeline.after(random.between(1, 20), () => this.#replaceTeam());
  }

  #replaceTeam(): void {
    const { budget, random, records } = this.#world;
    const teamId = random.pick(TEAMS);
    const live = [...records.agents].filter(
      ([, record]) => record.teamId === teamId && record.summary.lifecycle !== "archived",
    );
    const outstanding = budget.state.deliveries;
    const named = live.map(([agentId, { summary }]) => ({
      agentId,
      budgetCents: random.chance(0.2)
        ? Math.max(0, this.#usedBy(agentId) + random.between(-50, 500))
        : (outstanding[agentId]?.budgetCents ?? summary.policy.budgetCents),
    }));
    const command = {
      kind: "replace_team",
      teamId,
      version: this.#version(teamOf(budget.state, teamId).version),
      capCents: this.#cap(teamId),
      budgets: named,
      complete: random.chance(0.97),
    } as const;
    this.#world.observer.replacementRequested(command, named);
    this.#replace(command);
  }

  #replace(command: Extract<BudgetCommand, { kind: "replace_project" | "replace_team" }>): void {
    void this.#replaced(command);
  }

  async #replaced(
    command: Extract<BudgetCommand, { kind: "replace_project" | "replace_team" }>,
  ): Promise<void> {
    const isDone = await this.#world.request((process) => process.replace(command));
    if (isDone === true) this.#world.observer.replacementAnswered(command);
  }

  #version(current: number): number {
    return this.#world.random.chance(0.1) ? Math.max(1, current - 1) : current;
  }

  #pauseOrResume(): void {
    const { random } = this.#world;
    const { agentId } = random.pick(this.#world.profiles);
    const kind = random.chance(0.25) ? "pause" : "resume";
    void this.#world.request((process) => process.of(agentId).submit({ kind }));
  }

  /** Whether a payment waits for its agent to be resumed. */
  get isAnyWaiting(): boolean {
    return [...this.#world.agents.values()].some(({ state }) => isWaiting(state));
  }

  /** Resumes the agents with payments that wait for it. */
  resumeWaiting(): void {
    for (const [agentId, { state }] of this.#world.agents) {
      if (!isWaiting(state)) continue;
      void this.#world.request((process) => process.of(agentId).submit({ kind: "resume" }));
    }
  }

  /** With a pause, a revocation is the emergency stop; a new key takes it back. */
  #changeKey(): void {
    const { agents, profiles, random } = this.#world;
    const { agentId } = random.pick(profiles);
    const access = agents.get(agentId)?.state.access;
    if (access === undefined) return;
    const recordedKeyId = access.activeKeyId;
    const command: AgentCommand =
      recordedKeyId === null
        ? { kind: "mint_key", keyId: this.#world.nextId("akey"), recordedKeyId }
        : { kind: "revoke_key", recordedKeyId };
    void this.#world.request((process) => process.of(agentId).submit(command));
  }

  #archiveOrCreate(): void {
    const { profiles, random } = this.#world;
    if (random.chance(0.4)) {
      const profile = random.pick(profiles);
      void this.#world.request((process) => process.archive(profile));
    } else if (profiles.length < AGENTS_MAX) {
      this.#world.createAgent(this.#policy(), true);
    }
  }

  #rollOver(): void {
    const { agents, budget, random } = this.#world;
    const { agentId } = random.pick(this.#world.profiles);
    if (random.chance(0.3)) budget.continueAsNew();
    else agents.get(agentId)?.continueAsNew();
  }

  #read(): void {
    const { agentId } = this.#world.random.pick(this.#world.profiles);
    void this.#world.request((process) => process.of(agentId).submit({ kind: "read_report" }));
  }
}

function fail(): never {
  throw new Error("a world without agents");
}
