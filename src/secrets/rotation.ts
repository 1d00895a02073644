import type { AnyBulkWriteOperation, Db, Document } from "mongodb";
import { valueAt } from "../lib/value-at.ts";
import { knownKeys } from "./known-keys.ts";
import { MADE_UNDER_ANY, madeUnder } from "./keyed-macs.ts";
import type { MasterKey } from "./master-key.ts";
import { type Place, SEALED_PLACES, type SealedPlace } from "./places.ts";
import { Sealer } from "./sealer.ts";
import { keptAsText } from "./verify-master-key.ts";

/** Writes per request. A killed rotation loses at most the progress since the last request. */
const BATCH = 200;

export interface Rotated {
  readonly what: string;
  readonly rotated: number;
  /** Number of values that no key opens or verifies: something other than the service changed them. */
  readonly unreadable: number;
}

export interface RotationOptions {
  readonly onProgress: (line: string) => void;
  /** Ends the rotation between two batches. */
  readonly signal?: AbortSignal;
}

/** Renewal of a document's values under the newest key: conditions on the current values, and the new ones. */
export interface Renewal {
  readonly condition: Document;
  readonly change: Document;
}

/** Fields of one collection whose values are renewed, all of a document at once. */
export interface Renewing<T> {
  readonly places: readonly [Place, ...Place[]];
  readonly find: (filter: Document) => AsyncIterable<T>;
  /** Null if no key opens or verifies the values. */
  readonly renew: (document: T) => Renewal | null;
}

/**
 * Renews values that are not under the newest master key. Each is replaced only while unchanged since it was read, so
 * that no change by the service is undone.
 */
export async function renewAll<T extends { readonly _id: string }>(
  db: Db,
  masterKey: MasterKey,
  { find, places, renew }: Renewing<T>,
  { onProgress, signal }: RotationOptions,
): Promise<Rotated> {
  const [{ collection: name, what }] = places;
  const collection = db.collection<{ _id: string }>(name);
  const newest = madeUnder(masterKey.newestId);
  const older = places.map(({ path }) => ({
    [path]: { $type: "string", $regex: MADE_UNDER_ANY, $not: newest },
  }));
  let [rotated, unreadable] = [0, 0];
  let writes: AnyBulkWriteOperation<{ _id: string }>[] = [];
  const flush = async (): Promise<void> => {
    if (writes.length === 0) return;
    const { modifiedCount } = await collection.bulkWrite(writes, { ordered: false });
    rotated += modifiedCount;
    writes = [];
    onProgress(`${what}: ${String(rotated)} under the newest key`);
  };
  for await (const document of find({ $or: older })) {
    signal?.throwIfAborted();
    const renewal = renew(document);
    if (renewal === null) {
      unreadable += 1;
      continue;
    }
    const filter = { _id: document._id, ...renewal.condition };
    writes.push({ updateOne: { filter, update: { $set: renewal.change } } });
    if (writes.length >= BATCH) await flush();
  }
  await flush();
  return { what, rotated, unreadable };
}

export async function resealAll(db: Db, masterKey: MasterKey, options: RotationOptions): Promise<Rotated[]> {
  const results: Rotated[] = [];
  for (const place of SEALED_PLACES) {
    results.push(await renewAll(db, masterKey, resealing(db, masterKey, place), options));
  }
  return results;
}

export function resealing(
  db: Db,
  masterKey: MasterKey,
  place: SealedPlace,
): Renewing<{ readonly _id: string }> {
  const collection = db.collection<{ _id: string }>(place.collection, { readPreference: "primary" });
  const sealer = new Sealer(masterKey);
  return {
    places: [place],
    find: (filter) => collection.find(filter),
    renew: (document) => resealed(sealer, place, document),
  };
}

function resealed(
  sealer: Sealer,
  { boundTo, path, purpose }: SealedPlace,
  document: unknown,
): Renewal | null {
  const recordId = boundTo.map((each) => String(valueAt(document, each))).join("/");
  const sealed = String(valueAt(document, path));
  const opened = sealer.tryOpen(purpose, recordId, sealed);
  return opened === null
    ? null
    : { condition: { [path]: sealed }, change: { [path]: sealer.seal(purpose, recordId, opened) } };
}

/** Announces the retirement of keys, so that every process ends that makes values under one of them. */
export async function announceRetirement(db: Db, ids: readonly string[]): Promise<void> {
  await knownKeys(db).updateMany({ _id: { $in: [...ids] } }, { $set: { isRetiring: true } });
}

/** Retires a key: the sub-keys that verify its history are kept, sealed under the newest key. Idempotent. */
export async function retireKey(db: Db, masterKey: MasterKey, id: string, now: Date): Promise<void> {
  const sub = masterKey.keptOf(id);
  if (sub === null) throw new Error(`the master key ${id} is not there`);
  const kept = new Sealer(masterKey).seal("kept-keys", id, keptAsText(sub));
  await knownKeys(db).updateOne({ _id: id, retiredAt: null }, { $set: { retiredAt: now, kept } });
}
