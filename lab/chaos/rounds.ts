import { setTimeout as sleep } from "node:timers/promises";
import pLimit from "p-limit";
import type { Random } from "../random.ts";
import { Aging } from "./aging.ts";
import { compare } from "./audit/compare.ts";
import { Reader, type Scope } from "./audit/reader.ts";
import { Changes, type KnownStops, resumeAll } from "./changes.ts";
import { ForeignSender } from "./foreign.ts";
import { Service } from "./http.ts";
import { finishRaises } from "./limit-changes.ts";
import { CLIENTS, finish, Load } from "./load.ts";
import { longestGapMs, type RoundResult, roundText, type RunResult, type Usage } from "./report.ts";
import { Shop } from "./shop.ts";
import type { Disaster, Site } from "./site.ts";
import { Tenant } from "./tenant.ts";
import { Tickets } from "./tickets.ts";
import { reasonOf, reasonsOf, untilNothingIsMissing } from "./until.ts";

const LOAD_MS = 5_000;
/** The disaster comes between these, into the load. */
const STRIKE_MIN_MS = 500;
const STRIKE_MAX_MS = 3_500;
/** The load goes on at least so long after everything is back. */
const AFTERWARDS_MS = 1_000;
const SETTLED_MS = 120_000;
/** Organizations live for so many rounds, so that one round's audit does not grow with the run. */
const ROUNDS_PER_TENANT = 10;
/** In every other round caps are over the agents; in between there are none. */
const CAPPED_EVERY = 2;
const RECEIPTS_PER_ROUND = 1_000;
const CREATED_AT_ONCE = 4;
/**
 * Before a quiet event so many payments are made, and until none fails for so long: what is measured does not include
 * compilers and empty caches.
 */
const WARM_UP_PAYMENTS = 1_500;
const WARM_UP_MS = 15_000;
const WARM_UP_MAX_MS = 180_000;
/** Clients of all organizations in a quiet event. More than the machine serves would be measured with what is refused. */
const QUIET_CLIENTS = 16;

export interface RoundsOptions {
  readonly site: Site;
  readonly seed: number;
  readonly random: Random;
  /** One a round. */
  readonly disasters: readonly Disaster[];
  /** Organizations that pay at the same time, each with a project of its own. */
  readonly tenants: number;
  /**
   * Whether approvals' records are made older than their retention. Their payments' records keep their age, so that
   * `reconcile` misses the approvals.
   */
  readonly agesRecords: boolean;
  readonly say: (line: string) => void;
}

