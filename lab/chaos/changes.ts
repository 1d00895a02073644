import { setTimeout as sleep } from "node:timers/promises";
import { type OwnerRequest } from "./owner.ts";
import { type Answer, codeOf, isPassing } from "./http.ts";
import { LimitChanges, type Restricted } from "./limit-changes.ts";
import type { Random } from "../random.ts";
import type { PayingAgent, Tenant } from "./tenant.ts";

const PAUSE_MIN_MS = 50;
const PAUSE_MAX_MS = 400;
const PAUSED_MAX_MS = 1_200;
const RETRY_MS = 300;
const ARCHIVED_AFTER_MAX_MS = 3_000;
/** A request that had no answer may still come to something for so long. */
const LATE_MS = 20_000;

/** Between these times an agent could not pay: its stop had been answered, and it had not been started again. */
export interface Stopped {
  readonly agentId: string;
  readonly from: number;
  readonly until: number;
  /** Whether it was paused; what an archived agent has decided is still sent. */
  readonly isPaused: boolean;
}

/** An owner's changes while agents pay: pauses, policies, budgets, caps, spend limits, restrictions, raises, and one agent's end. */
export class Changes {
  readonly #tenant: Tenant;
  readonly #brief: PayingAgent;
  readonly #random: Random;
  readonly #stopping = new AbortController();
  readonly #working: Promise<unknown>;
  readonly #stopped: Stopped[];
  readonly #limits: LimitChanges;
  readonly #pausing = new Set<string>();
  /** Time until which an unanswered request to resume an agent may still take effect. */
  readonly #lateResumes: Map<string, number>;
  made = 0;

  constructor(tenant: Tenant, brief: PayingAgent, random: Random, known: KnownStops) {
    this.#tenant = tenant;
    this.#brief = brief;
    this.#random = random;
    this.#limits = new LimitChanges(tenant, random.fork("limits"), known.restricted);
    this.#stopped = known.stopped;
    this.#lateResumes = known.lateResumes;
    this.#working = Promise.all([this.#change(), this.#archive(brief)]);
    // `stop` reports what went wrong.
    this.#working.catch(() => undefined);
  }

  /** Nothing is left paused, and the brief agent is archived: both take until the service is back. */
  async stop(): Promise<void> {
    this.#stopping.abort();
    await this.#working;
  }

