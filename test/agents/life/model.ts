/**
 * What may become of an agent, as its callers see it: a model far smaller than the service, without records, actors or
 * workflows. Calls that run at the same time may have come in any order.
 */

export type Action =
  /** By the machine that owns the agent, always with the same idempotency key: also every replay. */
  | { readonly kind: "create" }
  /** A request of the agent's own, with the key that was handed out as so many-th. */
  | { readonly kind: "use"; readonly key: number }
  | { readonly kind: "mint" | "revoke" }
  | { readonly kind: "pause" | "resume"; readonly by: "person" | "machine" }
  | { readonly kind: "archive"; readonly by: "person" | "machine" | "stranger" };

/** A call with its answer. */
export interface Seen {
  readonly action: Action;
  readonly status: number;
  readonly code: string | null;
  /** The key that was tried, or given; null: none. */
  readonly key: string | null;
  readonly isExpired: boolean;
  /** What it was answered after a first answer that did not tell what became of the call. */
  readonly isRetried: boolean;
  /** The call lay somewhere in this time; epoch milliseconds. */
  readonly from: number;
  readonly to: number;
}

export interface Agent {
  readonly lifecycle: "active" | "paused" | "archived";
  /** Null: the agent has no active key. */
  readonly key: string | null;
  readonly firstKey: string;
  readonly deliverableUntil: number;
  readonly isUsed: boolean;
  readonly isTouched: boolean;
  readonly isProven: boolean;
  readonly fired: Readonly<Record<"paused" | "resumed" | "archived", number>>;
}

/** A key that was never delivered. */
export const LOST = "lost";

export const created = (firstKey: string, deliverableUntil: number): Agent => ({
  lifecycle: "active",
  key: firstKey,
  firstKey,
  deliverableUntil,
  isUsed: false,
  isTouched: false,
  isProven: false,
  fired: { paused: 0, resumed: 0, archived: 0 },
});

/** The agents that there may be after calls at the same time; none: no order of them explains the answers. */
export function after(agents: readonly Agent[], seen: readonly Seen[]): readonly Agent[] {
  const ends = ordersOf(seen).flatMap((order) =>
    order.reduce((possible, one) => possible.flatMap((agent) => step(agent, one)), agents),
  );
  return [...new Map(ends.map((agent) => [JSON.stringify(agent), agent])).values()];
}

const ordersOf = <T>(items: readonly T[]): readonly (readonly T[])[] =>
  items.length <= 1
    ? [items]
    : items.flatMap((item, index) => ordersOf(items.toSpliced(index, 1)).map((rest) => [item, ...rest]));

/** An answer that may be given, and the agent after it. */
interface Possible {
  readonly status: number;
  readonly code?: string;
  readonly key?: string | null;
  readonly isExpired?: boolean;
  readonly agent: Agent;
}

function step(agent: Agent, seen: Seen): readonly Agent[] {
  const possible = answersTo(agent, seen);
  // It is unknown whether it was done.
  if (seen.status === 503) return [agent, ...possible.map((one) => one.agent)];
  return possible.filter((one) => isAnswer(seen, one)).map((one) => one.agent);
}

function isAnswer(seen: Seen, { code, isExpired, key, status }: Possible): boolean {
  if (seen.status !== status || seen.code !== (code ?? null)) return false;
  return (key === undefined || seen.key === key) && (isExpired ?? seen.isExpired) === seen.isExpired;
}

function answersTo(agent: Agent, seen: Seen): readonly Possible[] {
  switch (seen.action.kind) {
    case "create":
      return replayed(agent, seen);
    case "use":
      return [used(agent, seen.key)];
    case "mint":
      return [minted(agent, seen.key)];
    case "revoke":
      return [revoked(agent)];
    case "pause":
      return [turned(agent, "paused")];
    case "resume":
      return [turned(agent, "resumed")];
    case "archive":
      return seen.action.by === "person" ? [archived(agent)] : archivedByKey(agent, seen, seen.action.by);
  }
}

