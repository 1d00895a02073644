import type { AgentCommand } from "../../src/domain/agent/commands.ts";
import type { Payment, PaymentRequest } from "../../src/domain/ledger/payment.ts";
import type { BudgetPolicy, BudgetPolicyPatch } from "../../src/domain/ledger/policy.ts";
import type { AgentProfile } from "../../src/domain/agent/state.ts";
import type { CommandOf } from "../../src/domain/ledger/commands.ts";
import type { Account } from "../../src/domain/ledger/state.ts";
import type { RuleCheck } from "../../src/domain/rules/rules.ts";
import { accountView } from "../../workflows/ledger-views.ts";
import { FATES, recipientOf } from "./counterparts.ts";
import { TEAMS, type World } from "./world.ts";

const SECOND = 1_000;
const MINUTE = 60 * SECOND;
const HOUR = 60 * MINUTE;
const DAY = 24 * HOUR;

const AGENTS_AT_FIRST = 10;
const REPEATS_MAX = 4;
const RECENT_KEYS_MAX = 200;

const REVOKE: AgentCommand = { kind: "revoke_key" };

/** A payment that a client has asked for, and may ask for again. */
interface Order {
  readonly profile: AgentProfile;
  readonly keyHash: string;
  readonly payloadHash: string;
  readonly amountCents: number;
  readonly recipient: string;
  /** The key that it comes with: the agent's own, or one that was revoked. */
  readonly keyId: string;
}

const isWaiting = ({ open, status }: Account): boolean =>
  status === "paused" && [...open.values()].some(({ payment }) => payment.phase === "sending");

/** What clients, people and fate do to a world, as its seed says. */
export class Workload {
  readonly #world: World;
  readonly #orders: Order[] = [];
  /** A key that each agent had. */
  readonly #keys = new Map<string, string>();
  readonly #weighted: readonly (() => void)[];
  #isPaused = false;
  #isPlanned = false;