  async #change(): Promise<void> {
    const { signal } = this.#stopping;
    const random = this.#random;
    const changes = [
      () => this.#pauseAndResume(this.#anyAgent().id, random.between(0, PAUSED_MAX_MS)),
      () => this.#changePolicy(),
      () => this.#replaceBudgets(),
      () => this.#limits.restrict(),
      () => this.#limits.askForRaise(),
      () => this.#limits.askForRaise(),
      () => this.#limits.decideRaise(),
      () =>
        this.#tenant.changeCaps({
          team: random.between(1_000, 6_000),
          project: random.between(2_000, 10_000),
        }),
    ] as const;
    while (!signal.aborted) {
      await random.pick(changes)();
      this.made += 1;
      await this.#sleep(random.between(PAUSE_MIN_MS, PAUSE_MAX_MS));
    }
  }

  async #sleep(ms: number): Promise<void> {
    await sleep(ms, undefined, { signal: this.#stopping.signal }).catch(() => undefined);
  }

  #anyAgent(): PayingAgent {
    return this.#random.pick(this.#tenant.agents.filter(({ isChanged }) => isChanged));
  }

  /**
   * An owner pulls the stop: everybody who may be paused is paused at once and resumed after part of the time, and the brief agent is paused
   * until it is archived, with what it had not sent yet.
   */
  async stopAll(ms: number): Promise<void> {
    const paused = this.#tenant.agents.filter(({ isChanged }) => isChanged);
    const lastsMs = this.#random.between(0, ms);
    await Promise.all([
      ...paused.map(({ id }) => this.#pauseAndResume(id, lastsMs)),
      this.#tenant.owner.ask({ method: "POST", path: `/v1/agents/${this.#brief.id}/pause` }),
    ]);
    this.made += paused.length + 1;
  }

  /** One at a time of an agent: else one resumes what the other takes for stopped. */
  async #pauseAndResume(id: string, lastsMs: number): Promise<void> {
    if (this.#pausing.has(id)) return;
    this.#pausing.add(id);
    await this.#stopFor(id, lastsMs);
    this.#pausing.delete(id);
  }

  async #stopFor(id: string, lastsMs: number): Promise<void> {
    const path = `/v1/agents/${id}`;
    await this.#until(() => this.#tenant.owner.ask({ method: "POST", path: `${path}/pause` }));
    const from = Date.now();
    const isCertain = (this.#lateResumes.get(id) ?? 0) < from;
    await this.#sleep(lastsMs);
    if (isCertain) this.#stopped.push({ agentId: id, from, until: Date.now(), isPaused: true });
    await this.#until(async () => {
      const answer = await this.#tenant.owner.ask({ method: "POST", path: `${path}/resume` });
      if (isPassing(answer)) this.#lateResumes.set(id, Date.now() + LATE_MS);
      return answer;
    });
  }

  /** Never more than the agent's record of the run says, so that its sum can be held against that. */
  async #changePolicy(): Promise<void> {
    const { budgetCents, id } = this.#anyAgent();
    const random = this.#random;
    const path = `/v1/agents/${id}/budget-policy`;
    const known = await this.#tenant.owner.ask({ method: "GET", path });
    const version = versionIn(known);
    if (version === null) return;
    const body = {
      version,
      ...random.pick([
        { budgetCents: random.between(Math.round(budgetCents / 2), budgetCents) },
        { autoApprovalThresholdCents: random.pick([null, 200, 600]) },
        { perTransactionLimitCents: random.pick([null, 700]) },
        { dailySpendLimitCents: random.pick([null, budgetCents]) },
        { spendLimits: this.#tenant.newSpendLimits(id, random) },
      ]),
    };
    await this.#tenant.owner.ask({ method: "PATCH", path, body });
  }

  /** A team's cap as it is, and other budgets of those of its agents that are changed at all. */
  async #replaceBudgets(): Promise<void> {
    const random = this.#random;
    const { teamId } = this.#anyAgent();
    const known = await this.#tenant.budgetOf(`/v1/teams/${teamId}`);
    if (known === null) return;
    const agents = (known.agents ?? []).map(({ agentId, budgetCents }) => {
      const agent = this.#tenant.agents.find(({ id }) => id === agentId);
      const most = agent?.isChanged === true ? agent.budgetCents : null;
      return { agentId, budgetCents: most === null ? budgetCents : random.between(most / 2, most) };
    });
    const spendLimits = this.#tenant.newSpendLimits(teamId, random);
    const body = { version: known.version, capCents: known.capCents, agents, spendLimits };
    await this.#tenant.owner.ask({ method: "PUT", path: `/v1/teams/${teamId}/budget`, body });
  }

  async #archive({ id }: PayingAgent): Promise<void> {
    await this.#sleep(this.#random.between(0, ARCHIVED_AFTER_MAX_MS));
    const request: OwnerRequest = { method: "DELETE", path: `/v1/agents/${id}` };
    await this.#until(() => this.#tenant.owner.ask(request));
    this.#stopped.push({ agentId: id, from: Date.now(), until: Infinity, isPaused: false });
  }

  /** Repeats a request through an outage: its subject must not stay half done. */
  async #until(request: () => Promise<Answer>): Promise<void> {
    for (;;) {
      const answer = await request();
      if (answer.status === 200) return;
      // By a clock that is ahead the owner stepped up long ago.
      if (!isPassing(answer) && codeOf(answer) !== "STEP_UP_REQUIRED")
        throw new Error(`an owner was refused: ${JSON.stringify(answer)}`);
      await sleep(RETRY_MS);
    }
  }
}

/** Of a run, over all its rounds. */
export interface KnownStops {
  readonly restricted: Restricted[];
  readonly stopped: Stopped[];
  readonly lateResumes: Map<string, number>;
}

/** A pause that came late, after its owner had given it up: agents of which the service says that they are paused are resumed. */
export async function resumeAll({ agents, owner }: Tenant): Promise<void> {
  await Promise.all(
    agents
      .filter(({ isChanged }) => isChanged)
      .map(({ id }) => owner.ask({ method: "POST", path: `/v1/agents/${id}/resume` })),
  );
}

function versionIn(answer: Answer): number | null {
  if (answer.status !== 200 || codeOf(answer) !== null) return null;
  const { body } = answer;
  const isKnown = typeof body === "object" && body !== null && "version" in body;
  return isKnown && typeof body.version === "number" ? body.version : null;
}
