import type { NetworkTimes } from "../../src/messages/rail-network.ts";
import { perRail } from "../../src/domain/ledger/payment.ts";
import { isDeepStrictEqual } from "node:util";
import { Fenced, Superseded } from "../../src/payments/rail-sender.ts";
import { NoSuchActor } from "../../src/actors/no-such-actor.ts";
import type { BudgetPolicy } from "../../src/domain/ledger/policy.ts";
import { type AgentProfile, summarize } from "../../src/domain/agent/state.ts";
import { LEDGER_BOUNDS, type LedgerBounds, levelOf, summaryOf } from "../../src/domain/ledger/state.ts";
import { accountView, snapshotPage, capsView } from "../../workflows/ledger-views.ts";
import { ActorUnavailable } from "../../src/actors/actor-unavailable.ts";
import { Random } from "../random.ts";
import { type ActorDependencies, SimulatedAgent, SimulatedLedger } from "./actors.ts";
import type { Books, Observer } from "./audit/observer.ts";
import { LineBroken, Processor, Records } from "./counterparts.ts";
import type { Domain } from "./domain.ts";
import { CLEAR, Host, Network, Unavailable, type Weather } from "./network.ts";
import type { Surroundings } from "./process-ports.ts";
import { ServiceProcess } from "./process.ts";
import { Timeline } from "./timeline.ts";
import { DurableWorkflows } from "./workflows.ts";

const PROCESSES = 3;
const PLACE = { organizationId: "org-1", projectId: "project-1" } as const;
export const TEAMS = ["team-1", "team-2", "team-3"] as const;

/** Low, so that worlds come to them. */
const BOUNDS: LedgerBounds = {
  ...LEDGER_BOUNDS,
  accounts: 24,
  openOfAgent: 5,
  openOfProject: 30,
  closedKeys: 40,
};

/** An activity is tried so often before its actor gives it up for now; a workflow's own, for ever. */
const ACTIVITY_ATTEMPTS = 4;

/** Evenings before days that are not like others: a year's end, a leap day, and the days around it. */
const EVENINGS = [Date.UTC(2026, 11, 31, 20), Date.UTC(2028, 1, 28, 20), Date.UTC(2027, 1, 28, 20)] as const;

/** Approval windows; short, so that many close within a run. */
const APPROVAL_WINDOWS_SECONDS = [60, 3_600, 86_400] as const;

/** The create's window of an agent. */
const DELIVERY_WINDOW_MS = 60_000;

export const STORMY: Weather = { lost: 0.01, late: 0.05, twice: 0.04 };

/** As the watch over networks does it. */
const NETWORKS_READ_EVERY_MS = 3_600_000;
const NETWORKS_OVERLAP_MS = 600_000;
const HINT_EARLY_MS = 1_000;
const HINT_LATE_MAX_MS = 20_000;

/** Duration of a process's suspension. */
const STALL_MS = [100, 5_000] as const;

/** One project with all that is around it: actors, processes that die, a network that fails, a rail and the records. */
export class World {
  readonly random: Random;
  readonly timeline: Timeline;
  readonly network: Network;
  readonly records: Records;
  readonly processor: Processor;
  readonly ledger: SimulatedLedger;
  readonly agents = new Map<string, SimulatedAgent>();
  readonly profiles: AgentProfile[] = [];
  readonly observer: Observer;
  readonly #domain: Domain;
  readonly #actorDependencies: ActorDependencies;
  readonly #surroundings: Surroundings;
  readonly #processes: ServiceProcess[] = [];
  readonly #workflows: DurableWorkflows;
  /** Clients are no processes of ours, and do not die. */
  readonly clients = new Host("clients");
  #numbered = 0;
  crashes = 0;
  stalls = 0;
  clockSetBack = 0;
  networkReads = 0;
  #behindMs = 0;
  readonly #hints: Random;
  #networksReadThrough: NetworkTimes;
  #isReadingNetworks = false;

