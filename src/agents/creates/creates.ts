import type { Collection } from "mongodb";
import { setTimeout as sleep } from "node:timers/promises";
import { changed, type Outcome, unchanged } from "../../audit/notes.ts";
import type { Containers, Parent } from "../../containers/containers.ts";
import { refusal } from "../../domain/errors.ts";
import type { Result } from "../../domain/result.ts";
import { ok, refused } from "../../domain/result.ts";
import { RESPONSE_MARGIN_MS } from "../../lib/deadline.ts";
import { newUuid } from "../../lib/ids.ts";
import type { KeyedMutex } from "../../lib/keyed-mutex.ts";
import { withTimeout } from "../../lib/with-timeout.ts";
import { isDuplicateKey } from "../../lib/duplicate-key.ts";
import type { CreateDocument } from "../../store/collections.ts";
import type { Committable, Committed, Create, Created, CreateRun, LeasedCreate } from "./create.ts";
import type { DailyCreates, QuotaSlot } from "./daily-creates.ts";
import { CreateReservations } from "./reservations.ts";
import { CreateSlots } from "./slots.ts";

export interface CreatesDependencies {
  readonly creates: Collection<CreateDocument>;
  readonly dailyCreates: DailyCreates;
  readonly containers: Containers;
  readonly mutex: KeyedMutex;
  readonly clock: () => Date;
}

/** Maximum wait of a replay for the call that executes its create; then the response is 409. */
const EARLIER_CALL_MS = 10_000;
const POLL_MS = 50;
/** Interval of polls for a create that this process executes. Its end is signalled; polls only cover a hang. */
const SLOW_POLL_MS = 500;

/** Timeout of a create, even with an extended deadline. A slower one continues, and a replay finds it. */
const EXECUTED_MS = 3_400;

/**
 * Deadline of a create without an idempotency key once it begins to commit: its caller can't learn the outcome later.
 */
const COMMITTED_MS = 4_900;

/** Maximum slots that a create takes when its slot is reclaimed meanwhile. */
const SLOT_ATTEMPTS_MAX = 3;

/**
 * Creates agents, projects and teams; nothing else does. An idempotency key has one permanent id, fixed before any
 * work. The record, the slot under the daily limit and the check that the container is live are committed in one
 * transaction. So whatever replays, races or crashes occur, there is at most one record, none in an archived container,
 * and none beyond the limit. One call at a time executes a create and the others wait for it, which only saves work;
 * correctness does not depend on it.
 *
 * Order of checks: another payload is refused, a committed create is returned, then an archived container, the daily
 * limit and a full container are refused.
 */
export class Creates {
  readonly #dependencies: CreatesDependencies;
  readonly #reservations: CreateReservations;
  readonly #slots: CreateSlots;
  /** Creates that this process executes, by reservation, so that calls waiting for them need not poll. */
  readonly #inFlight = new Map<string, Promise<unknown>>();

  constructor(dependencies: CreatesDependencies) {
    const { clock, creates, dailyCreates } = dependencies;
    this.#dependencies = dependencies;
    this.#reservations = new CreateReservations(creates, clock);
    this.#slots = new CreateSlots(dailyCreates, clock);
  }

  async once<R extends Committable, M extends { readonly record: R }>(
    create: Create<R, M>,
  ): Promise<Result<Created<R, M>>> {
    const { deadline } = create;
    const reservation = this.#reservations.of(create);
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
    // Most creates are new, so the reservation is written without a prior read.
    let leased = isArchived(create) ? null : await this.#reservations.reserve(reservation);
    while (leased === null) {
      const earlier = await this.#reservations.find(reservation._id);
      if (earlier !== null) {
        const differs = earlier.payloadHash !== reservation.payloadHash;
        if (differs) return refused(refusal("IDEMPOTENCY_KEY_REUSED"));
        const record = await create.find(earlier.createdId);
        if (record !== null) return ok({ replayed: true, record });
      }
      if (isArchived(create)) return archived();
      leased =
        earlier === null
          ? await this.#reservations.reserve(reservation)
          : await this.#reservations.takeLease(earlier);
      if (leased !== null) break;
      deadline.moveTo(EARLIER_CALL_MS + RESPONSE_MARGIN_MS);
      if (deadline.spareMs === 0) return refused(refusal("REQUEST_IN_PROGRESS"));
      await this.#nextPoll(reservation._id, deadline.spareMs);
    }
    const work = this.#shareUntil(leased.reservationId, this.#executeLeased(create, leased));
    return withTimeout(EXECUTED_MS, work);
  }

