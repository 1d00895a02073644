import { createSecretKey } from "node:crypto";
import type { Db } from "mongodb";
import { z } from "zod";
import { isDuplicateKey } from "../lib/duplicate-key.ts";
import { knownKeys, type MasterKeyDocument } from "./known-keys.ts";
import {
  KEPT_PURPOSES,
  type KeptKeys,
  MasterKeyError,
  type MasterKey,
  type RetiredKey,
} from "./master-key.ts";
import { namesOf, needsOf } from "./places.ts";
import { Sealer } from "./sealer.ts";
import { readOrCreateSetting } from "./settings.ts";

const FIRST_KEY_SETTING = "first-master-key";

/**
 * Compares the master key with those that the database was used with, and adopts the retired keys' sub-keys. Must run
 * before anything is sealed or opened. Stores the newest key's id, so that other processes then require that key.
 * Throws `MasterKeyError`, which names what needs a missing key.
 */
export async function verifyMasterKey(
  db: Db,
  masterKey: MasterKey,
  now = new Date(),
  { remembers = true }: { readonly remembers?: boolean } = {},
): Promise<void> {
  const { newestId, source } = masterKey;
  // If two processes with different keys start at once on an empty database, the first one wins.
  const first = await readOrCreateSetting(db, FIRST_KEY_SETTING, () => ({ value: newestId, createdAt: now }));
  const found = await knownKeys(db).find().sort({ since: 1 }).toArray();
  const isKnown = (id: string): boolean => found.some(({ _id }) => _id === id);
  const unretired = found.filter(({ retiredAt }) => retiredAt === null).map(({ _id }) => _id);
  const neededIds = isKnown(first.value) ? unretired : [first.value, ...unretired];
  const missing = neededIds.filter((id) => !masterKey.ids.includes(id));
  if (missing.length === neededIds.length && missing.length > 0) {
    throw mismatch(
      `The master key from ${source} is not the one this database was sealed with; start with the original one.`,
    );
  }
  const [missingId] = missing;
  if (missingId !== undefined) throw mismatch(await lackOf(db, masterKey, missingId, now));
  const refusal = refusalOf(found, masterKey);
  if (refusal !== null) throw refusal;
  if (remembers && !isKnown(newestId)) await rememberKey(db, newestId, now);
  masterKey.take(first.value, retiredIn(found, masterKey));
}

/**
 * Returns why a process must not go on with its keys, given the database's; null if it may. One that lacks a key goes on
 * with what it can open.
 */
export function refusalOf(
  found: readonly MasterKeyDocument[],
  { newestId, source }: MasterKey,
): MasterKeyError | null {
  const newest = found.find(({ _id }) => _id === newestId);
  if (newest === undefined || (newest.retiredAt === null && newest.isRetiring !== true)) return null;
  const end = newest.retiredAt === null ? "being retired" : "retired";
  return mismatch(
    `${source} begins with the master key ${newestId}, which is ${end}; begin with another one.`,
  );
}

const mismatch = (message: string): MasterKeyError => new MasterKeyError("MASTER_KEY_MISMATCH", message);

async function lackOf(db: Db, { source }: MasterKey, id: string, now: Date): Promise<string> {
  const needs = namesOf(await needsOf(db, id, now));
  return needs === ""
    ? `${source} lacks the master key ${id}, which is not retired: add it, and run \`npm run admin -- rotate-master-key\`.`
    : `${source} lacks the master key ${id}, which is needed by ${needs}; add it.`;
}

async function rememberKey(db: Db, _id: string, since: Date): Promise<void> {
  try {
    await knownKeys(db).insertOne({ _id, since, retiredAt: null, kept: null });
  } catch (error) {
    if (!isDuplicateKey(error)) throw error;
  }
}

function retiredIn(found: readonly MasterKeyDocument[], masterKey: MasterKey): RetiredKey[] {
  const sealer = new Sealer(masterKey);
  return found.flatMap(({ _id: id, kept, retiredAt }) =>
    kept === null || retiredAt === null
      ? []
      : [{ id, retiredAt, kept: keptIn(sealer.open("kept-keys", id, kept)) }],
  );
}

const keptText = z.record(z.string(), z.base64url());

/** Returns the text form, for sealing, of the sub-keys that outlive a master key. */
export const keptAsText = (kept: KeptKeys): string =>
  JSON.stringify(
    Object.fromEntries([...kept].map(([purpose, key]) => [purpose, key.export().toString("base64url")])),
  );

function keptIn(text: string): KeptKeys {
  const kept = keptText.parse(JSON.parse(text));
  return new Map(
    KEPT_PURPOSES.flatMap((purpose) => {
      const key = kept[purpose];
      return key === undefined ? [] : [[purpose, createSecretKey(Buffer.from(key, "base64url"))]];
    }),
  );
}
