import type { ClientSession, Collection } from "mongodb";
import { type Refusal, refusal } from "../domain/errors.ts";
import type { Result } from "../domain/result.ts";
import { ok, refused } from "../domain/result.ts";
import { type AuditedWrites, changed, type EntryDetails, type Outcome, unchanged } from "../audit/notes.ts";
import type { CreateDocument } from "../store/collections.ts";
import type { Containers, Parent } from "../containers/containers.ts";
import { RESPONSE_MARGIN_MS, type Deadline } from "../lib/deadline.ts";
import { setTimeout as sleep } from "node:timers/promises";
import { withTimeout } from "../lib/with-timeout.ts";
import { newUuid, payloadHash, shortHash } from "../lib/ids.ts";
import { dailyCreatesId } from "../store/organization-key-documents.ts";
import type { ManagementPrincipal } from "../identity/principals.ts";
import { isDuplicateKey } from "../secrets/settings.ts";
import type { KeyedMutex } from "../lib/keyed-mutex.ts";
import type { DailyCreates, QuotaSlot } from "./daily-creates.ts";

/** What a create writes when all else is done. */
interface Committable {
  readonly _id: string;
}

/** One create of any kind, as its handler describes it. */
export interface Create<R extends Committable, M extends { readonly record: R }> {
  readonly kind: "agent" | "project" | "team";
  readonly principal: ManagementPrincipal;
  /** The record is written with its entry in the audit log. */
  readonly audit: AuditedWrites;
  readonly idempotencyKey: string | undefined;
  /** Moved where another call is found at the same create, and where only the response shows the outcome. */
  readonly deadline: Deadline;
  /** What a replay must repeat, defaults spelt out. */
  readonly payload: Readonly<Record<string, unknown>>;
  /** The container that it is for, as the pipeline found it. */
  readonly parent: Parent | null;
  readonly find: (id: string) => Promise<R | null>;
  /**
   * All that goes before the record. Repeatable: a create that died half-way is begun again under the same id, and `begunAt` is
   * when that id was first set to work. A refusal where it exceeds a limit.
   */
  readonly prepare: (id: string, begunAt: Date) => Promise<M | Refusal>;
  /**
   * A refusal where the container is full; missing: it never is. Checked beforehand, and in the transaction that writes the
   * record, once the container is entered.
   */
  readonly capacityRefusal?: (session?: ClientSession) => Promise<Refusal | null>;
  /** Writes the record, which commits the create, and says what its entry says of it. */
  readonly insert: (made: M, session: ClientSession) => Promise<Pick<EntryDetails, "after">>;
  /** Where an uncommitted create is discarded after some time: how that is detected, and done. */
  readonly discarding?: Discarding;
}

interface Discarding {
  /** Whether a create that was begun then is to be discarded, unless it was committed. */
  readonly isDue: (begunAt: Date) => boolean;
  /** Discards it, unless it was committed: afterwards nothing can be committed under the id any more. */
  readonly discard: (id: string) => Promise<"committed" | "discarded">;
  /** Whether it was discarded meanwhile. */
  readonly isDiscarded: (id: string) => Promise<boolean>;
}

/** What was made, or else the record that an earlier call, or one at the same time, made. */
export type Created<R, M> =
  { readonly replayed: false; readonly made: M } | { readonly replayed: true; readonly record: R };

type Committed = "committed" | "there" | "archived" | "abandoned" | "slot_lost" | Refusal;

/** The id that a create is executed under, and since when. */
interface CreateRun {
  readonly id: string;
  readonly begunAt: Date;
  /**
   * Called just before the commit: whether the call will be answered without its end, and no replay will ever find what it makes.
   * If not, its answer waits for the commit.
   */
  readonly isAbandoned?: () => boolean;
}

/** A create that this call executes under a lease. */
interface LeasedCreate extends CreateRun {
  readonly reservationId: string;
  readonly leaseHolder: string;
}

export interface CreatesDependencies {
  readonly creates: Collection<CreateDocument>;
  readonly dailyCreates: DailyCreates;
  readonly containers: Containers;
  readonly mutex: KeyedMutex;
  readonly clock: () => Date;
}

/** How long a replay waits for the call that executes its create; then it is 409. */
const EARLIER_CALL_MS = 10_000;
const POLL_MS = 50;
/** The same where this process executes the create: its end is signalled, and polled only in case it hangs. */
const SLOW_POLL_MS = 500;

/** Less than that: who waits for a call whose process has died takes its create over. */
const LEASE_MS = 8_000;

/** Servers' clocks differ by no more, or one of them is wrong. */
const CLOCK_SKEW_MAX_MS = 60_000;

/**
 * How long a create itself may take, also where its deadline was moved since it had waited; what takes longer goes on, and a
 * replay finds it.
 */
const EXECUTED_MS = 3_400;

