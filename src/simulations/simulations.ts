import { setImmediate as nextTurn } from "node:timers/promises";
import type { Document } from "mongodb";
import { zoneAround } from "../actors/calendar-zone.ts";
import { type Calendar, PERIODS, UTC_CALENDAR } from "../domain/ledger/calendar.ts";
import { RAILS } from "../domain/ledger/payment.ts";
import type { Cap } from "../domain/ledger/state.ts";
import { refusal } from "../domain/errors.ts";
import { ok, refused, type Result } from "../domain/result.ts";
import type { ReadyRule } from "../domain/rules/rules.ts";
import type { ZoneOffsets } from "../domain/rules/time-window.ts";
import type { SimulatedMoves } from "../domain/simulation/moves.ts";
import { type PastPayment, payeesOf } from "../domain/simulation/past-payment.ts";
import { Simulation } from "../domain/simulation/simulation.ts";
import type { Collections } from "../store/collections.ts";
import type { ProjectDocument } from "../store/documents.ts";
import type { Deadline } from "../lib/deadline.ts";
import { TimeoutError } from "../lib/with-timeout.ts";
import { zoneOffsets } from "../lib/zone-offset.ts";
import { Documents, type SimulatedChange } from "./documents.ts";
import {
  type Earlier,
  NOTHING,
  PastRecords,
  type PastRecord,
  pastPaymentOf,
  PAYMENTS_MAX,
  type Reach,
  type Start,
} from "./past-records.ts";

/** Simulations of replaced limits, rules, restrictions and calendars on the payments actually made. */

export interface SimulationsDependencies {
  readonly collections: Pick<Collections, "agents" | "projects" | "ruled" | "teams" | "transactions">;
  readonly approvalWindowSeconds: number;
  readonly clock: () => Date;
}

/** The agent, team or project whose document is replaced. */
export interface SimulatedTarget {
  readonly level: "agent" | "team" | "project";
  readonly id: string;
  readonly projectId: string;
  readonly teamId: string | null;
}

export type SimulationResult = SimulatedMoves & { readonly assumptions: readonly string[] };

const DAY_MS = 86_400_000;

/** Records in memory at once. */
const PAGE = 500;
/** Maximum time for which a simulation blocks the process. */
const SLICE_MS = 5;

const RUNNING = refusal("SIMULATION_RUNNING", undefined, { retryAfterSeconds: 5 });

const ASSUMPTIONS = [
  "What is not part of the change is as it is now, whenever it was changed.",
  "Limits count as they are set: what people have raised for a time is left out.",
  "Agents make the same payments: what one does after another answer is not guessed.",
  "A payment that is newly approved is charged in full at once.",
  "A payment that was held gets the decision that it got; one that is newly held gets none, and expires.",
  "Payments that were refused because their agent was paused or archived stay refused.",
  "Payments from before the range count with what has become of them since.",
];

interface Run {
  readonly simulation: Simulation;
  readonly documents: Documents;
  readonly target: SimulatedTarget;
  readonly earlier: Earlier;
  readonly startsAt: Date;
  /** Earlier payments only count. */
  readonly since: Date;
  /** Whether a rule needs an agent's earlier payees. */
  asksForPayees: boolean;
  readonly payees: Set<string>;
}

export class Simulations {
  readonly #dependencies: SimulationsDependencies;
  readonly #records: PastRecords;
  readonly #running = new Set<string>();

  constructor(dependencies: SimulationsDependencies) {
    this.#dependencies = dependencies;
    this.#records = new PastRecords(dependencies.collections.transactions);
  }

