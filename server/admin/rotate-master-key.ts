import { setTimeout as sleep } from "node:timers/promises";
import type { Db } from "mongodb";
import { AgentProofs } from "../../src/agents/agent-proofs.ts";
import { replaceSigningKey } from "../../src/identity/signing-key.ts";
import { valueAt } from "../../src/lib/value-at.ts";
import {
  ACCESS_KINDS,
  ACCESS_RECORDS,
  type AccessKind,
  AccessProofs,
} from "../../src/secrets/access-proofs.ts";
import { RETIREMENT_MS } from "../../src/secrets/key-watch.ts";
import { knownKeys } from "../../src/secrets/known-keys.ts";
import type { MasterKey } from "../../src/secrets/master-key.ts";
import { AGENT_PROOFS, namesOf, type Needs, needsOf } from "../../src/secrets/places.ts";
import { Sealer } from "../../src/secrets/sealer.ts";
import { verifyMasterKey } from "../../src/secrets/verify-master-key.ts";
import {
  announceRetirement,
  type Renewing,
  renewAll,
  resealAll,
  retireKey,
  type Rotated,
  type RotationOptions,
} from "../../src/secrets/rotation.ts";
import { type AgentDocument, COLLECTIONS } from "../../src/store/documents.ts";
import { AdminError, connectedToMongo } from "./connecting.ts";
import { requireMasterKey } from "./master-key.ts";
import { recordCommand } from "./record-command.ts";

export interface RotateOptions extends RotationOptions {
  /** Whether this is a dry run. */
  readonly isCheck: boolean;
  /** Key to give up together with everything that still needs it. */
  readonly retire: string | null;
  readonly newSessionKey: boolean;
  /** Time between a retirement's announcement and the retirement; shortened only by tests. */
  readonly retirementMs?: number;
}

export interface KeyReport {
  readonly id: string;
  /** `unused`: the key was never the newest, so nothing was made with it. */
  readonly state: "newest" | "older" | "retired" | "unused";
  readonly neededBy: Needs;
}

export interface RotationReport {
  readonly keys: readonly KeyReport[];
  readonly rotated: number;
  /** Values that no key opens or verifies, by kind. Something other than the service changed them. */
  readonly unreadable: Needs;
}

/**
 * `rotate-master-key`: re-seals everything under the newest master key, and retires older keys that nothing needs any
 * more. Processes that still make values under such a key have ended by then, and what they made is re-sealed.
 */
export const rotateMasterKey = (env: NodeJS.ProcessEnv, options: RotateOptions): Promise<RotationReport> =>
  connectedToMongo(env, async ({ db }) => {
    const masterKey = await requireMasterKey(env);
    await verifyMasterKey(db, masterKey, new Date(), { remembers: !options.isCheck });
    const { retire } = options;
    if (retire !== null && (retire === masterKey.newestId || !masterKey.ids.includes(retire))) {
      throw new AdminError(`--retire: ${retire} is not an older key of ${masterKey.source}.`);
    }
    if (options.isCheck) return { keys: await reportsOn(db, masterKey, {}), rotated: 0, unreadable: {} };
    const isGiven = ({ id, neededBy, state }: KeyReport): boolean =>
      state === "older" && (isFree(neededBy) || id === retire);
    const first = await sealedAnew(db, masterKey, options);
    const announced = first.keys.filter(isGiven).map(({ id }) => id);
    if (announced.length > 0) await announce(db, announced, options);
    // Processes that were not restarted in time have made values under the announced keys until now.
    const last = announced.length > 0 ? await sealedAnew(db, masterKey, options) : first;
    const given = last.keys.filter((each) => announced.includes(each.id) && isGiven(each));
    for (const { id } of given) await retireKey(db, masterKey, id, new Date());
    if (options.newSessionKey) await replaceSigningKey(db, new Sealer(masterKey), new Date());
    const { unreadable } = last;
    const keys = given.length === 0 ? last.keys : await reportsOn(db, masterKey, unreadable);
    const results = last === first ? first.results : [...first.results, ...last.results];
    const rotated = results.reduce((sum, each) => sum + each.rotated, 0);
    if (rotated > 0 || given.length > 0 || options.newSessionKey) {
      await recordCommand(db, masterKey, {
        via: "rotate-master-key",
        action: "rotateMasterKey",
        resource: { type: "master_key", id: masterKey.newestId },
        after: {
          rotated: sumsOf(results, (each) => each.rotated),
          retired: given.map(({ id }) => id),
          givenUp: given.find(({ id }) => id === retire)?.neededBy ?? {},
          newSessionKey: options.newSessionKey,
        },
      });
    }
    for (const key of keys) options.onProgress(saidOf(key));
    return { keys, rotated, unreadable };
  });