/** Plays rounds, and audits the books after each and at the end. Ends with the first round that leaves a difference. */
export async function playRounds(options: RoundsOptions): Promise<RunResult> {
  const shop = await Shop.open(options.site);
  try {
    return await new Rounds(options, shop).all();
  } finally {
    await shop.close();
  }
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

/** The parts of a round that act on one organization. */
interface Acts {
  readonly tenant: Tenant;
  readonly load: Load;
  /** Null: no one changes anything. */
  readonly changes: Changes | null;
}

class Rounds {
  readonly #options: RoundsOptions;
  readonly #shop: Shop;
  readonly #tickets: Tickets;
  readonly #foreign: ForeignSender;
  readonly #tenants: Tenant[] = [];
  readonly #stops: KnownStops = { stopped: [], restricted: [], lateResumes: new Map() };
  /** Oddities and endings that rounds have reported already. */
  readonly #reported = new Set<string>();

  constructor(options: RoundsOptions, shop: Shop) {
    this.#options = options;
    this.#shop = shop;
    this.#tickets = new Tickets(new Service(options.site.baseUrls));
    this.#foreign = new ForeignSender(options.site);
  }

  async all(): Promise<RunResult> {
    const { disasters, say, seed, site } = this.#options;
    const startedAt = new Date();
    const reader = await Reader.open(site);
    const aging = await Aging.open(site.addresses.mongodbUri);
    try {
      const rounds: RoundResult[] = [];
      for (const [index, disaster] of disasters.entries()) {
        const round = await this.#round(index + 1, disaster, { reader, aging });
        rounds.push(round);
        say(roundText(round, disasters.length));
        // Later rounds would only repeat it.
        if (round.differences.length > 0) break;
      }
      const scope = this.#scope(this.#tenants, Infinity, aging);
      const differences = await differencesIn(reader, scope);
      return {
        seed,
        startedAt: startedAt.toISOString(),
        seconds: (Date.now() - startedAt.getTime()) / 1_000,
        rounds,
        kills: rounds.reduce((sum, { kills }) => sum + kills, 0),
        payments: scope.tickets.length,
        retries: this.#tickets.retries,
        deliveries: site.letterbox.requests,
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

  async #round(round: number, disaster: Disaster, books: CurrentBooks): Promise<RoundResult> {
    const random = this.#options.random.fork(`round ${String(round)}`);
    const tickets = this.#tickets;
    const tenants = await this.#tenantsOf(round);
    if (this.#options.agesRecords) await books.aging.age();
    await books.aging.unremoved();
    const [paymentsBefore, retriesBefore] = [tickets.all.length, tickets.retries];
    const { areClocksCorrect, isQuiet = false } = disaster;
    const prepared = [];
    for (const tenant of tenants) {
      await tenant.setCaps(round % CAPPED_EVERY === 0 && !isQuiet);
      prepared.push({ tenant, brief: isQuiet ? null : await tenant.createBrief(round) });
    }
    tickets.takeAnswers();
    const probe = isQuiet ? null : ((await this.#options.site.probe?.()) ?? null);
    const startedAt = performance.now();
    const acts = prepared.map(({ brief, tenant }, index): Acts => {
      const own = random.fork(`tenant ${String(index)}`);
      const staying = tenant.agents.filter(({ isBrief }) => !isBrief);
      const agents = brief === null ? staying : [...staying, brief];
      const name = `${String(round)}-${String(index)}`;
      const clients = isQuiet ? Math.min(CLIENTS, Math.ceil(QUIET_CLIENTS / tenants.length)) : CLIENTS;
      const shared = { shop: this.#shop, tickets, areClocksCorrect, clients, isPlain: isQuiet };
      const load = new Load({ ...shared, tenant, agents, random: own.fork("load"), name });
      const changes = brief === null ? null : new Changes(tenant, brief, own.fork("changes"), this.#stops);
      return { tenant, load, changes };
    });
    if (isQuiet) await this.#warmUp();
    else await sleep(random.between(STRIKE_MIN_MS, STRIKE_MAX_MS));
    const atMs = performance.now() - startedAt;
    const stopAll = (forMs: number) =>
      Promise.all(acts.flatMap(({ changes }) => changes?.stopAll(forMs) ?? []));
    const accomplices = { stopAll, foreign: this.#foreign, claimAll: () => finish(tickets) };
    const meter = isQuiet ? this.#meter() : null;
    const { kills, over, what } = disaster.strike(accomplices, random.fork("disaster"));
    await over;
    const usage = meter?.() ?? null;
    const backMs = performance.now() - startedAt - atMs;
    await sleep(Math.max(AFTERWARDS_MS, LOAD_MS - (performance.now() - startedAt)));
    const endedAt = performance.now();
    const engineGapMs = (await probe?.stop()) ?? null;
    await Promise.all(
      acts.flatMap(({ changes, load }) => [load.stop(), changes?.stop() ?? Promise.resolve()]),
    );
    const answers = tickets.takeAnswers();
    const gapOf = (tenant: Tenant): number => {
      const ids = new Set(tenant.agents.map(({ id }) => id));
      const own = answers.filter(({ agentId }) => ids.has(agentId));
      return longestGapMs(own, { startedAt, endedAt });
    };
    const settled = await this.#settle(tenants, books);
    return {
      round,
      disaster: what,
      atMs,
      kills,
      backMs,
      payments: tickets.all.length - paymentsBefore,
      changes: acts.reduce((sum, { changes }) => sum + (changes?.made ?? 0), 0),
      retries: tickets.retries - retriesBefore,
      slowestAnswerMs: tickets.takeSlowestMs(),
      gapMs: longestGapMs(answers, { startedAt, endedAt }),
      worstProjectGapMs: Math.max(...tenants.map(gapOf)),
      engineGapMs,
      usage,
      settledMs: settled.ms,
      differences: [...settled.differences, ...this.#newOddities()],
    };
  }

  async #warmUp(): Promise<void> {
    const tickets = this.#tickets;
    const endsAt = performance.now() + WARM_UP_MAX_MS;
    let retries: number;
    do {
      ({ retries } = tickets);
      await sleep(WARM_UP_MS);
    } while (
      (tickets.retries > retries || tickets.answered < WARM_UP_PAYMENTS) &&
      performance.now() < endsAt
    );
  }

  /** Measures from now on, until the returned function is called. Null: the site does not tell. */
  #meter(): (() => Usage) | null {
    const { site, tenants } = this.#options;
    const before = site.processorMs?.() ?? null;
    if (before === null) return null;
    const from = performance.now();
    const count = this.#tickets.answered;
    return () => {
      const payments = this.#tickets.answered - count;
      const after = Object.entries(site.processorMs?.() ?? {});
      const per = after.map(([name, ms]) => [name, (ms - (before[name] ?? 0)) / Math.max(1, payments)]);
      const perSecond = (payments * 1_000) / (performance.now() - from);
      return {
        projects: tenants,
        paymentsPerSecond: perSecond,
        processorMsPerPayment: Object.fromEntries(per),
      };
    };
  }

  /** Waits until nothing is left to do, then compares. What does not come to rest is a difference too. */
  async #settle(
    tenants: readonly Tenant[],
    { aging, reader }: CurrentBooks,
  ): Promise<{ ms: number; differences: readonly string[] }> {
    const startedAt = performance.now();
    const scope = this.#scope(tenants, RECEIPTS_PER_ROUND, aging);
    const late: string[] = [];
    try {
      await untilNothingIsMissing("the service comes to rest", SETTLED_MS, async () => {
        for (const tenant of tenants) await Promise.all([resumeAll(tenant), finishRaises(tenant)]);
        const unanswered = await finish(this.#tickets);
        if (unanswered > 0) return `${String(unanswered)} payments have no answer`;
        return this.#shop.unsettled() ?? (await reader.unfinished(scope)) ?? aging.unremoved();
      });
    } catch (error) {
      late.push(reasonOf(error));
    }
    const ms = performance.now() - startedAt;
    return { ms, differences: [...late, ...(await differencesIn(reader, scope))] };
  }

  async #tenantsOf(round: number): Promise<readonly Tenant[]> {
    const { site, tenants: count } = this.#options;
    const current = this.#tenants.slice(-count);
    if (current.length > 0 && (round - 1) % ROUNDS_PER_TENANT > 0) {
      for (const { owner } of current) await owner.freshen();
      return current;
    }
    const numbers = Array.from({ length: count }, (_none, index) => this.#tenants.length + index + 1);
    const created = await pLimit(CREATED_AT_ONCE).map(numbers, (number) => Tenant.create(site, number));
    this.#tenants.push(...created);
    return this.#tenants.slice(-count);
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
      restricted: this.#stops.restricted.filter(({ agentIds }) => agentIds.some((id) => ids.has(id))),
      spendLimits: tenants.flatMap(({ spendLimits }) => spendLimits),
      tickets: this.#tickets.all.filter(({ order }) => ids.has(order.agent.id)),
      receiptsMax,
      shop: this.#shop.payTo,
      foreign: this.#foreign.sent,
      removed: aging.approvals,
    };
  }

  #newOddities(): string[] {
    const { endings, fatal } = this.#options.site;
    const fresh = [...this.#tickets.oddities, ...endings].filter((line) => !this.#reported.has(line));
    for (const line of fresh) this.#reported.add(line);
    return fatal === null ? fresh : [...fresh, `an engine stays down: ${fatal}`];
  }
}