  /** Signals the work's end to calls waiting in this process. */
  async #shareUntil<T>(reservationId: string, work: Promise<T>): Promise<T> {
    const ended = work.then(nothing, nothing);
    this.#inFlight.set(reservationId, ended);
    try {
      return await work;
    } finally {
      if (this.#inFlight.get(reservationId) === ended) this.#inFlight.delete(reservationId);
    }
  }

  /** Waits for the next poll, at most until the end of the wait, which precedes the pipeline's timeout. */
  async #nextPoll(reservationId: string, leftMs: number): Promise<void> {
    const ended = this.#inFlight.get(reservationId);
    const pause = (atMostMs: number) => sleep(Math.min(atMostMs, Math.max(1, leftMs)));
    await (ended === undefined ? pause(POLL_MS) : Promise.race([ended, pause(SLOW_POLL_MS)]));
  }

  /** Executes a create to its end, even if no caller waits for it any more. */
  async #executeLeased<R extends Committable, M extends { readonly record: R }>(
    create: Create<R, M>,
    leased: LeasedCreate,
  ): Promise<Result<Created<R, M>>> {
    let result: Result<Created<R, M>> | null = null;
    try {
      const made = await this.#makeUnlessDue(create, leased);
      result =
        made === "discarded"
          ? await this.#orRetry(this.#make(create, await this.#reservations.restarted(leased)))
          : made;
      return result;
    } finally {
      // The lease of a create with a record is never read again; not releasing it saves a write before the response.
      if (result?.ok !== true) await this.#reservations.release(leased);
    }
  }

  /** Restarts a create that was left half-way long ago: its window would end with its first response. */
  async #makeUnlessDue<R extends Committable, M extends { readonly record: R }>(
    create: Create<R, M>,
    leased: LeasedCreate,
  ): Promise<Result<Created<R, M>> | "discarded"> {
    const { find, discarding } = create;
    if (discarding === undefined || !discarding.isDue(leased.begunAt)) return this.#make(create, leased);
    if ((await discarding.discard(leased.id)) === "discarded") {
      await this.#slots.release(create.principal, leased.id);
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
      const quotaSlot = await this.#slots.take(create.principal, run.id);
      if (!quotaSlot.ok) return quotaSlot;
      const created = await this.#slots.releasing(quotaSlot.value, () =>
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
        // A create without an idempotency key can't be replayed.
        return refused(refusal("SERVICE_UNAVAILABLE", undefined, { retryAfterSeconds: 1 }));
      case "slot_lost":
        return outcome;
      case "there": {
        const record = await create.find(id);
        if (record !== null) return ok({ replayed: true, record });
        if ((await create.discarding?.isDiscarded(id)) === true) return "discarded";
        throw new Error(`a ${create.kind} conflicts with another record`);
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
      // The mutex covers what the create contends for with other commits: the day's slots, the container, or nothing.
      return await mutex.run(quotaSlot?.dayId ?? parent?.id ?? made.record._id, commit);
    } catch (error) {
      if (isDuplicateKey(error)) return "there";
      throw error;
    }
  }
}

const isArchived = ({ parent }: { readonly parent: Parent | null }): boolean =>
  parent !== null && parent.archivedAt !== null;

const nothing = (): void => undefined;
const retryable = () => refused(refusal("CREATE_RETRYABLE", undefined, { retryAfterSeconds: 1 }));
const archived = () => refused(refusal("CONTAINER_ARCHIVED"));