/** The deadline of a create without an idempotency key that has begun to commit: its caller can't find out the outcome later. */
const COMMITTED_MS = 4_900;

/** A create whose slot was reclaimed meanwhile takes another; this often at most. */
const SLOT_ATTEMPTS_MAX = 3;

/**
 * The one way in which agents, projects and teams are created. For an idempotency key there is one id for good, fixed before
 * anything is done. The record, the slot under the daily limit and the container's being live are committed in one transaction,
 * so with any replays, races or crashes: one record at the most, none in an archived container, none beyond the limit. One call
 * at a time executes a create and the others wait for it; that only saves work, correctness does not depend on it.
 *
 * The order of refusals: another payload → (a committed create is answered) → archived container → daily limit → a container
 * without room.
 */
export class Creates {
  readonly #dependencies: CreatesDependencies;
  /** Creates that this process executes, by reservation: hundreds who wait for one do not poll the database. */
  readonly #inFlight = new Map<string, Promise<unknown>>();

  constructor(dependencies: CreatesDependencies) {
    this.#dependencies = dependencies;
  }

  async once<R extends Committable, M extends { readonly record: R }>(
    create: Create<R, M>,
  ): Promise<Result<Created<R, M>>> {
    const { deadline } = create;
    const reservation = this.#reservationOf(create);
    if (reservation === null) {
      if (isArchived(create)) return archived();
      const isAbandoned = (): boolean => {
        if (deadline.spareMs === 0) return true;
        deadline.moveTo(COMMITTED_MS);
        return false;
      };
      const run = { id: newUuid(), begunAt: this.#dependencies.clock(), isAbandoned };
      return this.#orRetry(this.#make(create, run));
    }
    // Most creates are new: the reservation is written without a look whether there is one.
    let leased = isArchived(create) ? null : await this.#reserve(reservation);
    while (leased === null) {
      const earlier = await this.#dependencies.creates.findOne({ _id: reservation._id });
      if (earlier !== null) {
        const differs = earlier.payloadHash !== reservation.payloadHash;
        if (differs) return refused(refusal("IDEMPOTENCY_KEY_REUSED"));
        const record = await create.find(earlier.createdId);
        if (record !== null) return ok({ replayed: true, record });
      }
      if (isArchived(create)) return archived();
      leased = earlier === null ? await this.#reserve(reservation) : await this.#takeLease(earlier);
      if (leased !== null) break;
      deadline.moveTo(EARLIER_CALL_MS + RESPONSE_MARGIN_MS);
      if (deadline.spareMs === 0) return refused(refusal("REQUEST_IN_PROGRESS"));
      await this.#nextPoll(reservation._id, deadline.spareMs);
    }
    const work = this.#shareUntil(leased.reservationId, this.#executeLeased(create, leased));
    return withTimeout(EXECUTED_MS, work);
  }

  /** Lets those who wait in this process know of the work's end. */
  async #shareUntil<T>(reservationId: string, work: Promise<T>): Promise<T> {
    const ended = work.then(nothing, nothing);
    this.#inFlight.set(reservationId, ended);
    try {
      return await work;
    } finally {
      if (this.#inFlight.get(reservationId) === ended) this.#inFlight.delete(reservationId);
    }
  }

  /** The last look is at the end of the wait, so that its answer comes before the pipeline's. */
  async #nextPoll(reservationId: string, leftMs: number): Promise<void> {
    const ended = this.#inFlight.get(reservationId);
    const pause = (atMostMs: number) => sleep(Math.min(atMostMs, Math.max(1, leftMs)));
    await (ended === undefined ? pause(POLL_MS) : Promise.race([ended, pause(SLOW_POLL_MS)]));
  }

