import type { Filter } from "mongodb";
import pLimit from "p-limit";
import type { AgentDocument, ProjectDocument, TeamDocument } from "../../src/store/documents.ts";
import { STOPPED_AT_ONCE } from "../../src/contract/stops.ts";
import { type Refusal, refusal } from "../../src/domain/errors.ts";
import { ok, refused, type Result } from "../../src/domain/result.ts";
import type { AuditNotes } from "../../src/audit/notes.ts";
import { layFences } from "../../src/rails/fences.ts";
import type { Deadline } from "../../src/lib/deadline.ts";
import { newUuid } from "../../src/lib/ids.ts";
import { isUnavailable } from "../../src/lib/unavailable.ts";
import { withTimeout } from "../../src/lib/with-timeout.ts";
import type { ProjectRef } from "../../src/messages/ledger.ts";
import { keyRevokerOf, namedBy } from "./agent-keys.ts";
import { agentPausing } from "./agent-pausing.ts";
import type { HandlerDependencies } from "./dependencies.ts";
import type { Handlers } from "./types.ts";

type StopHandlers = Pick<
  Handlers,
  | "pauseTeamAgents"
  | "revokeTeamAgentKeys"
  | "pauseProjectAgents"
  | "revokeProjectAgentKeys"
  | "stopOrganization"
  | "stopProject"
  | "stopTeam"
>;

/** Maximum stops in flight. They share ledger updates, so more would not be faster. */
const CONCURRENCY_MAX = 32;
/**
 * Factor for the slowest stop so far: another stop begins only if that much time is left, so that every stop begun is
 * done before the response.
 */
const SLOWEST_TIMES = 2;

/** Maximum ledgers being stopped concurrently. Each decides by itself. */
const STOPPED_LEDGERS_AT_ONCE = 64;
/** Maximum projects named in a response as not stopped. */
const NAMED_MAX = 20;

type ContainerScope = { readonly teamId: string } | { readonly projectId: string };

interface StopCall {
  readonly audit: AuditNotes;
  readonly deadline: Deadline;
}

const activeIn = (scope: ContainerScope): Filter<AgentDocument> => ({ ...scope, lifecycle: "active" });
/**
 * Filter for paused agents with payments in flight: the call that paused an agent may have ended before the rails were
 * fenced.
 */
const perhapsUnfencedIn = (scope: ContainerScope): Filter<AgentDocument> => ({
  ...scope,
  lifecycle: "paused",
  reservedCents: { $gt: 0 },
});
const withKeysIn = (scope: ContainerScope): Filter<AgentDocument> => ({
  ...scope,
  lifecycle: { $in: ["active", "paused"] },
  key: { $ne: null },
});

const idOf = ({ _id }: AgentDocument): string => _id;

