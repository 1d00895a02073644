import { traceHeaders } from "../lib/tracing.ts";
import type { Collection, Db } from "mongodb";
import type { Payment } from "../domain/ledger/payment.ts";
import type { AgentProfile } from "../domain/agent/state.ts";
import {
  createdEventId,
  LIFECYCLE_EVENTS,
  type LifecycleEvent,
  paymentEvents,
  warningEvents,
} from "../domain/events.ts";
import type { NetworkAnswer } from "../domain/ledger/books.ts";
import { usedCents } from "../domain/money.ts";
import type { Warning } from "../domain/ledger/thresholds.ts";
import type { AuthorizationRecord, BudgetRecord } from "./event-records.ts";
import { BulkWriter } from "./bulk-writer.ts";
import type { AgentDocument, AgentSnapshot, EventDocument } from "./documents.ts";
import { COLLECTIONS, profileOf } from "./documents.ts";
import { eventsRetainedSince } from "./retention.ts";
import { approvalDocument, transactionDocument } from "./payment-records.ts";
import type { Indexes } from "./indexes.ts";

/**
 * Time that a payment's event waits for a larger batch; far below the delay after which its actor publishes it itself.
 */
const LINGER_MS = 50;

export interface EventProofs {
  make(kind: "event", event: Omit<EventDocument, "proof">): string;
}

type NewEvent = Pick<EventDocument, "_id" | "type" | "createdAt" | "data">;
const authorizationRecord = ({
  authorization,
  mc,
  merchant,
  refusal,
}: NetworkAnswer): AuthorizationRecord => ({
  id: authorization,
  isApproved: refusal === null,
  amountCents: usedCents(mc),
  currency: "USD",
  merchant,
  declinedBecause: refusal,
});

type EventScope = Pick<EventDocument, "organizationId" | "projectId" | "teamId" | "agentId" | "agentName">;

/**
 * Journal of events: published at least once, written once. An event's id is derived from what happened, and the first
 * write wins. A record is confirmed to its actor only after its events are written.
 */
export class EventJournal {
  readonly #agents: Collection<AgentDocument>;
  readonly #writes: BulkWriter<EventDocument>;
  /** Writes of events that no caller waits for, batched. */
  readonly #lingeringWrites: BulkWriter<EventDocument>;
  readonly #onWritten: () => void;
  readonly #eventDays: number;
  readonly #proofs: EventProofs;

  /**
   * `onWritten` is called when there is something to deliver. `eventDays`: retention of events; 0 keeps them for good.
   */
  constructor(db: Db, proofs: EventProofs, onWritten: () => void = () => undefined, eventDays = 0) {
    this.#proofs = proofs;
    this.#onWritten = onWritten;
    this.#eventDays = eventDays;
    this.#agents = db.collection(COLLECTIONS.agents);
    const events = db.collection<EventDocument>(COLLECTIONS.events);
    this.#writes = new BulkWriter(events);
    this.#lingeringWrites = new BulkWriter(events, { lingerMs: LINGER_MS });
  }

  flush(): void {
    this.#lingeringWrites.flush();
  }

  get waiting(): number {
    return this.#writes.waiting + this.#lingeringWrites.waiting;
  }

  /** Publishes every event of a payment so far, except those that retention would already have removed. */
  async publishPayment(
    profile: AgentProfile,
    payment: Payment,
    at: Date,
    when: "now" | "soon",
  ): Promise<void> {
    const retainedSince = eventsRetainedSince(this.#eventDays, at);
    const events = paymentEvents(payment, retainedSince).map((event, index) => ({
      _id: event.id,
      type: event.type,
      // Distinct times, since events are delivered in the order of their times.
      createdAt: new Date(at.getTime() + index),
      data: {
        ...snapshotOf(profile, event.payment, event.type.startsWith("approval.")),
        ...(event.answer === undefined ? {} : { authorization: authorizationRecord(event.answer) }),
      },
    }));
    const writes = when === "now" ? this.#writes : this.#lingeringWrites;
    await Promise.all([
      this.#write(writes, ofAgent(profile), events),
      ...warningEvents(profile, payment).map(({ id, type, warning }, index) => {
        const createdAt = new Date(at.getTime() + events.length + index);
        const event = { _id: id, type, createdAt, data: { budget: budgetRecord(profile, warning) } };
        return this.#write(writes, scopeOf(profile, warning.level), [event]);
      }),
    ]);
  }

  async publishLifecycle(agentId: string, events: readonly LifecycleEvent[]): Promise<void> {
    if (events.length === 0) return;
    const agent = await this.#agents.findOne({ _id: agentId });
    if (agent === null) throw new Error(`agent ${agentId} has lost its record`);
    const times = timesOf(events);
    await this.#write(
      this.#writes,
      ofAgent(profileOf(agent)),
      events.map(({ at, id, type }, index) => {
        const lifecycle = LIFECYCLE_EVENTS[type];
        // The record may be ahead of or behind the event.
        const then =
          lifecycle === "archived" ? { archivedAt: new Date(at), key: null } : { archivedAt: null };
        const data = { agent: { ...agentSnapshot(agent), lifecycle, ...then } };
        return { _id: id, type, createdAt: times[index] ?? new Date(at), data };
      }),
    );
  }