  /** Executes a create to its end, also when no caller waits for it any more. */
  async #executeLeased<R extends Committable, M extends { readonly record: R }>(
    create: Create<R, M>,
    leased: LeasedCreate,
  ): Promise<Result<Created<R, M>>> {
    let result: Result<Created<R, M>> | null = null;
    try {
      const made = await this.#makeUnlessDue(create, leased);
      result =
        made === "discarded" ? await this.#orRetry(this.#make(create, await this.#restarted(leased))) : made;
      return result;
    } finally {
      // The lease of a create that has its record is not read any more, so it is not released: a write less before the response.
      if (result?.ok !== true) await this.#release(leased);
    }
  }

  /** A create that was left half-way long ago is not finished but restarted: its window would be over with its first response. */
  async #makeUnlessDue<R extends Committable, M extends { readonly record: R }>(
    create: Create<R, M>,
    leased: LeasedCreate,
  ): Promise<Result<Created<R, M>> | "discarded"> {
    const { find, discarding } = create;
    if (discarding === undefined || !discarding.isDue(leased.begunAt)) return this.#make(create, leased);
    if ((await discarding.discard(leased.id)) === "discarded") {
      await this.#releaseSlot(create.principal, leased.id);
      return "discarded";
    }
    const record = await find(leased.id);
    return record === null ? this.#make(create, leased) : ok({ replayed: true, record });
  }

  async #orRetry<T>(making: Promise<Result<T> | "discarded">): Promise<Result<T>> {
    const made = await making;
    return made === "discarded" ? retryable() : made;
  }

  async #make<R extends Committable, M extends { readonly record: R }>(
    create: Create<R, M>,
    run: CreateRun,
  ): Promise<Result<Created<R, M>> | "discarded"> {
    for (let taken = 0; taken < SLOT_ATTEMPTS_MAX; taken += 1) {
      const quotaSlot = await this.#takeSlot(create.principal, run.id);
      if (!quotaSlot.ok) return quotaSlot;
      const created = await this.#releasingSlot(quotaSlot.value, () =>
        this.#execute(create, run, quotaSlot.value),
      );
      if (created !== "slot_lost") return created;
    }
    return retryable();
  }

  async #execute<R extends Committable, M extends { readonly record: R }>(
    create: Create<R, M>,
    { begunAt, id, isAbandoned }: CreateRun,
    quotaSlot: QuotaSlot | null,
  ): Promise<Result<Created<R, M>> | "discarded" | "slot_lost"> {
    const full = (await create.capacityRefusal?.()) ?? null;
    if (full !== null) return refused(full);
    const made = await create.prepare(id, begunAt);
    if ("code" in made) return refused(made);
    const outcome = await this.#commit(create, made, quotaSlot, isAbandoned);
    if (typeof outcome !== "string") return refused(outcome);
    switch (outcome) {
      case "committed":
        return ok({ replayed: false, made });
      case "archived":
        return archived();
      case "abandoned":
        // It has no idempotency key to be replayed with.
        return refused(refusal("SERVICE_UNAVAILABLE", undefined, { retryAfterSeconds: 1 }));
      case "slot_lost":
        return outcome;
      case "there": {
        const record = await create.find(id);
        if (record !== null) return ok({ replayed: true, record });
        if ((await create.discarding?.isDiscarded(id)) === true) return "discarded";
        throw new Error(`a ${create.kind} could not be written beside another record`);
      }
    }
  }

  async #commit<R extends Committable, M extends { readonly record: R }>(
    { audit, insert, kind, parent, capacityRefusal }: Create<R, M>,
    made: M,
    quotaSlot: QuotaSlot | null,
    isAbandoned: CreateRun["isAbandoned"],
  ): Promise<Committed> {
    const { containers, dailyCreates, mutex } = this.#dependencies;
    const commit = (): Promise<Committed> =>
      audit.transaction<Committed>(async (session) => {
        const rolledBack = async (outcome: Committed): Promise<Outcome<Committed>> => {
          await session.abortTransaction();
          return unchanged(outcome);
        };
        if (quotaSlot !== null && !(await dailyCreates.confirm(quotaSlot, session)))
          return rolledBack("slot_lost");
        if (parent !== null && !(await containers.enter(parent, session))) return rolledBack("archived");
        const full = (await capacityRefusal?.(session)) ?? null;
        if (full !== null) return rolledBack(full);
        const entry = await insert(made, session);
        if (isAbandoned?.() === true) return rolledBack("abandoned");
        return changed("committed", { ...entry, on: { type: kind, id: made.record._id } });
      });
    try {
      // What it contends for with other commits: the day's slots, the container, or nothing.
      return await mutex.run(quotaSlot?.dayId ?? parent?.id ?? made.record._id, commit);
    } catch (error) {
      if (isDuplicateKey(error)) return "there";
      throw error;
    }
  }

  /** People have no daily create limit. */
  async #takeSlot(principal: ManagementPrincipal, id: string): Promise<Result<QuotaSlot | null>> {
    if (principal.type === "session") return ok(null);
    return this.#dependencies.dailyCreates.take(principal, id, this.#dependencies.clock());
  }

  /** The slot of a discarded create is free for its replacement. */
  async #releaseSlot(principal: ManagementPrincipal, createdId: string): Promise<void> {
    if (principal.type === "session") return;
    const dayId = dailyCreatesId(principal.lineageId, this.#dependencies.clock());
    await this.#dependencies.dailyCreates.release({ dayId, createdId });
  }

  /** A refused create releases its slot; so does a failed one, and its replay takes another. */
  async #releasingSlot<R, M>(
    quotaSlot: QuotaSlot | null,
    work: () => Promise<Result<Created<R, M>> | "discarded" | "slot_lost">,
  ) {
    const { dailyCreates } = this.#dependencies;
    try {
      const result = await work();
      // A lost slot may be another call's by now, under the same id.
      const ownsSlot = quotaSlot !== null && result !== "slot_lost";
      // Of a create that another call finished, too: that one may have committed with a slot of the day before.
      if (ownsSlot && !(result !== "discarded" && result.ok && !result.value.replayed))
        await dailyCreates.release(quotaSlot);
      return result;
    } catch (error) {
      // Where the database is out of reach for this too, the slot is reclaimed when it is needed.
      if (quotaSlot !== null) await dailyCreates.release(quotaSlot).catch(() => undefined);
      throw error;
    }
  }

  #reservationOf<R extends Committable, M extends { readonly record: R }>(
    create: Create<R, M>,
  ): CreateDocument | null {
    const { idempotencyKey, kind, payload, principal } = create;
    if (idempotencyKey === undefined) return null;
    const owner = [principal.organizationId, ...creatorOf(principal), idempotencyKey];
    const now = this.#dependencies.clock();
    return {
      _id: shortHash(JSON.stringify(owner)),
      // The kind too: a key that made an agent makes no team.
      payloadHash: payloadHash({ kind, payload }),
      createdId: newUuid(),
      createdAt: now,
      leaseHolder: newUuid(),
      leaseUntil: new Date(now.getTime() + LEASE_MS),
    };
  }

  /** Reserves the id that the create has for good; null where another call was first. */
  async #reserve(reservation: CreateDocument): Promise<LeasedCreate | null> {
    try {
      await this.#dependencies.creates.insertOne(reservation);
      return leasedCreate(reservation);
    } catch (error) {
      if (isDuplicateKey(error)) return null;
      throw error;
    }
  }

  /** Takes the lease of a create whose call has failed, or died some time ago. */
  async #takeLease(earlier: CreateDocument): Promise<LeasedCreate | null> {
    const now = this.#dependencies.clock();
    const { _id, leaseUntil } = earlier;
    if (isLeased(leaseUntil, now)) return null;
    const taken = { leaseHolder: newUuid(), leaseUntil: new Date(now.getTime() + LEASE_MS) };
    const leased = await this.#dependencies.creates.findOneAndUpdate(
      { _id, leaseHolder: earlier.leaseHolder ?? null },
      { $set: taken },
      { returnDocument: "after" },
    );
    if (leased === null) return null;
    // What an earlier version of the service had begun is given up: its actor, if there is one, ends no window.
    const isOld = (earlier.leaseHolder ?? null) === null;
    return { ...leasedCreate(leased), ...(isOld ? { begunAt: new Date(0) } : {}) };
  }

  /** Where the database is out of reach for this, the lease expires by itself. */
  async #release({ leaseHolder, reservationId }: LeasedCreate): Promise<void> {
    const $set = { leaseUntil: this.#dependencies.clock() };
    await this.#dependencies.creates
      .updateOne({ _id: reservationId, leaseHolder }, { $set })
      .catch(() => undefined);
  }

  /** The create under this id was discarded, and no response ever named the id: the create gets another. */
  async #restarted({ leaseHolder, id, reservationId }: LeasedCreate): Promise<CreateRun> {
    const run = { id: newUuid(), begunAt: this.#dependencies.clock() };
    const restarted = { createdId: run.id, createdAt: run.begunAt };
    await this.#dependencies.creates.updateOne({ _id: reservationId, createdId: id }, { $set: restarted });
    const found = await this.#dependencies.creates.findOne({ _id: reservationId });
    if (found === null) throw new Error("a reservation was lost");
    return { ...leasedCreate({ ...found, leaseHolder }) };
  }
}

