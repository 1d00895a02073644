import type { ClientSession, Collection } from "mongodb";
import { refusal } from "../../src/domain/errors.ts";
import type { Result } from "../../src/domain/result.ts";
import { ok, refused } from "../../src/domain/result.ts";
import type { CreateDocument } from "../collections.ts";
import type { Containers, Parent } from "../containers/containers.ts";
import { newUuid, payloadHash, shortHash } from "../ids.ts";
import type { ManagementPrincipal } from "../principals.ts";
import { isDuplicateKey } from "../secrets/settings.ts";
import type { Transaction } from "../transactions.ts";
import type { Turns } from "../turns.ts";
import type { DailyCreates, Place } from "./daily-creates.ts";

/** What a create writes when all else is done. */
interface Committable {
  readonly _id: string;
}

/** One create of any kind, as its handler describes it. */
export interface Create<R extends Committable, M extends { readonly record: R }> {
  readonly kind: "agent" | "project" | "team";
  readonly principal: ManagementPrincipal;
  readonly idempotencyKey: string | undefined;
  /** What a replay must repeat, defaults spelt out. */
  readonly payload: Readonly<Record<string, unknown>>;
  /** The container that it is for, as the pipeline found it. */
  readonly parent: Parent | null;
  readonly find: (id: string) => Promise<R | null>;
  /** All that goes before the record. Repeatable: a create that died half-way is begun again under the same id. */
  readonly prepare: (id: string) => Promise<M>;
  /** Writes the record, which commits the create. */
  readonly insert: (record: R, session: ClientSession) => Promise<unknown>;
}

/** What was made, or else the record that an earlier call, or one at the same time, made. */
export type Created<R, M> =
  { readonly replayed: false; readonly made: M } | { readonly replayed: true; readonly record: R };

type Committed = "committed" | "there" | "archived" | "place_lost";

export interface CreatesDependencies {
  readonly creates: Collection<CreateDocument>;
  readonly dailyCreates: DailyCreates;
  readonly containers: Containers;
  readonly transaction: Transaction;
  readonly turns: Turns;
  readonly clock: () => Date;
}

/** A create whose place was reclaimed under it takes another; this often at most. */
const PLACES_TAKEN_MAX = 3;

/**
 * The one way in which agents, projects and teams are created (management-api.md section 4.1 and 4.2, decisions.md sections
 * 2, 3 and 9). For an idempotency key there is one id for good, fixed before anything is done. The record, the place
 * under the daily limit and the container's being live are committed in one transaction, so whoever replays, races or
 * dies: one record at the most, none in an archived container, none beyond the limit.
 *
 * The order of refusals: another payload → (a committed create is answered) → archived container → daily limit.
 */
export class Creates {
  readonly #dependencies: CreatesDependencies;

  constructor(dependencies: CreatesDependencies) {
    this.#dependencies = dependencies;
  }

  async once<R extends Committable, M extends { readonly record: R }>(
    create: Create<R, M>,
  ): Promise<Result<Created<R, M>>> {
    const reservation = this.#reservationOf(create);
    const earlier = reservation === null ? null : await this.#earlierId(reservation);
    if (earlier !== null) {
      if (!earlier.ok) return earlier;
      const record = await create.find(earlier.value);
      if (record !== null) return ok({ replayed: true, record });
    }
    if (create.parent !== null && create.parent.archivedAt !== null) return archived();
    const id = reservation === null ? ok(newUuid()) : await this.#reserveId(reservation);
    return id.ok ? this.#make(create, id.value) : id;
  }

