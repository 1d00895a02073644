import { z } from "zod";
import { verifyWebhook } from "../../../src/webhooks/verify-webhook.ts";
import type { ApprovalResolution } from "../../../src/domain/ledger/payment.ts";
import type { TransactionEntry } from "./books.ts";

/** Something that records say has happened, of which each endpoint that subscribes to it receives one delivery. */
export interface Change {
  readonly type: string;
  /** The record that it happened to; for a change of an agent's state the agent, and the how manieth it was. */
  readonly subject: string;
  readonly agentId: string;
}

/** A delivery as it came to a receiver, which has verified it; one that is sent again comes again. */
export interface Arrival {
  readonly deliveryId: string;
  readonly type: string;
  readonly createdAt: string;
  readonly agentId: string;
  readonly teamId: string;
  /** The record that it tells of. */
  readonly record: string;
  /** To the byte. */
  readonly body: string;
  readonly isAcknowledged: boolean;
}

/** A delivery by the service's own records. */
export interface DeliveryEntry {
  readonly id: string;
  readonly status: string;
}

export interface ApprovalEntry {
  readonly id: string;
  readonly transactionId: string;
  readonly agentId: string;
  readonly isDecidedByPerson: boolean;
  readonly resolution: ApprovalResolution | null;
}

/** Refusals that fire no denial: the agent has taken the payment back itself, or is no more. */
const SILENT_DENIALS: readonly (string | null)[] = ["CANCELLED_BY_AGENT", "AGENT_ARCHIVED"];
/** Merchant that charges after it has released the authorization. */
const FORCED = "sandbox-forced";
const STATES: readonly string[] = ["agent.paused", "agent.resumed"];
const ARCHIVED = "agent.archived";

interface Records {
  readonly transactions: readonly Pick<
    TransactionEntry,
    "id" | "agentId" | "authorizations" | "breach" | "status" | "denialCode" | "to"
  >[];
  readonly approvals: readonly Omit<ApprovalEntry, "transactionId">[];
  /** Of agents that were created since there are endpoints. */
  readonly agentIds: readonly string[];
}

/** Returns changes by the records of payments, approvals and agents. They never say when an agent was paused. */
export const changesIn = ({ agentIds, approvals, transactions }: Records): Change[] => [
  ...agentIds.map((agentId) => ({ type: "agent.created", subject: agentId, agentId })),
  ...approvals.map(({ agentId, id }) => ({ type: "approval.requested", subject: id, agentId })),
  ...approvals
    .filter(({ isDecidedByPerson }) => isDecidedByPerson)
    .map(({ agentId, id }) => ({ type: "approval.completed", subject: id, agentId })),
  // A denial that nobody has made is the agent's own, or its archive's.
  ...approvals
    .filter(({ isDecidedByPerson, resolution }) => !isDecidedByPerson && resolution === "denied")
    .map(({ agentId, id }) => ({ type: "approval.cancelled", subject: id, agentId })),
  ...approvals
    .filter(({ resolution }) => resolution === "expired")
    .map(({ agentId, id }) => ({ type: "approval.expired", subject: id, agentId })),
  ...transactions
    // Between its release and its forced capture a payment has failed.
    .filter(({ status, to }) => status === "failed" || (status === "approved" && to === FORCED))
    .map(({ agentId, id }) => ({ type: "transaction.failed", subject: id, agentId })),
  ...transactions
    // Even if the refund was reversed, or the dispute lost, later.
    .filter(({ authorizations }) =>
      authorizations.some(({ capturedMc, creditedMc }) => creditedMc > 0 && creditedMc >= capturedMc),
    )
    .map(({ agentId, id }) => ({ type: "transaction.reversed", subject: id, agentId })),
  // No merchant of the load refunds or exceeds anything twice.
  ...transactions
    .filter(({ authorizations }) => authorizations.some(({ creditedMc }) => creditedMc > 0))
    .map(({ agentId, id }) => ({ type: "transaction.refunded", subject: id, agentId })),
  ...transactions
    .filter(({ authorizations }) => authorizations.some(({ disputedMc }) => disputedMc > 0))
    .map(({ agentId, id }) => ({ type: "transaction.disputed", subject: id, agentId })),
  ...transactions
    .filter(({ breach }) => breach !== null)
    .map(({ agentId, id }) => ({ type: "transaction.limit_breached", subject: id, agentId })),
  ...transactions
    .filter(({ status }) => status === "approved" || status === "reversed")
    .map(({ agentId, id }) => ({ type: "transaction.completed", subject: id, agentId })),
  ...transactions
    .filter(({ denialCode, status }) => status === "denied" && !SILENT_DENIALS.includes(denialCode))
    .map(({ agentId, id }) => ({ type: "transaction.denied", subject: id, agentId })),
];

/** An agent's changes of state, in their order. */
export const stateChanges = (agentId: string, types: readonly string[]): Change[] =>
  types.map((type, index) => ({ type, subject: numbered(agentId, index + 1), agentId }));

/**
 * The changes of state that lead an agent to where it is: as often paused and resumed in turn as there are deliveries of it, since a
 * pause that its owner had no answer to may have come to something, or not. It may be archived while it is paused.
 */