  /** Runs a simulation, one at a time per organization. */
  async run(
    organizationId: string,
    target: SimulatedTarget,
    change: SimulatedChange,
    rangeDays: number,
    deadline: Pick<Deadline, "isAwaited">,
  ): Promise<Result<SimulationResult>> {
    if (this.#running.has(organizationId)) return refused(RUNNING);
    this.#running.add(organizationId);
    try {
      return ok(await this.#run(target, new Documents(target.id, change), rangeDays, deadline));
    } finally {
      this.#running.delete(organizationId);
    }
  }

  async #run(
    target: SimulatedTarget,
    documents: Documents,
    rangeDays: number,
    deadline: Pick<Deadline, "isAwaited">,
  ): Promise<SimulationResult> {
    const { approvalWindowSeconds, clock, collections } = this.#dependencies;
    const now = clock();
    const project = await collections.projects.findOne({ _id: target.projectId });
    if (project === null) throw new Error("the simulated project has no record");
    const reach = await this.#reachOf(target, documents, project);
    const since = await this.#records.startOf(reach, new Date(now.getTime() - rangeDays * DAY_MS), now);
    const windowMs = await this.#longestWindowMs(documents, project);
    const backMs = Math.max(DAY_MS, approvalWindowSeconds * 1_000, windowMs);
    const { at: startsAt } = await this.#records.startOf(
      reach,
      new Date(since.at.getTime() - backMs),
      since.at,
    );
    const calendar = calendarOver(documents, project, startsAt);
    const earlier = await this.#records.earlier(reach, startsAt, calendar);
    const rules = documents.rulesOf(project);
    const simulation = new Simulation({
      cap: documents.capOf(project),
      rules,
      restrictions: documents.restrictionsOf(project._id, project.restrictions),
      earlier: earlier.get(project._id) ?? NOTHING,
      calendar,
      approvalWindowSeconds,
      offsetsOf: offsetsOver(startsAt, now),
      startsAt: startsAt.getTime(),
    });
    const run: Run = {
      documents,
      earlier,
      simulation,
      since: since.at,
      startsAt,
      target,
      asksForPayees: asksForPayees(rules),
      payees: new Set(),
    };
    await this.#judgeAll(run, { ...reach.filter, createdAt: { $gte: startsAt, $lt: now } }, deadline);
    return { ...simulation.end(now.getTime()), assumptions: assumptionsOf(target, reach, since) };
  }

  async #reachOf(target: SimulatedTarget, documents: Documents, project: ProjectDocument): Promise<Reach> {
    const { id, level, projectId, teamId } = target;
    const rail = { $in: [...RAILS] };
    if (level === "project" || isLimited(documents.capOf(project)))
      return { level: "project", filter: { projectId, rail } };
    const team = await this.#dependencies.collections.teams.findOne({ _id: teamId ?? id });
    if (level === "team" || (team !== null && isLimited(documents.capOf(team))))
      return { level: "team", filter: { teamId: teamId ?? id, rail } };
    return { level, filter: { agentId: id, rail } };
  }

  async #longestWindowMs(documents: Documents, project: ProjectDocument): Promise<number> {
    const projection = { approvalRules: 1 } as const;
    const { teams } = this.#dependencies.collections;
    const ofTeams = teams.find({ projectId: project._id, approvalRules: { $exists: true } }, { projection });
    let seconds = documents.longestWindowSeconds(project);
    for await (const team of ofTeams) seconds = Math.max(seconds, documents.longestWindowSeconds(team));
    return seconds * 1_000;
  }

  /** Reads and judges page by page, letting other work run in between. */
  async #judgeAll(run: Run, filter: Document, deadline: Pick<Deadline, "isAwaited">): Promise<void> {
    const records = this.#records.within(filter, PAGE);
    let page: PastRecord[] = [];
    for await (const record of records) {
      page.push(record);
      if (page.length < PAGE) continue;
      await this.#judgePage(run, page, deadline);
      page = [];
    }
    await this.#judgePage(run, page, deadline);
  }

  async #judgePage(
    run: Run,
    page: readonly PastRecord[],
    deadline: Pick<Deadline, "isAwaited">,
  ): Promise<void> {
    await this.#addAgents(run, page);
    const payments = page.map((record) => ({ record, past: pastPaymentOf(record) }));
    if (run.asksForPayees) await this.#addPayees(run, payments);
    let sliceEnds = performance.now() + SLICE_MS;
    for (const { past, record } of payments) {
      run.simulation.add(past, isJudged(run, record));
      if (performance.now() < sliceEnds) continue;
      await nextTurn();
      if (!deadline.isAwaited) throw new TimeoutError("nobody waits for the simulation any more");
      sliceEnds = performance.now() + SLICE_MS;
    }
  }

  async #addAgents(run: Run, page: readonly PastRecord[]): Promise<void> {
    const { documents, earlier, simulation } = run;
    const { agents, ruled, teams } = this.#dependencies.collections;
    const agentIds = missingOf(page, "agentId", (id) => simulation.hasAgent(id));
    if (agentIds.length === 0) return;
    const teamIds = missingOf(page, "teamId", (id) => simulation.hasTeam(id));
    const [foundAgents, foundTeams, restricted] = await Promise.all([
      agents.find({ _id: { $in: agentIds } }, { projection: { policy: 1, teamId: 1 } }).toArray(),
      teams.find({ _id: { $in: teamIds } }).toArray(),
      ruled.agent.find({ _id: { $in: agentIds } }).toArray(),
    ]);
    for (const team of foundTeams) {
      const rules = documents.rulesOf(team);
      run.asksForPayees ||= asksForPayees(rules);
      simulation.addTeam(team._id, {
        cap: documents.capOf(team),
        rules,
        restrictions: documents.restrictionsOf(team._id, team.restrictions),
        earlier: earlier.get(team._id) ?? NOTHING,
      });
    }
    const restrictionsOf = new Map(restricted.map(({ _id, restrictions }) => [_id, restrictions]));
    for (const agent of foundAgents)
      simulation.addAgent({
        agentId: agent._id,
        teamId: agent.teamId,
        policy: documents.policyOf(agent),
        restrictions: documents.restrictionsOf(agent._id, restrictionsOf.get(agent._id)),
        earlier: earlier.get(agent._id) ?? NOTHING,
      });
  }

  /** Looks up which payees of a page's payments had been paid before the simulated time. */
  async #addPayees(
    { payees, simulation, startsAt }: Run,
    payments: readonly { readonly past: PastPayment; readonly record: PastRecord }[],
  ): Promise<void> {
    const unknown = payments.filter(({ past }) => payeesOf(past).some((payee) => !payees.has(payee)));
    for (const { past } of unknown) for (const payee of payeesOf(past)) payees.add(payee);
    if (unknown.length === 0) return;
    for (const payee of await this.#records.payeesBefore(
      startsAt,
      unknown.map(({ record }) => record),
    ))
      simulation.addPayee(payee);
  }
}

