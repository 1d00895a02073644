import type { Collection } from "mongodb";
import type { ManagementPrincipal } from "../../identity/principals.ts";
import { newUuid, payloadHash, shortHash } from "../../lib/ids.ts";
import { isDuplicateKey } from "../../lib/duplicate-key.ts";
import type { CreateDocument } from "../../store/collections.ts";
import type { Committable, Create, CreateRun, LeasedCreate } from "./create.ts";

/** Shorter than a replay's wait, so that a replay can take over from a call whose process has died. */
const LEASE_MS = 8_000;

/** Maximum difference of correct servers' clocks. */
const CLOCK_SKEW_MAX_MS = 60_000;

/** Permanent ids of idempotency keys' creates, and leases for the one call at a time that executes a create. */
export class CreateReservations {
  readonly #creates: Collection<CreateDocument>;
  readonly #clock: () => Date;

  constructor(creates: Collection<CreateDocument>, clock: () => Date) {
    this.#creates = creates;
    this.#clock = clock;
  }

  /** Returns the reservation of a create; null if it has no idempotency key. */
  of<R extends Committable, M extends { readonly record: R }>(create: Create<R, M>): CreateDocument | null {
    const { idempotencyKey, kind, payload, principal } = create;
    if (idempotencyKey === undefined) return null;
    const owner = [principal.organizationId, ...creatorOf(principal), idempotencyKey];
    const now = this.#clock();
    return {
      _id: shortHash(JSON.stringify(owner)),
      // Includes the kind: a key that made an agent makes no team.
      payloadHash: payloadHash({ kind, payload }),
      createdId: newUuid(),
      createdAt: now,
      leaseHolder: newUuid(),
      leaseUntil: new Date(now.getTime() + LEASE_MS),
    };
  }

  find(reservationId: string): Promise<CreateDocument | null> {
    return this.#creates.findOne({ _id: reservationId });
  }

  /** Reserves the create's permanent id; null if another call was first. */
  async reserve(reservation: CreateDocument): Promise<LeasedCreate | null> {
    try {
      await this.#creates.insertOne(reservation);
      return leasedCreate(reservation);
    } catch (error) {
      if (isDuplicateKey(error)) return null;
      throw error;
    }
  }

  /** Takes the lease of a create whose call failed, or died some time ago. */
  async takeLease(earlier: CreateDocument): Promise<LeasedCreate | null> {
    const now = this.#clock();
    const { _id, leaseUntil } = earlier;
    if (isLeased(leaseUntil, now)) return null;
    const taken = { leaseHolder: newUuid(), leaseUntil: new Date(now.getTime() + LEASE_MS) };
    const leased = await this.#creates.findOneAndUpdate(
      { _id, leaseHolder: earlier.leaseHolder ?? null },
      { $set: taken },
      { returnDocument: "after" },
    );
    if (leased === null) return null;
    // A create begun by an earlier version of the service is given up: its actor, if any, ends no window.
    const isOld = (earlier.leaseHolder ?? null) === null;
    return { ...leasedCreate(leased), ...(isOld ? { begunAt: new Date(0) } : {}) };
  }

  /** Releases the lease. If the database is unreachable, the lease expires by itself. */
  async release({ leaseHolder, reservationId }: LeasedCreate): Promise<void> {
    const $set = { leaseUntil: this.#clock() };
    await this.#creates.updateOne({ _id: reservationId, leaseHolder }, { $set }).catch(() => undefined);
  }

  /** Assigns a new id to a create whose id was discarded; no response ever named that id. */
  async restarted({ leaseHolder, id, reservationId }: LeasedCreate): Promise<CreateRun> {
    const run = { id: newUuid(), begunAt: this.#clock() };
    const restarted = { createdId: run.id, createdAt: run.begunAt };
    await this.#creates.updateOne({ _id: reservationId, createdId: id }, { $set: restarted });
    const found = await this.#creates.findOne({ _id: reservationId });
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
 * Whether a lease is still valid. A lease that lasts much longer than any was taken by a clock that ran ahead, or this
 * clock was set back. Reservations of earlier versions lack the field.
 */
function isLeased(leaseUntil: Date | undefined, now: Date): boolean {
  const leftMs = (leaseUntil?.getTime() ?? 0) - now.getTime();
  return leftMs > 0 && leftMs <= LEASE_MS + CLOCK_SKEW_MAX_MS;
}

/** Returns the owner of an idempotency key: a user, or a key's lineage. */
const creatorOf = (principal: ManagementPrincipal): readonly [string, string] =>
  principal.type === "session" ? ["user", principal.userId] : ["organization_key", principal.lineageId];