  constructor(world: World) {
    this.#world = world;
    for (let index = 0; index < AGENTS_AT_FIRST; index += 1) world.createAgent(this.#policy());
    const actions: readonly (readonly [weight: number, action: () => void])[] = [
      [45, () => this.#pay()],
      [6, () => this.#replay()],
      [14, () => this.#resolve()],
      [4, () => this.#changePolicy()],
      [2, () => this.#replaceProject()],
      [3, () => this.#replaceTeam()],
      [1, () => this.#replaceBoth()],
      [4, () => this.#pauseOrResume()],
      [3, () => this.#changeKey()],
      [1, () => this.#rename()],
      [1, () => this.#putRules()],
      [2, () => this.#archiveOrCreate()],
      [2, () => world.crash()],
      [3, () => this.#rollOver()],
      [0.2, () => world.setClockBack(world.random.pick([1, 300, 5 * SECOND, 5 * MINUTE, HOUR]))],
    ];
    this.#weighted = actions.flatMap(([weight, action]) => Array.from({ length: weight * 5 }, () => action));
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
    const { engineNow: now, ledger, observer, random } = this.#world;
    const profile = random.pick(this.#world.profiles);
    const { agentId } = profile;
    const fingerprint = this.#world.nextId("like");
    const probed = (amountCents: number) =>
      accountView(
        ledger.ledger,
        { agentId, now, payment: { rail: "card", recipient: "a shop", amountCents, fingerprint } },
        now,
      );
    const view = probed(1);
    if (view === null || view.status === "closed") return;
    // Often just what is left, or a cent more.
    const left = random.pick([view.teamRemainingCents, view.projectRemainingCents, view.remainingCents]);
    const some = random.between(1, 60);
    const isExact = left !== null && random.chance(0.7);
    const amountCents = isExact ? Math.max(1, left + random.between(-1, 1)) : some;
    const denial = probed(amountCents)?.assessment?.denial ?? null;
    observer.checked(agentId, amountCents, denial?.code ?? null, now);
    this.#order(profile, amountCents);
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
      keyId: this.#keyOf(profile.agentId),
    };
    this.#orders.push(order);
    if (this.#orders.length > RECENT_KEYS_MAX) this.#orders.shift();
    void this.#place(order);
  }

  /** Now and then one that is dead. */
  #keyOf(agentId: string): string {
    const { agents, random } = this.#world;
    const own = agents.get(agentId)?.state.access.activeKeyId ?? "akey_dead";
    const known = this.#keys.get(agentId) ?? own;
    if (own !== "akey_dead") this.#keys.set(agentId, own);
    return random.chance(0.95) ? own : known;
  }

  /** A client asks, and asks again under the same key while it has no answer; some give up. */
  async #place(order: Order): Promise<void> {
    const { network, random } = this.#world;
    for (let attempt = 0; attempt < REPEATS_MAX; attempt += 1) {
      const answer = await this.#world.request((process) =>
        process.pay(order.profile, order.keyId, this.#requestOf(order)),
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
      fingerprint: `${recipient} ${String(amountCents)}`,
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
    // The oldest, too: its window is about to close, or just has.
    const chosen = random.chance(0.5) ? waiting[0] : waiting[random.between(0, waiting.length - 1)];
    if (chosen === undefined) return;
    const [transactionId, agentId] = chosen;
    const profile = this.#world.profiles.find((each) => each.agentId === agentId);
    if (profile === undefined) return;
    const by = { userId: "user-1", name: "Ada" };
    const decide = (): void => {
      const of = { agentId, transactionId, requestId: this.#world.nextId("request") };
      const command = random.pick([
        { kind: "approve", ...of, by, proof: "" },
        { kind: "approve", ...of, by, proof: "" },
        { kind: "deny", ...of, by, feedback: "Too dear.", proof: "" },
        { kind: "cancel", ...of },
      ] as const);
      void this.#world.request((process) => process.resolve(profile, command));
    };
    decide();
    // Two people at once.
    if (random.chance(0.15)) decide();
  }

  #changePolicy(): void {
    const { random, records } = this.#world;
    const { agentId } = random.pick(this.#world.profiles);
    const known = records.agents.get(agentId)?.account.policyVersion ?? 1;
    const version = random.chance(0.1) ? known - 1 : known;
    const policy = this.#policy(this.#usedBy(agentId));
    const patch: BudgetPolicyPatch = random.chance(0.4)
      ? { budgetCents: policy.budgetCents }
      : random.chance(0.5)
        ? { autoApprovalThresholdCents: policy.autoApprovalThresholdCents }
        : { ...policy };
    const requestId = this.#world.nextId("request");
    void this.#world.request((process) =>
      process.submit({ kind: "change_policy", agentId, patch, version, requestId }),
    );
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
    const account = this.#world.records.agents.get(agentId)?.account;
    return account === undefined ? 0 : account.spentCents + account.reservedCents;
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
    const { random } = this.#world;
    const teams = TEAMS.map((teamId) => ({
      teamId,
      capCents: random.chance(0.2) ? this.#cap(teamId) : this.#world.capOf(teamId).capCents,
    }));
    this.#replace({
      kind: "replace_project",
      version: this.#version(this.#world.capOf(null).version),
      capCents: this.#cap(null),
      teams,
      requestId: this.#world.nextId("request"),
    });
  }

  /** While the one is carried through, the other is decided. */
  #replaceBoth(): void {
    this.#replaceProject();
    const { timeline, random } = this.#world;
    timeline.after(random.between(1, 20), () => this.#replaceTeam());
  }

  #replaceTeam(): void {
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

  #putRules(): void {
    const { random } = this.#world;
    const some = <T>(probability: number, value: T): T[] => (random.chance(probability) ? [value] : []);
    const windowSeconds = random.pick([60, 3_600]);
    const checks: RuleCheck[] = [
      ...some(0.3, { type: "velocity", count: random.between(1, 20), windowSeconds } as const),
      ...some(0.5, { type: "duplicate", windowSeconds } as const),
    ];
    const teamId = random.pick([null, ...TEAMS]);
    void this.#world.request((process) => process.putRules(teamId, checks));
  }

  #pauseOrResume(): void {
    const { random } = this.#world;
    const profile = random.pick(this.#world.profiles);
    const set = (kind: "pause" | "resume"): void => {
      const requestId = this.#world.nextId("request");
      void this.#world.request((process) => process.setAccountStatus(profile, kind, requestId));
    };
    if (random.chance(0.6)) return set("resume");
    set("pause");
    // The emergency stop: its key, too, or all of it.
    if (random.chance(0.15))
      void this.#world.request((process) => process.changeKey(profile.agentId, REVOKE));
    if (random.chance(0.03)) void this.#world.request((process) => process.archive(profile));
  }

  /** Whether a payment waits for its agent to be resumed. */
  get isAnyWaiting(): boolean {
    return [...this.#world.ledger.ledger.accounts.values()].some(isWaiting);
  }

  /** Resumes the agents with payments that wait for it. */
  resumeWaiting(): void {
    for (const account of this.#world.ledger.ledger.accounts.values()) {
      const profile = this.#world.profiles.find(({ agentId }) => agentId === account.agentId);
      if (!isWaiting(account) || profile === undefined) continue;
      const requestId = this.#world.nextId("request");
      void this.#world.request((process) => process.setAccountStatus(profile, "resume", requestId));
    }
  }

  /** With a pause, a revocation is the emergency stop; a new key takes it back. */
  #changeKey(): void {
    const { agents, profiles, random } = this.#world;
    const { agentId } = random.pick(profiles);
    const access = agents.get(agentId)?.state.access;
    if (access === undefined) return;
    const put = (command: AgentCommand): void =>
      void this.#world.request((process) => process.changeKey(agentId, command));
    if (access.activeKeyId === null) return put({ kind: "mint_key", keyId: this.#world.nextId("akey") });
    if (random.chance(0.6)) return put({ kind: "authenticate", keyId: this.#keyOf(agentId) });
    put({ kind: "revoke_key" });
    // Mostly to give it another one soon.
    const mint = (): void => put({ kind: "mint_key", keyId: this.#world.nextId("akey") });
    if (random.chance(0.8)) this.#world.timeline.after(random.between(1, 20 * SECOND), mint);
  }

  #rename(): void {
    const { agentId } = this.#world.random.pick(this.#world.profiles);
    const command = { kind: "rename", name: this.#world.nextId("name") } as const;
    void this.#world.request((process) => process.agents.submit(agentId, command));
  }

  #archiveOrCreate(): void {
    const { profiles, random } = this.#world;
    if (random.chance(0.5)) this.#world.createAgent(this.#policy());
    else void this.#world.request((process) => process.archive(random.pick(profiles)));
  }

  #rollOver(): void {
    const { agents, ledger, random } = this.#world;
    const { agentId } = random.pick(this.#world.profiles);
    if (random.chance(0.5)) ledger.continueAsNew();
    else agents.get(agentId)?.continueAsNew();
  }
}