/** Emergency stops. Each is one ledger decision for all agents, or a stop of each agent, some at a time. */
export function stopHandlers(dependencies: HandlerDependencies): StopHandlers {
  const { ledgers, logger, rails } = dependencies;
  const { agents, projects } = dependencies.collections;
  const { pause } = agentPausing(dependencies);
  const revoke = keyRevokerOf(dependencies);

  const some = (filter: Filter<AgentDocument>): Promise<AgentDocument[]> =>
    agents.find(filter).sort({ createdAt: -1, _id: -1 }).limit(STOPPED_AT_ONCE).toArray();

  async function pauseAll(scope: ContainerScope, { audit, deadline }: StopCall) {
    const [active, unfenced] = await Promise.all([
      some(activeIn(scope)),
      agents.find(perhapsUnfencedIn(scope)).toArray(),
    ]);
    const found = [...unfenced, ...active];
    if (found.length === 0) return ok({ body: { paused: 0, remaining: 0 } });
    await audit.begin({ before: { active: active.map(idOf) }, after: { paused: active.map(idOf) } });
    const paused = await forAll(found, deadline, pause);
    const changed = paused.filter(([, set]) => set.changed).map(([agent]) => idOf(agent));
    audit.change({ active: changed }, { paused: changed });
    const done = new Set(paused.map(([agent]) => idOf(agent)));
    const left = found.map(idOf).filter((id) => !done.has(id));
    const remaining = await agents.countDocuments({
      $or: [activeIn(scope), { _id: { $in: left }, lifecycle: "paused" }],
    });
    return ok({ body: { paused: changed.length, remaining } });
  }

  async function revokeAll(scope: ContainerScope, { audit, deadline }: StopCall) {
    const found = await some(withKeysIn(scope));
    if (found.length === 0) return ok({ body: { revoked: 0, remaining: 0 } });
    const known = found.flatMap(({ _id, key }) => (key === null ? [] : [{ agentId: _id, ...namedBy(key) }]));
    await audit.begin({ before: { keys: known }, after: { keys: [] } });
    const revoked = await forAll(found, deadline, revoke);
    const keys = revoked.map(([{ _id }, key]) => ({ agentId: _id, ...namedBy(key) }));
    audit.change({ keys }, { keys: [] });
    const remaining = await agents.countDocuments(withKeysIn(scope));
    return ok({ body: { revoked: keys.length, remaining } });
  }

  /**
   * Stops the agents of a project or team by one ledger decision. Returns once the rails block payments decided
   * earlier.
   */
  async function stopIn(project: ProjectRef, teamId: string | null, revokeKeys: boolean): Promise<Stopped> {
    const command = { kind: "stop_accounts", teamId, revokeKeys, requestId: newUuid() } as const;
    const reply = await ledgers.submit(project, command);
    if (reply.kind !== "stopped") throw new Error(`a ledger answered ${reply.kind} to a stop`);
    await layFences(rails, reply.fences);
    return reply;
  }

  async function stopOne(
    project: ProjectRef,
    teamId: string | null,
    { revokeKeys = false }: StopBody,
    { audit }: Pick<StopCall, "audit">,
  ) {
    await audit.begin({ before: null, after: { revokeKeys } });
    const { paused, revoked } = await stopIn(project, teamId, revokeKeys);
    audit.change(null, { revokeKeys, paused, revoked });
    return ok({ body: { paused, revoked } });
  }

  /**
   * Returns the organization's projects, including archived ones, whose earlier payments are still sent. Also includes
   * projects named only by agents: a project's record may have been altered to hide it, while an agent whose record was
   * altered cannot pay.
   */
  async function projectsOf(organizationId: string): Promise<readonly string[]> {
    const [recorded, ofAgents] = await Promise.all([
      projects.find({ organizationId }, { projection: { _id: 1 } }).toArray(),
      agents.distinct("projectId", { organizationId }),
    ]);
    return [...new Set([...recorded.map(({ _id }) => _id), ...ofAgents])];
  }

  /**
   * Stops all ledgers of the organization independently: one without an answer does not keep another from being
   * stopped.
   */
  async function stopAll(
    organizationId: string,
    { revokeKeys = false }: StopBody,
    { audit, deadline }: StopCall,
  ) {
    await audit.begin({ before: null, after: { revokeKeys } });
    const outcomes = await pLimit(STOPPED_LEDGERS_AT_ONCE).map(
      await projectsOf(organizationId),
      async (projectId) => {
        try {
          return await withTimeout(deadline.spareMs, stopIn({ organizationId, projectId }, null, revokeKeys));
        } catch (error) {
          if (!isUnavailable(error)) throw error;
          logger.warn({ requestId: deadline.requestId, projectId, err: error }, "a project was not stopped");
          return projectId;
        }
      },
    );
    const stopped = outcomes.filter((outcome) => typeof outcome !== "string");
    const paused = stopped.reduce((sum, each) => sum + each.paused, 0);
    const revoked = stopped.reduce((sum, each) => sum + each.revoked, 0);
    const notStopped = outcomes.filter((outcome) => typeof outcome === "string");
    audit.change(null, { revokeKeys, paused, revoked, ...(notStopped.length > 0 ? { notStopped } : {}) });
    return notStopped.length > 0 ? refused(notAllStopped(notStopped)) : ok({ body: { paused, revoked } });
  }

  return {
    stopTeam: ({ body }, { target, ...asked }) => {
      const { _id, organizationId, projectId } = target;
      return live(target, () => stopOne({ organizationId, projectId }, _id, body, asked));
    },
    stopProject: ({ body }, { target, ...asked }) => {
      const { _id: projectId, organizationId } = target;
      return live(target, () => stopOne({ organizationId, projectId }, null, body, asked));
    },
    stopOrganization: ({ body }, { principal, ...asked }) => stopAll(principal.organizationId, body, asked),
    pauseTeamAgents: (_input, { target, ...asked }) =>
      live(target, () => pauseAll({ teamId: target._id }, asked)),
    revokeTeamAgentKeys: (_input, { target, ...asked }) =>
      live(target, () => revokeAll({ teamId: target._id }, asked)),
    pauseProjectAgents: (_input, { target, ...asked }) =>
      live(target, () => pauseAll({ projectId: target._id }, asked)),
    revokeProjectAgentKeys: (_input, { target, ...asked }) =>
      live(target, () => revokeAll({ projectId: target._id }, asked)),
  };
}

interface Stopped {
  readonly paused: number;
  readonly revoked: number;
}

interface StopBody {
  readonly revokeKeys?: boolean | undefined;
}

function notAllStopped(projectIds: readonly string[]): Refusal {
  const named = projectIds.slice(0, NAMED_MAX).join(", ");
  const others = projectIds.length - NAMED_MAX;
  const detail = `Not stopped, since their ledgers did not answer: ${named}${others > 0 ? ` and ${others} more` : ""}.`;
  const message = `${detail} All other projects are stopped; repeat the call.`;
  return refusal("SERVICE_UNAVAILABLE", message, { detail, retryAfterSeconds: 1 });
}

/** Runs a stop unless the container is archived: nothing in an archived one is live or written to. */
const live = <T>(
  { archivedAt }: ProjectDocument | TeamDocument,
  stop: () => Promise<Result<T>>,
): Promise<Result<T>> =>
  archivedAt === null ? stop() : Promise.resolve(refused(refusal("CONTAINER_ARCHIVED")));

/**
 * Stops each agent, some at a time, while there is time. Returns the agents that were stopped; an agent that was
 * archived or has no key any more is refused and left out. A failed stop does not affect the others; if all failed, the
 * first error is thrown.
 */
async function forAll<T>(
  all: readonly AgentDocument[],
  deadline: Deadline,
  stop: (agent: AgentDocument) => Promise<Result<T>>,
): Promise<(readonly [AgentDocument, T])[]> {
  const done: (readonly [AgentDocument, T])[] = [];
  const failed: unknown[] = [];
  let slowestMs = 0;
  await pLimit(CONCURRENCY_MAX).map(all, async (agent) => {
    const begun = deadline.elapsedMs;
    if (deadline.spareMs < SLOWEST_TIMES * slowestMs) return;
    try {
      const result = await stop(agent);
      if (result.ok) done.push([agent, result.value]);
    } catch (error) {
      failed.push(error);
    }
    slowestMs = Math.max(slowestMs, deadline.elapsedMs - begun);
  });
  if (done.length === 0 && failed.length > 0) throw failed[0];
  return done;
}