const isFree = (needs: Needs): boolean => Object.keys(needs).length === 0;

function saidOf({ id, neededBy, state }: KeyReport): string {
  if (state === "newest") return `${id} is the newest key.`;
  if (state === "unused") return `${id} was never the first key.`;
  if (state === "retired") return `${id} is retired: remove it everywhere.`;
  return `${id} is still needed by ${namesOf(neededBy)}.`;
}

/** Seals everything anew, and reports what still needs each key. */
async function sealedAnew(db: Db, masterKey: MasterKey, options: RotationOptions) {
  const results = await rotateAll(db, masterKey, options);
  const unreadable = sumsOf(results, (each) => each.unreadable);
  return { results, unreadable, keys: await reportsOn(db, masterKey, unreadable) };
}

/** Announces retirements, and waits until nothing is made under the keys any more. */
async function announce(
  db: Db,
  ids: readonly string[],
  { onProgress, retirementMs = RETIREMENT_MS, signal }: RotateOptions,
): Promise<void> {
  await announceRetirement(db, ids);
  onProgress(
    `${ids.join(", ")}: processes that begin with it end now; retired in ${String(retirementMs / 1_000)} s`,
  );
  await sleep(retirementMs, undefined, signal === undefined ? {} : { signal });
}

async function rotateAll(db: Db, masterKey: MasterKey, options: RotationOptions): Promise<Rotated[]> {
  const sealed = await resealAll(db, masterKey, options);
  const proofs = new AgentProofs(masterKey.macs("agent-proofs"));
  const agents = db.collection<AgentDocument>(COLLECTIONS.agents, { readPreference: "primary" });
  const renewing: Renewing<AgentDocument> = {
    places: AGENT_PROOFS,
    find: (filter) => agents.find(filter),
    renew: (agent) => renewed(proofs, agent),
  };
  const proven = [await renewAll(db, masterKey, renewing, options)];
  const access = new AccessProofs(masterKey.macs("access-proofs"));
  for (const kind of ACCESS_KINDS)
    proven.push(await renewAll(db, masterKey, reproving(db, access, kind), options));
  return [...sealed, ...proven];
}

/** Makes new proofs for records that decide access. An altered record gets none. */
function reproving(db: Db, proofs: AccessProofs, kind: AccessKind): Renewing<{ readonly _id: string }> {
  const { collection: name, path } = ACCESS_RECORDS[kind];
  const collection = db.collection<{ readonly _id: string }>(name, { readPreference: "primary" });
  return {
    places: [ACCESS_RECORDS[kind]],
    find: (filter) => collection.find(filter),
    renew: (record) =>
      proofs.isGenuine(kind, record)
        ? { condition: { [path]: valueAt(record, path) }, change: { [path]: proofs.make(kind, record) } }
        : null,
  };
}

/** Returns new proofs of an agent's record; null if it was altered in MongoDB. */
function renewed(proofs: AgentProofs, agent: AgentDocument) {
  const { _id, key, proof } = agent;
  if (!proofs.isAgentGenuine(agent)) return null;
  const change = { proof: proofs.ofAgent(agent) };
  if (key === null) return { condition: { proof, key }, change };
  if (!proofs.isKeyGenuine(_id, key)) return null;
  return {
    condition: { proof, "key.hash": key.hash, "key.proof": key.proof },
    change: { ...change, "key.proof": proofs.ofKey(_id, key) },
  };
}

function sumsOf(results: readonly Rotated[], count: (each: Rotated) => number): Needs {
  const sums: Record<string, number> = {};
  for (const each of results) if (count(each) > 0) sums[each.what] = (sums[each.what] ?? 0) + count(each);
  return sums;
}

/** Reports what still needs each key. A value that no key opens needs none. */
async function reportsOn(db: Db, masterKey: MasterKey, unreadable: Needs): Promise<KeyReport[]> {
  const known = await knownKeys(db).find().sort({ since: -1 }).toArray();
  const ids = [...new Set([...masterKey.ids, ...known.map(({ _id }) => _id)])];
  const now = new Date();
  return Promise.all(
    ids.map(async (id) => {
      const found = known.find(({ _id }) => _id === id);
      const needs = Object.entries(await needsOf(db, id, now)).filter(
        ([what, count]) => count > (unreadable[what] ?? 0),
      );
      const state = stateOf(id === masterKey.newestId, found?.retiredAt);
      return { id, state, neededBy: Object.fromEntries(needs) };
    }),
  );
}

function stateOf(isNewest: boolean, retiredAt: Date | null | undefined): KeyReport["state"] {
  if (isNewest) return "newest";
  if (retiredAt === undefined) return "unused";
  return retiredAt === null ? "older" : "retired";
}