/** Clocks of processes on one machine. */
const SLACK_MS = 50;
const mayBeOpen = ({ deliverableUntil }: Agent, { from }: Seen): boolean =>
  from < deliverableUntil + SLACK_MS;
const mayBeOver = ({ deliverableUntil }: Agent, { to }: Seen): boolean => to >= deliverableUntil - SLACK_MS;

function replayed(agent: Agent, seen: Seen): readonly Possible[] {
  const isDelivered = agent.key === agent.firstKey;
  const open = { status: 200, key: isDelivered ? agent.firstKey : null, isExpired: false, agent };
  const over = { status: 200, key: null, isExpired: true, agent: { ...agent, isProven: true } };
  // Between the timer and the clock: the key is gone, and nothing is proven yet.
  const gone = { ...over, agent };
  return [
    ...(mayBeOpen(agent, seen) ? [open] : []),
    ...(mayBeOver(agent, seen) ? [over, ...(mayBeOpen(agent, seen) ? [gone] : [])] : []),
  ];
}

function used(agent: Agent, key: string | null): Possible {
  // Where no key is known yet, none is sent, whether the agent has one or not.
  if (agent.lifecycle === "archived" || key === null || agent.key !== key)
    return { status: 401, code: "UNAUTHORIZED", agent };
  const isUsed = { ...agent, isUsed: true };
  return agent.lifecycle === "paused"
    ? { status: 403, code: "AGENT_PAUSED", agent: isUsed }
    : { status: 200, agent: isUsed };
}

const goneFor = (agent: Agent): Possible => ({ status: 409, code: "AGENT_ARCHIVED", agent });

function minted(agent: Agent, key: string | null): Possible {
  if (agent.lifecycle === "archived") return goneFor(agent);
  if (agent.key !== null) return { status: 409, code: "KEY_ALREADY_EXISTS", agent };
  return { status: 201, agent: { ...agent, key: key ?? LOST, isTouched: true } };
}

function revoked(agent: Agent): Possible {
  if (agent.lifecycle === "archived") return goneFor(agent);
  if (agent.key === null) return { status: 404, code: "NOT_FOUND", agent };
  return { status: 200, agent: { ...agent, key: null, isTouched: true } };
}

function turned(agent: Agent, into: "paused" | "resumed"): Possible {
  if (agent.lifecycle === "archived") return goneFor(agent);
  const lifecycle = into === "paused" ? "paused" : "active";
  if (agent.lifecycle === lifecycle) return { status: 200, agent };
  return { status: 200, agent: { ...agent, lifecycle, fired: fire(agent, into) } };
}

const fire = ({ fired }: Agent, event: keyof Agent["fired"]): Agent["fired"] => ({
  ...fired,
  [event]: fired[event] + 1,
});

function archived(agent: Agent): Possible {
  if (agent.lifecycle === "archived") return { status: 200, agent };
  return {
    status: 200,
    agent: { ...agent, lifecycle: "archived", key: null, fired: fire(agent, "archived") },
  };
}

function archivedByKey(agent: Agent, seen: Seen, by: "machine" | "stranger"): readonly Possible[] {
  const denied = { status: 403, code: "MACHINE_ARCHIVE_DENIED", agent };
  if (by === "stranger") return [denied];
  if (agent.lifecycle === "archived") return [archived(agent)];
  if (agent.isTouched || agent.isUsed) return [denied];
  const unverifiable = { status: 409, code: "BALANCE_UNVERIFIABLE", agent };
  const unproven = { status: 409, code: "KEY_DELIVERY_UNPROVEN", agent };
  const over = agent.isProven ? [archived(agent), unverifiable] : [unproven];
  return [
    ...(mayBeOpen(agent, seen) ? [{ status: 409, code: "KEY_STILL_DELIVERABLE", agent }] : []),
    ...(mayBeOver(agent, seen) ? over : []),
  ];
}
