import type { AgentCommand } from "../../../src/domain/agent/commands.ts";
import type { Account } from "../../../src/domain/ledger/state.ts";
import { mcOf } from "../../../src/domain/money.ts";
import type { RuleCheck } from "../../../src/domain/rules/rules.ts";
import { accountView } from "../../../workflows/ledger-views.ts";
import { TEAMS, type World } from "../world.ts";
import { Budgets } from "./budgets.ts";
import { Orders } from "./orders.ts";
import { DAY, HOUR, MINUTE, SECOND } from "./spans.ts";

const AGENTS_AT_FIRST = 10;
/** With fewer none is archived, so that there is always one to act. */
const AGENTS_MIN = 4;

const REVOKE: AgentCommand = { kind: "revoke_key" };

const isWaiting = ({ open, status }: Account): boolean =>
  status === "paused" && [...open.values()].some(({ payment }) => payment.phase === "sending");

/** Actions of clients, people and fate in a world, by its seed. */
export class Workload {
  readonly #world: World;
  readonly #orders: Orders;
  readonly #budgets: Budgets;
  readonly #weighted: readonly (() => void)[];
  #isPaused = false;
  #isPlanned = false;

  constructor(world: World) {
    this.#world = world;
    this.#orders = new Orders(world);
    this.#budgets = new Budgets(world);
    for (let index = 0; index < AGENTS_AT_FIRST; index += 1) world.createAgent(this.#budgets.policy());
    const actions: readonly (readonly [weight: number, action: () => void])[] = [
      [45, () => this.#orders.pay()],
      [6, () => this.#orders.replay()],
      [14, () => this.#resolve()],
      [4, () => this.#budgets.changePolicy()],
      [2, () => this.#budgets.grantRaise()],
      [2, () => this.#budgets.replaceProject()],
      [3, () => this.#budgets.replaceTeam()],
      [1, () => this.#budgets.replaceBoth()],
      [4, () => this.#pauseOrResume()],
      [0.2, () => this.#stop()],
      [3, () => this.#changeKey()],
      [1, () => this.#rename()],
      [1, () => this.#putRules()],
      [1, () => this.#putRestrictions()],
      [2, () => this.#archiveOrCreate()],
      [2, () => world.crash()],
      [2, () => world.stall()],
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
        {
          agentId,
          now,
          payment: { rail: "card", recipient: "a shop", amountMc: mcOf(amountCents), fingerprint },
        },
        now,
      );
    const view = probed(1);
    if (view === null || view.status === "closed") return;
    // Often just what is left, or a cent more.
    const left = random.pick([view.team.remainingCents, view.project.remainingCents, view.remainingCents]);
    const some = random.between(1, 60);
    const isExact = left !== null && random.chance(0.7);
    const amountCents = isExact ? Math.max(1, left + random.between(-1, 1)) : some;
    const denial = probed(amountCents)?.assessment?.denial ?? null;
    observer.checked(agentId, amountCents, denial?.code ?? null, now);
    this.#orders.order(profile, amountCents);
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

  #putRestrictions(): void {
    const { profiles, random, records } = this.#world;
    // Often of what waits for a person.
    const waiting = [...records.pending.keys()].flatMap((id) => records.payments.get(id) ?? []);
    const recipients = waiting.map(({ request }) => request.recipient);
    const never = new Set(random.chance(0.5) ? [this.#orders.recipient(), ...recipients] : []);
    const { agentId } = random.pick(profiles);
    const on = random.chance(0.5) ? { agentId } : { teamId: random.pick([null, ...TEAMS]) };
    void this.#world.request((process) => process.putRestrictions(on, never));
  }

  #pauseOrResume(): void {
    const { random } = this.#world;
    // One with a payment on its way, too: that is what a pause has to stop.
    const paying = this.#world.profiles.filter(({ agentId }) => this.#isPaying(agentId));
    const profile = random.pick(paying.length > 0 && random.chance(0.5) ? paying : this.#world.profiles);
    const set = (kind: "pause" | "resume"): void => {
      const requestId = this.#world.nextId("request");
      void this.#world.request((process) => process.setAccountStatus(profile, kind, requestId));
    };
    if (random.chance(this.#isPaying(profile.agentId) ? 0.2 : 0.6)) return set("resume");
    set("pause");
    // The emergency stop: its key, too, or all of it.
    if (random.chance(0.15))
      void this.#world.request((process) => process.changeKey(profile.agentId, REVOKE));
    if (random.chance(0.03)) void this.#world.request((process) => process.archive(profile));
  }

  #isPaying(agentId: string): boolean {
    const account = this.#world.ledger.ledger.accounts.get(agentId);
    if (account?.status !== "active") return false;
    return [...account.open.values()].some(({ payment }) => payment.phase === "sending");
  }

  /** An emergency stop of a team or the project; most agents are soon resumed. */
  #stop(): void {
    const { profiles, random, timeline } = this.#world;
    const teamId = random.pick([null, ...TEAMS]);
    const revokeKeys = random.chance(0.5);
    const requestId = this.#world.nextId("request");
    void this.#world.request((process) =>
      process.stop({ kind: "stop_accounts", teamId, revokeKeys, requestId }),
    );
    // Their actors still have the keys, and say so.
    for (let renames = random.between(0, 5); renames > 0; renames -= 1) this.#rename();
    for (const profile of profiles) {
      if (random.chance(0.2)) continue;
      const resume = (): void => {
        const ownId = this.#world.nextId("request");
        void this.#world.request((process) => process.setAccountStatus(profile, "resume", ownId));
        const keyId = this.#world.nextId("akey");
        if (revokeKeys)
          void this.#world.request((process) =>
            process.changeKey(profile.agentId, { kind: "mint_key", keyId }),
          );
      };
      timeline.after(random.between(1, 20 * SECOND), resume);
    }
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
    if (random.chance(0.6)) return put({ kind: "authenticate", keyId: this.#orders.keyOf(agentId) });
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
    const creates = random.chance(0.5);
    if (creates || profiles.length < AGENTS_MIN) this.#world.createAgent(this.#budgets.policy());
    else void this.#world.request((process) => process.archive(random.pick(profiles)));
  }

  #rollOver(): void {
    const { agents, ledger, random } = this.#world;
    const { agentId } = random.pick(this.#world.profiles);
    if (random.chance(0.5)) ledger.continueAsNew();
    else agents.get(agentId)?.continueAsNew();
  }
}