export function expectedStates(
  agentId: string,
  state: "active" | "paused" | "archived",
  arrivals: readonly Arrival[],
): Change[] {
  const count = (wanted: string): number =>
    new Set(
      arrivals.flatMap(({ deliveryId, record: about, type }) =>
        type === wanted && about === agentId ? [deliveryId] : [],
      ),
    ).size;
  const pauses = count("agent.paused");
  const inTurn = Array.from({ length: pauses }, () => ["agent.paused", "agent.resumed"]).flat();
  const isPausedLast = state === "paused" || (state === "archived" && count("agent.resumed") < pauses);
  const turns = isPausedLast ? inTurn.slice(0, -1) : inTurn;
  const changes = stateChanges(agentId, turns);
  return state === "archived" ? [...changes, archiveOf(agentId)] : changes;
}

/**
 * Not numbered among the others: an archive is its actor's decision and a pause the ledger's, so where both come at once either may have the
 * earlier time.
 */
const archiveOf = (agentId: string): Change => ({ type: ARCHIVED, subject: agentId, agentId });

const numbered = (agentId: string, number: number): string => `${agentId}/${String(number)}`;

const record = z.object({ id: z.string() });
const event = z.object({
  id: z.string(),
  type: z.string(),
  created_at: z.iso.datetime(),
  // A limit of a team or project names none.
  agent_id: z.string().default(""),
  team_id: z.string().default(""),
  data: z.object({
    agent: record.optional(),
    approval: record.optional(),
    transaction: record.optional(),
    deposit: record.optional(),
    funding: record.optional(),
  }),
});

export interface Request {
  readonly headers: Readonly<Record<string, string | readonly string[] | undefined>>;
  readonly body: Buffer;
  readonly at: Date;
}

/** Returns the change that a request reports; throws if it is not genuine. */
export function arrivalOf({ at, body, headers }: Request, secret: string, isAcknowledged: boolean): Arrival {
  const verified = verifyWebhook({ rawBody: body, headers, secret, now: at });
  if (!verified.ok) throw new Error(`a delivery does not verify: ${verified.reason}`);
  const { agent_id, created_at, data, id, team_id, type } = event.parse(JSON.parse(body.toString("utf8")));
  const { agent, approval, deposit, funding, transaction } = data;
  const about =
    type === WARNING
      ? { id }
      : type.startsWith("approval.")
        ? approval
        : type.startsWith("agent.")
          ? agent
          : (transaction ?? deposit ?? funding);
  if (about === undefined) throw new Error(`${id} (${type}) tells of nothing`);
  return {
    deliveryId: id,
    type,
    createdAt: created_at,
    agentId: agent_id,
    teamId: team_id,
    record: about.id,
    body: body.toString("latin1"),
    isAcknowledged,
  };
}

const WARNING = "budget.threshold_reached";
const FUNDED = "wallet.funded";

const keyOf = ({ subject, type }: Pick<Change, "subject" | "type">): string => `${type} of ${subject}`;

/**
 * Compares what one endpoint received with what there was to deliver; empty: each change once, by its delivery's id.
 */
export function compareDelivered(
  changes: readonly Change[],
  arrivals: readonly Arrival[],
  entries: readonly DeliveryEntry[],
): string[] {
  const differences: string[] = [];
  const deliveries = new Map<string, Arrival>();
  const acknowledged = new Set<string>();
  for (const arrival of arrivals) {
    const { body, deliveryId, isAcknowledged } = arrival;
    const first = deliveries.get(deliveryId);
    if (first === undefined) deliveries.set(deliveryId, arrival);
    else if (first.body !== body) differences.push(`${deliveryId} came with another body`);
    if (isAcknowledged) acknowledged.add(deliveryId);
  }
  const idOf = new Map<string, string>();
  for (const [key, id] of keyed([...deliveries.values()])) {
    const other = idOf.get(key);
    if (other === undefined) idOf.set(key, id);
    else differences.push(`${key} came as ${other} and as ${id}`);
  }
  // Which limits have come near, and how often, is a matter of the order of all payments; wallets' deposits are in no record.
  const taken = [...idOf.keys()].filter((key) => key.startsWith(WARNING) || key.startsWith(FUNDED));
  const keys = new Set([...changes.map(keyOf), ...taken]);
  for (const key of keys) {
    const id = idOf.get(key);
    if (id === undefined) differences.push(`${key} never came`);
    else if (!acknowledged.has(id)) differences.push(`${key} came as ${id}, and was never acknowledged`);
  }
  for (const [key, id] of idOf) {
    if (!keys.has(key)) differences.push(`${key} came as ${id}, and there is no such change`);
  }
  for (const { id, status } of entries) {
    if (status !== "succeeded") differences.push(`${id} is ${status}`);
    if (!deliveries.has(id)) differences.push(`${id} is recorded, and never came`);
  }
  const recorded = new Set(entries.map(({ id }) => id));
  for (const id of deliveries.keys())
    if (!recorded.has(id)) differences.push(`${id} came, and has no record`);
  return differences;
}

/** Names the change of each delivery. Changes of one agent's state are numbered in the order of their times. */
function* keyed(deliveries: readonly Arrival[]): Generator<readonly [key: string, id: string]> {
  const numbers = new Map<string, number>();
  for (const each of deliveries.toSorted((one, other) => one.createdAt.localeCompare(other.createdAt))) {
    const { deliveryId, record: about, type } = each;
    if (!STATES.includes(type)) {
      yield [keyOf({ type, subject: about }), deliveryId];
      continue;
    }
    const number = (numbers.get(about) ?? 0) + 1;
    numbers.set(about, number);
    yield [keyOf({ type, subject: numbered(about, number) }), deliveryId];
  }
}