function isJudged({ since, target: { id, level } }: Run, record: PastRecord): boolean {
  if (record.createdAt < since) return false;
  return level === "project" || (level === "team" ? record.teamId : record.agentId) === id;
}

const isLimited = ({ capCents, spendLimits }: Cap): boolean => capCents !== null || spendLimits !== undefined;

const asksForPayees = (rules: readonly ReadyRule[]): boolean =>
  rules.some(({ type }) => type === "new_recipient");

const missingOf = (
  page: readonly PastRecord[],
  field: "agentId" | "teamId",
  isKnown: (id: string) => boolean,
): string[] => [...new Set(page.map((record) => record[field]))].filter((id) => !isKnown(id));

/** Returns the calendar as if it had been in force the whole time. */
function calendarOver(
  documents: Documents,
  { calendar = UTC_CALENDAR }: ProjectDocument,
  from: Date,
): Calendar {
  const settings = documents.calendarOf(calendar);
  const keptStarts = PERIODS.map(() => 0);
  return { ...settings, ...zoneAround(settings.timezone, from), version: 1, changedAt: 0, keptStarts };
}

/** Returns the zone offsets of time windows over the simulated time. */
function offsetsOver(from: Date, until: Date): (timezone: string) => ZoneOffsets {
  const known = new Map<string, ZoneOffsets>();
  return (timezone) => {
    const offsets =
      known.get(timezone) ?? zoneOffsets(timezone, from.getTime() - DAY_MS, until.getTime() + DAY_MS);
    known.set(timezone, offsets);
    return offsets;
  };
}

const assumptionsOf = (target: SimulatedTarget, reach: Reach, since: Start): readonly string[] => [
  ...ASSUMPTIONS,
  ...(reach.level === target.level
    ? []
    : ["Payments of other agents under the same caps and limits count as they were decided."]),
  ...(since.isCut
    ? [`Only the newest ${String(PAYMENTS_MAX)} payments are judged, those since ${since.at.toISOString()}.`]
    : []),
];