  async #make<R extends Committable, M extends { readonly record: R }>(
    create: Create<R, M>,
    id: string,
  ): Promise<Result<Created<R, M>>> {
    for (let taken = 0; taken < PLACES_TAKEN_MAX; taken += 1) {
      const place = await this.#takePlace(create.principal, id);
      if (!place.ok) return place;
      const created = await this.#givingBack(place.value, () => this.#carryOut(create, id, place.value));
      if (created !== "place_lost") return created;
    }
    return refused(refusal("CREATE_RETRYABLE", undefined, { retryAfterSeconds: 1 }));
  }

  async #carryOut<R extends Committable, M extends { readonly record: R }>(
    create: Create<R, M>,
    id: string,
    place: Place | null,
  ): Promise<Result<Created<R, M>> | "place_lost"> {
    const made = await create.prepare(id);
    const outcome = await this.#commit(create, made.record, place);
    switch (outcome) {
      case "committed":
        return ok({ replayed: false, made });
      case "archived":
        return archived();
      case "place_lost":
        return outcome;
      case "there": {
        const record = await create.find(id);
        if (record === null) throw new Error(`a ${create.kind} could not be written beside another record`);
        return ok({ replayed: true, record });
      }
    }
  }

  async #commit<R extends Committable, M extends { readonly record: R }>(
    { insert, parent }: Create<R, M>,
    record: R,
    place: Place | null,
  ): Promise<Committed> {
    const { containers, dailyCreates, transaction, turns } = this.#dependencies;
    const commit = (): Promise<Committed> =>
      transaction(async (session) => {
        const undone = async (outcome: Committed): Promise<Committed> => {
          await session.abortTransaction();
          return outcome;
        };
        if (place !== null && !(await dailyCreates.confirm(place, session))) return undone("place_lost");
        if (parent !== null && !(await containers.enter(parent, session))) return undone("archived");
        await insert(record, session);
        return "committed";
      });
    try {
      // What it shares with others that commit: the day's places, the container, or nothing.
      return await turns.take(place?.dayId ?? parent?.id ?? record._id, commit);
    } catch (error) {
      if (isDuplicateKey(error)) return "there";
      throw error;
    }
  }

  /** People have no daily limit. */
  async #takePlace(principal: ManagementPrincipal, id: string): Promise<Result<Place | null>> {
    if (principal.type === "session") return ok(null);
    return this.#dependencies.dailyCreates.take(principal, id, this.#dependencies.clock());
  }

  /** A create that came to nothing gives its place back; so does one that failed, and its replay takes another. */
  async #givingBack<R, M>(place: Place | null, work: () => Promise<Result<Created<R, M>> | "place_lost">) {
    const { dailyCreates } = this.#dependencies;
    try {
      const result = await work();
      // A lost place may be another call's by now, under the same id.
      const isHeld = place !== null && result !== "place_lost";
      // Of a create that another call finished, too: that one may have committed with a place of the day before.
      if (isHeld && !(result.ok && !result.value.replayed)) await dailyCreates.release(place);
      return result;
    } catch (error) {
      // Where the database is out of reach for this too, the place is reclaimed when it is needed.
      if (place !== null) await dailyCreates.release(place).catch(() => undefined);
      throw error;
    }
  }

  #reservationOf<R extends Committable, M extends { readonly record: R }>(
    create: Create<R, M>,
  ): CreateDocument | null {
    const { idempotencyKey, kind, payload, principal } = create;
    if (idempotencyKey === undefined) return null;
    const owner = [principal.organizationId, ...creatorOf(principal), idempotencyKey];
    return {
      _id: shortHash(JSON.stringify(owner)),
      // The kind too: a key that made an agent makes no team.
      payloadHash: payloadHash({ kind, payload }),
      createdId: newUuid(),
      createdAt: this.#dependencies.clock(),
    };
  }

  /** What was reserved under the key before: null when nothing was. */
  async #earlierId(reservation: CreateDocument): Promise<Result<string> | null> {
    const earlier = await this.#dependencies.creates.findOne({ _id: reservation._id });
    if (earlier === null) return null;
    if (earlier.payloadHash !== reservation.payloadHash) return refused(refusal("IDEMPOTENCY_KEY_REUSED"));
    return ok(earlier.createdId);
  }

  /** The id this create has for good: the one recorded under its idempotency key, or the new one. */
  async #reserveId(reservation: CreateDocument): Promise<Result<string>> {
    try {
      await this.#dependencies.creates.insertOne(reservation);
      return ok(reservation.createdId);
    } catch (error) {
      if (!isDuplicateKey(error)) throw error;
    }
    return (await this.#earlierId(reservation)) ?? ok(reservation.createdId);
  }
}

const archived = () => refused(refusal("CONTAINER_ARCHIVED"));

/** Whose idempotency key it is: a user's, or that of a key and those that it was rotated into. */
const creatorOf = (principal: ManagementPrincipal): readonly [string, string] =>
  principal.type === "session" ? ["user", principal.userId] : ["organization_key", principal.lineageId];