  /** Writes an event that concerns an organization and none of its agents. Idempotent by the event's id. */
  async organizationEvent(organizationId: string, event: NewEvent): Promise<void> {
    await this.#write(this.#writes, ofOrganization(organizationId), [event]);
  }

  /**
   * Writes an agent's event that concerns neither a payment nor the agent's lifecycle. Idempotent by the event's id.
   */
  async agentEvent(profile: AgentProfile, event: NewEvent): Promise<void> {
    await this.#write(this.#writes, ofAgent(profile), [event]);
  }

  async #write(
    writes: BulkWriter<EventDocument>,
    scope: EventScope,
    events: readonly NewEvent[],
  ): Promise<void> {
    if (events.length === 0) return;
    await Promise.all(
      events.map((event) => writes.write({ insertOne: { document: eventOf(this.#proofs, scope, event) } })),
    );
    this.#onWritten();
  }
}

/** Returns distinct times, at least a millisecond apart, since deliveries follow the order of times. */
function timesOf(events: readonly LifecycleEvent[]): Date[] {
  let last = 0;
  return events.map(({ at }) => {
    last = Math.max(at, last + 1);
    return new Date(last);
  });
}

/**
 * Returns the event of an agent's creation, to be written with its record in the transaction that commits the create.
 */
export const createdEvent = (agent: AgentDocument, proofs: EventProofs): EventDocument =>
  eventOf(proofs, ofAgent(profileOf(agent)), {
    _id: createdEventId(agent._id),
    type: "agent.created",
    createdAt: agent.createdAt,
    data: { agent: agentSnapshot(agent) },
  });

function eventOf(proofs: EventProofs, scope: EventScope, event: NewEvent): EventDocument {
  const made = { ...event, ...scope, isPending: true, ...traceHeaders() } as const;
  return { ...made, proof: proofs.make("event", made) };
}

const ofAgent = ({ name, ...place }: AgentProfile): EventScope => ({ ...place, agentName: name });

const ofOrganization = (organizationId: string): EventScope => ({
  organizationId,
  projectId: null,
  teamId: null,
  agentId: null,
  agentName: null,
});

/** Returns an event's scope. A limit of a project or a team concerns no single agent. */
const scopeOf = (profile: AgentProfile, level: Warning["level"]): EventScope => {
  const scope = ofAgent(profile);
  if (level === "agent") return scope;
  return { ...scope, teamId: level === "team" ? scope.teamId : null, agentId: null, agentName: null };
};

function budgetRecord(
  { agentId, projectId, teamId }: AgentProfile,
  { at: _at, resetsAt, startedAt, ...warning }: Warning,
): BudgetRecord {
  const id = { agent: agentId, team: teamId, project: projectId }[warning.level];
  return { ...warning, id, startedAt: dateOrNull(startedAt), resetsAt: dateOrNull(resetsAt) };
}

const dateOrNull = (at: number | null): Date | null => (at === null ? null : new Date(at));

function snapshotOf(profile: AgentProfile, payment: Payment, withApproval: boolean): EventDocument["data"] {
  const {
    keyHash: _keyHash,
    payloadHash: _payloadHash,
    comparedRecipient: _comparedRecipient,
    words: _words,
    moved: _moved,
    ledgerState: _ledgerState,
    ...transaction
  } = transactionDocument(profile, payment);
  const held = withApproval ? approvalDocument(profile, payment) : null;
  if (held === null) return { transaction };
  const { ledgerState: _ofApproval, ...approval } = held;
  return { approval, transaction };
}

/** Returns an agent's record without the fields that authenticate or deliver keys. */
function agentSnapshot(agent: AgentDocument): AgentSnapshot {
  const { candidateKeys: _candidates, key, keyDeliverableUntil: _until, proof: _proof, ...rest } = agent;
  if (key === null) return { ...rest, key };
  const { hash: _hash, ...shown } = key;
  return { ...rest, key: { ...shown, hash: "", proof: "" } };
}

export const JOURNAL_INDEXES: Indexes = {
  [COLLECTIONS.events]: [
    {
      key: { organizationId: 1, createdAt: -1, _id: -1 },
      name: "organization",
      reader: "a replay of an organization's events",
    },
    {
      key: { isPending: 1, organizationId: 1, createdAt: 1, _id: 1 },
      name: "pending",
      reader: "events to dispatch, the oldest first",
      partialFilterExpression: { isPending: true },
    },
  ],
};