const leasedCreate = ({ _id, createdAt, createdId, leaseHolder }: CreateDocument): LeasedCreate => ({
  reservationId: _id,
  leaseHolder,
  id: createdId,
  begunAt: createdAt,
});

/**
 * Whether its lease is still valid. What would be held for much longer than anything is was taken by a clock that ran ahead, or
 * this one was set back. Reservations from before they were held have no such field.
 */
function isLeased(leaseUntil: Date | undefined, now: Date): boolean {
  const leftMs = (leaseUntil?.getTime() ?? 0) - now.getTime();
  return leftMs > 0 && leftMs <= LEASE_MS + CLOCK_SKEW_MAX_MS;
}

const isArchived = ({ parent }: { readonly parent: Parent | null }): boolean =>
  parent !== null && parent.archivedAt !== null;

const nothing = (): void => undefined;
const retryable = () => refused(refusal("CREATE_RETRYABLE", undefined, { retryAfterSeconds: 1 }));
const archived = () => refused(refusal("CONTAINER_ARCHIVED"));

/** Whose idempotency key it is: a user's, or that of a key and those that it was rotated into. */
const creatorOf = (principal: ManagementPrincipal): readonly [string, string] =>
  principal.type === "session" ? ["user", principal.userId] : ["organization_key", principal.lineageId];
