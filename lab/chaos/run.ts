import { mkdtemp, realpath, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { Aging } from "./aging.ts";
import { compare } from "./audit/compare.ts";
import { Reader, type Scope } from "./audit/reader.ts";
import { type DisasterName, DISASTERS, strike } from "./disasters.ts";
import { ForeignSender } from "./foreign.ts";
import { finish, Load } from "./load.ts";
import { Changes, type KnownStops, resumeAll } from "./changes.ts";
import { Service } from "./http.ts";
import type { ChaosOptions } from "./options.ts";
import { Deployment } from "./deployment.ts";
import { Random } from "../random.ts";
import { type ChaosResult, type RoundResult, roundText } from "./report.ts";
import { Tenant } from "./tenant.ts";
import { Tickets } from "./tickets.ts";
import { reasonOf, reasonsOf, untilNothingIsMissing } from "./until.ts";

type Say = (line: string) => void;

const LOAD_MS = 5_000;
/** The disaster comes between these, into the load. */
const STRIKE_MIN_MS = 500;
const STRIKE_MAX_MS = 3_500;
/** The load goes on at least so long after everything is back. */
const AFTERWARDS_MS = 1_000;
const SETTLED_MS = 120_000;
/** An organization lives for so many rounds, so that one round's audit does not grow with the run. */
const ROUNDS_PER_TENANT = 10;
/** In every other round caps are over the agents; in between there are none. */
const CAPPED_EVERY = 2;
const RECEIPTS_PER_ROUND = 1_000;

/** One run: everything up, rounds, a last audit of it all, everything down again, whatever happens. */
export async function runChaos(options: ChaosOptions, say: Say): Promise<ChaosResult> {
  const dataDir = await realpath(await mkdtemp(join(tmpdir(), "spending-control-chaos-")));
  say(`seed ${String(options.seed)}, data in ${dataDir}`);
  const interrupted = interruption();
  let passed = false;
  try {
    const deployment = await Promise.race([Deployment.start(dataDir, say), interrupted]);
    try {
      const result = await Promise.race([new ChaosRun(options, deployment, say).all(), interrupted]);
      ({ passed } = result);
      return { ...result, dataDir: options.keep && !passed ? dataDir : null };
    } finally {
      await deployment.stop();
    }
  } finally {
    if (passed || !options.keep) await rm(dataDir, { recursive: true, force: true, maxRetries: 5 });
    else say(`kept: ${dataDir}`);
  }
}

/** Rejects when the operator ends the run, so that nothing of it is left running. */
function interruption(): Promise<never> {
  return new Promise((_resolve, reject) => {
    for (const signal of ["SIGINT", "SIGTERM"] as const) {
      process.once(signal, () => reject(new Error(`interrupted by ${signal}`)));
    }
  });
}

/** Books that can't be read, for an actor that answers nothing perhaps, are a finding and not the end of the run. */
const differencesIn = (reader: Reader, scope: Scope): Promise<readonly string[]> =>
  reader
    .books(scope)
    .then(compare, (error: unknown) => [`the books can't be read: ${reasonsOf(error).join(": ")}`]);

interface CurrentBooks {
  readonly reader: Reader;
  readonly aging: Aging;
}

class ChaosRun {
  readonly #options: ChaosOptions;
  readonly #deployment: Deployment;
  readonly #say: Say;
  readonly #random: Random;
  readonly #tickets: Tickets;
  readonly #foreign: ForeignSender;
  readonly #tenants: Tenant[] = [];
  readonly #stops: KnownStops = { stopped: [], lateResumes: new Map() };
  /** Oddities and endings that rounds have reported already. */
  readonly #reported = new Set<string>();

  constructor(options: ChaosOptions, deployment: Deployment, say: Say) {
    this.#options = options;
    this.#deployment = deployment;
    this.#say = say;
    this.#random = new Random(options.seed);
    this.#tickets = new Tickets(new Service(deployment.baseUrls));
    this.#foreign = new ForeignSender(deployment);
  }

  async all(): Promise<ChaosResult> {
    const startedAt = new Date();
    const reader = await Reader.open(this.#deployment);
    const aging = await Aging.open(this.#deployment.addresses.mongodbUri);
    try {
      const rounds: RoundResult[] = [];
      for (const [index, disaster] of this.#disasters().entries()) {
        const round = await this.#round(index + 1, disaster, { reader, aging });
        rounds.push(round);
        this.#say(roundText(round, this.#options.rounds));
        // Later rounds would only repeat it.
        if (round.differences.length > 0) break;
      }
      const scope = this.#scope(this.#tenants, Infinity, aging);
      const differences = await differencesIn(reader, scope);
      return {
        seed: this.#options.seed,
        startedAt: startedAt.toISOString(),
        seconds: (Date.now() - startedAt.getTime()) / 1_000,
        rounds,
        kills: rounds.reduce((sum, { kills }) => sum + kills, 0),
        payments: scope.tickets.length,
        retries: this.#tickets.retries,
        deliveries: this.#deployment.letterbox.requests,
        chainTransactions: await reader.chainTransactions(),
        foreignTransactions: this.#foreign.sent.length,
        agedRecords: aging.aged,
        differences,
        passed: differences.length === 0 && rounds.every((round) => round.differences.length === 0),
        dataDir: null,
      };
    } finally {
      await Promise.all([reader.close(), aging.close()]);
    }
  }

  /** All kinds in turn, each time in another order. */
  #disasters(): DisasterName[] {
    const random = this.#random.fork("disasters");
    const chosen: DisasterName[] = [];
    while (chosen.length < this.#options.rounds) chosen.push(...random.shuffled(DISASTERS));
    return chosen.slice(0, this.#options.rounds);
  }

  async #round(round: number, disaster: DisasterName, books: CurrentBooks): Promise<RoundResult> {
    const random = this.#random.fork(`round ${String(round)}`);
    const tickets = this.#tickets;
    const tenant = await this.#tenantOf(round);
    await books.aging.age();
    await books.aging.unremoved();
    await tenant.setCaps(round % CAPPED_EVERY === 0);
    const [paymentsBefore, retriesBefore] = [tickets.all.length, tickets.retries];
    const brief = await tenant.createBrief(round);
    const agents = [...tenant.agents.filter(({ isBrief }) => !isBrief), brief];
    const load = new Load({
      tenant,
      agents,
      tickets,
      random: random.fork("load"),
      name: String(round),
      areClocksCorrect: disaster !== "clocks",
    });
    const changes = new Changes(tenant, brief, random.fork("changes"), this.#stops);
    const startedAt = performance.now();
    const atMs = random.between(STRIKE_MIN_MS, STRIKE_MAX_MS);
    await sleep(atMs);
    const { kills, over, what } = strike(
      disaster,
      this.#deployment,
      { changes, foreign: this.#foreign },
      random.fork("disaster"),
    );
    await over;
    const backMs = performance.now() - startedAt - atMs;
    await sleep(Math.max(AFTERWARDS_MS, LOAD_MS - (performance.now() - startedAt)));
    await Promise.all([load.stop(), changes.stop()]);
    const settled = await this.#settle(tenant, books);
    return {
      round,
      disaster: what,
      atMs,
      kills,
      backMs,
      payments: tickets.all.length - paymentsBefore,
      changes: changes.made,
      retries: tickets.retries - retriesBefore,
      slowestAnswerMs: tickets.takeSlowestMs(),
      settledMs: settled.ms,
      differences: [...settled.differences, ...this.#newOddities()],
    };
  }

  /** Waits until nothing is left to do, then compares. What does not come to rest is a difference too. */
  async #settle(
    tenant: Tenant,
    { aging, reader }: CurrentBooks,
  ): Promise<{ ms: number; differences: readonly string[] }> {
    const startedAt = performance.now();
    const scope = this.#scope([tenant], RECEIPTS_PER_ROUND, aging);
    const late: string[] = [];
    try {
      await untilNothingIsMissing("the service comes to rest", SETTLED_MS, async () => {
        await resumeAll(tenant);
        const unanswered = await finish(this.#tickets);
        if (unanswered > 0) return `${String(unanswered)} payments have no answer`;
        return (await reader.unfinished(scope)) ?? aging.unremoved();
      });
    } catch (error) {
      late.push(reasonOf(error));
    }
    const ms = performance.now() - startedAt;
    return { ms, differences: [...late, ...(await differencesIn(reader, scope))] };
  }

  async #tenantOf(round: number): Promise<Tenant> {
    const current = this.#tenants.at(-1);
    if (current !== undefined && (round - 1) % ROUNDS_PER_TENANT > 0) {
      await current.owner.freshen();
      return current;
    }
    const tenant = await Tenant.create(this.#deployment, this.#tenants.length + 1);
    this.#tenants.push(tenant);
    return tenant;
  }

  #scope(tenants: readonly Tenant[], receiptsMax: number, aging: Aging): Scope {
    const agents = tenants.flatMap((tenant) => tenant.agents);
    const ids = new Set(agents.map(({ id }) => id));
    return {
      organizationIds: tenants.map(({ organizationId }) => organizationId),
      projectIds: tenants.map(({ projectId }) => projectId),
      caps: tenants.flatMap(({ caps, projectId }) => caps.map((cap) => ({ ...cap, projectId }))),
      letters: tenants.flatMap(({ letters, organizationId }) =>
        letters.map((each) => ({ ...each, organizationId })),
      ),
      agents,
      stopped: this.#stops.stopped.filter(({ agentId }) => ids.has(agentId)),
      tickets: this.#tickets.all.filter(({ order }) => ids.has(order.agent.id)),
      receiptsMax,
      foreign: this.#foreign.sent,
      removed: aging.approvals,
    };
  }

  #newOddities(): string[] {
    const { endings, engines } = this.#deployment;
    const fresh = [...this.#tickets.oddities, ...endings].filter((line) => !this.#reported.has(line));
    for (const line of fresh) this.#reported.add(line);
    return engines.fatal === null ? fresh : [...fresh, `an engine stays down: ${engines.fatal}`];
  }
}