  constructor(seed: number, domain: Domain, observer: Observer) {
    this.random = new Random(seed);
    this.observer = observer;
    this.#domain = domain;
    this.timeline = new Timeline(this.random.pick(EVENINGS));
    this.network = new Network(this.timeline, this.random.fork("network"), STORMY);
    this.#hints = this.random.fork("hints");
    this.records = new Records(observer);
    this.processor = new Processor(this.timeline, observer, (transactionId, changesAt) =>
      this.#hint(transactionId, changesAt),
    );
    this.#workflows = new DurableWorkflows(this.timeline, this.random.fork("timers"), (work) =>
      this.#activity(work, Infinity),
    );
    this.#actorDependencies = {
      domain,
      timeline: this.timeline,
      observer,
      activities: this.#activities(),
      now: () => this.engineNow,
    };
    const { organizationId, projectId } = PLACE;
    this.ledger = new SimulatedLedger(
      this.#actorDependencies,
      domain.newLedger(organizationId, projectId, BOUNDS),
    );
    this.#surroundings = {
      domain,
      timeline: this.timeline,
      network: this.network,
      observer,
      processor: this.processor,
      random: this.random.fork("reads"),
      records: this.records,
      agents: this.agents,
      ledger: () => this.ledger,
      workflows: this.#workflows,
      place: PLACE,
      approvalWindowSeconds: this.random.pick(APPROVAL_WINDOWS_SECONDS),
    };
    for (let index = 0; index < PROCESSES; index += 1) this.#startProcess();
    this.#networksReadThrough = perRail(() => this.timeline.now);
    void this.#watchNetworks();
  }

  /** By the engine's clock, which is what actors go by: it may have gone back. */
  get engineNow(): number {
    return this.timeline.now - this.#behindMs;
  }

  /** The engine is set up anew on a machine whose clock is behind. */
  setClockBack(ms: number): void {
    this.#behindMs += ms;
    this.clockSetBack += 1;
  }

  /** With nothing under way, the clock is put right. */
  setClockRight(): void {
    this.#behindMs = 0;
    this.ledger.recheck();
    for (const agent of this.agents.values()) agent.recheck();
  }

  /** Charges that met a fence. */
  get fenced(): number {
    return this.processor.fenced;
  }

  get sweeps(): number {
    return this.ledger.sweeps;
  }

  get expiries(): number {
    return this.#workflows.expiries;
  }

  nextId(prefix: string): string {
    this.#numbered += 1;
    return `${prefix}_${String(this.#numbered)}`;
  }

  /** The process that creates an agent opens its account, starts its actor and writes its record; false: the project is full. */
  createAgent(policy: BudgetPolicy): boolean {
    const now = this.engineNow;
    const agentId = this.nextId("agent");
    const profile = { ...PLACE, teamId: this.random.pick(TEAMS), agentId, name: agentId };
    const { name, teamId } = profile;
    const keyId = this.nextId("akey");
    const { replies } = this.ledger.submit([{ kind: "open_account", agentId, teamId, name, policy, keyId }]);
    if (replies[0]?.kind !== "opened") return false;
    const firstKey = { keyId, lineageId: null, deliverableUntil: now + DELIVERY_WINDOW_MS };
    this.observer.agentCreated(profile, firstKey);
    const state = this.#domain.initialAgentState(profile, firstKey, now);
    const account = this.ledger.ledger.accounts.get(agentId);
    if (account === undefined) throw new Error("an account that was opened is gone");
    this.records.agents.set(agentId, { teamId, life: summarize(state), account: summaryOf(account) });
    const onEnded = (): void => {
      this.agents.delete(agentId);
      // Most of what has no actor any more is left in peace.
      if (this.random.chance(0.8)) this.profiles.splice(this.profiles.indexOf(profile), 1);
    };
    this.agents.set(agentId, new SimulatedAgent(this.#actorDependencies, state, onEnded));
    this.profiles.push(profile);
    return true;
  }

  process(): ServiceProcess {
    return this.random.pick(this.#processes);
  }

  /** A client's request to any process; null where it had no answer, whatever was done. */
  async request<T>(work: (process: ServiceProcess) => Promise<T>): Promise<T | null> {
    const process = this.process();
    try {
      return await process.host.serve(async () => {
        if (process.host.stalledUntil > this.timeline.now) await this.network.sleep(process.host, 0);
        return work(process);
      });
    } catch (error) {
      this.#expectFailure(error);
      return null;
    }
  }

  /** A process dies with all that it has in hand, and another takes its place. */
  crash(): void {
    const died = this.#processes.shift();
    if (died === undefined) return;
    this.crashes += 1;
    died.host.kill();
    this.#startProcess();
  }

  /** A process is suspended, and wakes up. */
  stall(): void {
    this.stalls += 1;
    this.process().host.stalledUntil = this.timeline.now + this.random.between(...STALL_MS);
  }

  /** Everybody's books, laid open. */
  books(): Books {
    const now = this.engineNow;
    const { ledger } = this.ledger;
    const { accounts } = snapshotPage(ledger, { after: null, limit: Infinity });
    const withViews = accounts.flatMap((account) => {
      const view = accountView(ledger, { agentId: account.agentId, now }, now);
      return view === null ? [] : [[account.agentId, { ...account, view }] as const];
    });
    return {
      now,
      caps: capsView(ledger, now),
      accounts: new Map(withViews),
      lives: new Map([...this.agents].map(([agentId, { state }]) => [agentId, summarize(state)])),
      records: this.records.agents,
      recordedCaps: new Map([null, ...TEAMS].map((teamId) => [teamId, this.records.cap(teamId)])),
      paymentRecords: this.records.payments,
      pendingApprovals: new Set(this.records.pending.keys()),
      network: this.processor.books(),
    };
  }

  /** Whether the records lack something that the network has done. */
  get isBehindItsNetwork(): boolean {
    for (const [transactionId, books] of this.processor.books()) {
      const recorded = this.records.payments.get(transactionId)?.books?.authorizations ?? [];
      if (!isDeepStrictEqual(recorded, books)) return true;
    }
    return false;
  }

  /** Books what the network has done and nobody has read of yet. */
  async readNetworks(): Promise<void> {
    if (this.#isReadingNetworks) return;
    this.#isReadingNetworks = true;
    const read = this.#networksReadThrough;
    const since = perRail((rail) => read[rail] - NETWORKS_OVERLAP_MS);
    const booked = await this.#activity(({ bookNetworks }) => bookNetworks({ since }), Infinity);
    this.#networksReadThrough = perRail((rail) => Math.max(read[rail], booked[rail]));
    this.networkReads += 1;
    this.#isReadingNetworks = false;
  }

  /** As the workflow that watches them. */
  async #watchNetworks(): Promise<void> {
    for (;;) {
      await this.timeline.sleep(NETWORKS_READ_EVERY_MS, true);
      await this.readNetworks();
    }
  }

  /** The network tells of what it does; some hints are lost, some come twice, or too early. */
  #hint(transactionId: string, changesAt: readonly number[]): void {
    const random = this.#hints;
    for (const [number, at] of changesAt.entries()) {
      for (let hints = random.pick([0, 1, 1, 2]); hints > 0; hints -= 1) {
        const afterMs = at - this.timeline.now + random.between(-HINT_EARLY_MS, HINT_LATE_MAX_MS);
        const play = () =>
          this.#activity(
            ({ playNetworkEffect }) => playNetworkEffect({ rail: "card", transactionId, number }),
            ACTIVITY_ATTEMPTS,
          ).catch(() => undefined);
        this.timeline.after(Math.max(1, afterMs), () => void play(), true);
      }
    }
  }

  /** The cap of the project (null) or a team, as it is now. */
  capOf(teamId: string | null) {
    const { ledger } = this.ledger;
    return (teamId === null ? ledger.project : levelOf(ledger, teamId)).cap;
  }

  setWeather(isClear: boolean): void {
    this.network.weather = isClear ? CLEAR : STORMY;
  }

  #startProcess(): void {
    this.#processes.push(new ServiceProcess(this.nextId("process"), this.#surroundings));
  }

  #activities(): ActorDependencies["activities"] {
    const run =
      <I, T>(choose: (activities: ServiceProcess["activities"]) => (input: I) => Promise<T>) =>
      (input: I): Promise<T> =>
        this.#activity((activities) => choose(activities)(input), ACTIVITY_ATTEMPTS);
    return {
      executePayments: run((activities) => activities.executePayments),
      mirrorLimits: run((activities) => activities.mirrorLimits),
      tellActors: run((activities) => activities.tellActors),
      writeAccounts: run((activities) => activities.writeAccounts),
      writeCaps: run((activities) => activities.writeCaps),
      writeAgent: run((activities) => activities.writeAgent),
      followInLedger: run((activities) => activities.followInLedger),
      detachWallet: run((activities) => activities.detachWallet),
      closeDeliveryWindow: run((activities) => activities.closeDeliveryWindow),
    };
  }

  async #activity<T>(
    work: (activities: ServiceProcess["activities"]) => Promise<T>,
    attempts: number,
  ): Promise<T> {
    for (let attempt = 1; ; attempt += 1) {
      const process = this.process();
      try {
        return await process.host.serve(() => work(process.activities));
      } catch (error) {
        this.#expectFailure(error);
        if (attempt >= attempts) throw error;
        await this.timeline.sleep(Math.min(60_000, 1_000 * 2 ** Math.min(attempt, 6)));
      }
    }
  }

  #expectFailure(error: unknown): void {
    const isExpected =
      error instanceof Unavailable ||
      error instanceof LineBroken ||
      error instanceof Superseded ||
      error instanceof Fenced ||
      error instanceof NoSuchActor ||
      error instanceof ActorUnavailable ||
      // A hint came too early.
      (error instanceof Error && error.message.endsWith("was not sent yet"));
    if (!isExpected) this.observer.broke("a process", error);
  }
}
