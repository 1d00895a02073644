import { Superseded } from "../../activities/effects.ts";
import type { PaymentActivities } from "../../activities/payments.ts";
import { summarize } from "../../src/domain/agent/state.ts";
import type { BudgetPolicy } from "../../src/domain/agent/policy.ts";
import type { AgentProfile } from "../../src/domain/agent/state.ts";
import { Random } from "../random.ts";
import { AgentActor, type ActorDependencies, BudgetActor } from "./actors.ts";
import type { Books, Observer } from "./audit/observer.ts";
import { LineBroken, Processor, Records } from "./counterparts.ts";
import type { Domain } from "./domain.ts";
import { CALM, Host, Network, Unavailable, type Weather } from "./network.ts";
import { ServiceProcess, type Surroundings } from "./process.ts";
import { shownOf } from "./shown.ts";
import { Timeline } from "./timeline.ts";
import { DurableWorkflows } from "./workflows.ts";

const PROCESSES = 3;
const PROJECT = "project-1";
export const TEAMS = ["team-1", "team-2", "team-3"] as const;

/** An activity is tried so often before its actor gives it up for now; a workflow's own, for ever. */
const ACTIVITY_ATTEMPTS = 4;

/** Evenings before days that are not like others: a year's end, a leap day, and the days around it. */
const EVENINGS = [Date.UTC(2026, 11, 31, 20), Date.UTC(2028, 1, 28, 20), Date.UTC(2027, 1, 28, 20)] as const;

/** How long people have to decide; short, so that many windows close within a run. */
const APPROVAL_WINDOWS_SECONDS = [60, 3_600, 86_400] as const;

export const STORMY: Weather = { lost: 0.01, late: 0.05, twice: 0.04 };

/** One project with all that is around it: actors, processes that die, a network that fails, a rail and the records. */
export class World {
  readonly random: Random;
  readonly timeline: Timeline;
  readonly network: Network;
  readonly records: Records;
  readonly processor: Processor;
  readonly budget: BudgetActor;
  readonly agents = new Map<string, AgentActor>();
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

  constructor(seed: number, domain: Domain, observer: Observer) {
    this.random = new Random(seed);
    this.observer = observer;
    this.#domain = domain;
    this.timeline = new Timeline(this.random.pick(EVENINGS));
    this.network = new Network(this.timeline, this.random.fork("network"), STORMY);
    this.records = new Records(observer);
    this.processor = new Processor(this.timeline, observer);
    this.#workflows = new DurableWorkflows(this.timeline, this.random.fork("timers"), (work) =>
      this.#activity(work, Infinity),
    );
    this.#actorDependencies = {
      domain,
      timeline: this.timeline,
      observer,
      outside: {
        activity: (work) => this.#activity(work, ACTIVITY_ATTEMPTS),
        agentsUnder: (teams) => this.process().agentsUnder(teams),
        writeSummary: (agentId, summary) => this.process().writeSummary(agentId, summary),
      },
    };
    this.budget = new BudgetActor(this.#actorDependencies, domain.initialBudgetState("org-1", PROJECT));
    this.#surroundings = {
      domain,
      timeline: this.timeline,
      network: this.network,
      observer,
      processor: this.processor,
      records: this.records,
      agents: this.agents,
      budget: this.budget,
      workflows: this.#workflows,
      approvalWindowSeconds: this.random.pick(APPROVAL_WINDOWS_SECONDS),
    };
    for (let index = 0; index < PROCESSES; index += 1) this.#startProcess();
  }

  get sweeps(): number {
    let sweeps = this.budget.sweeps;
    for (const { sweeps: ofAgent } of this.agents.values()) sweeps += ofAgent;
    return sweeps;
  }

  get expiries(): number {
    return this.#workflows.expiries;
  }

  nextId(prefix: string): string {
    this.#numbered += 1;
    return `${prefix}_${String(this.#numbered)}`;
  }

  /** `asks` false: an actor from before there were caps. */
  createAgent(policy: BudgetPolicy, asks: boolean): void {
    const { now } = this.timeline;
    const agentId = this.nextId("agent");
    const place = { organizationId: "org-1", projectId: PROJECT, teamId: this.random.pick(TEAMS) };
    const profile = { ...place, agentId, name: agentId };
    // Actors from before there were caps do not know of their keys, either.
    const firstKey = { keyId: this.nextId("akey"), lineageId: null, deliverableUntil: now };
    const state = this.#domain.initialAgentState(profile, policy, now, asks ? firstKey : undefined, asks);
    this.records.agents.set(agentId, { teamId: place.teamId, summary: summarize(state) });
    this.agents.set(agentId, new AgentActor(this.#actorDependencies, state));
    this.profiles.push(profile);
    const keys = { firstKey: asks ? firstKey : null, recordedKeyId: firstKey.keyId };
    this.observer.agentCreated(profile, policy, keys);
  }

  process(): ServiceProcess {
    return this.random.pick(this.#processes);
  }

  /** A client's request to any process; null where it had no answer, whatever was done. */
  async request<T>(work: (process: ServiceProcess) => Promise<T>): Promise<T | null> {
    const process = this.process();
    try {
      return await process.host.serve(() => work(process));
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

  /** Everybody's books, laid open. */
  books(): Books {
    const { used } = this.budget.state;
    const { now } = this.timeline;
    return {
      now,
      agents: new Map([...this.agents].map(([agentId, { state }]) => [agentId, shownOf(state, now)])),
      agentRecords: new Map([...this.records.agents].map(([agentId, { summary }]) => [agentId, summary])),
      paymentRecords: this.records.payments,
      pendingApprovals: this.records.pending,
      budget: used,
      ledger: this.processor.ledger(),
    };
  }

  calm(isCalm: boolean): void {
    this.network.weather = isCalm ? CALM : STORMY;
  }

  #startProcess(): void {
    this.#processes.push(new ServiceProcess(this.nextId("process"), this.#surroundings));
  }

  async #activity<T>(work: (activities: PaymentActivities) => Promise<T>, attempts: number): Promise<T> {
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
      error instanceof Unavailable || error instanceof LineBroken || error instanceof Superseded;
    if (!isExpected) this.observer.broke("a process", error);
  }
}
