import type { StoredPayment, TransactionStatus } from "./payment.ts";
import type { Account } from "./state.ts";

/**
 * Idempotency keys of closed payments; those of open payments are in the accounts. The ledger stores only that a closed
 * payment exists, in some thirty bytes per key; the payment's state is in its record.
 */
export interface ClosedKeys {
  /** Closed keys by agent, then by the key's hash. */
  readonly byAgent: Map<string, Map<string, ClosedKey>>;
  /** Keys in closing order, oldest first. May contain keys of dropped accounts. */
  order: (readonly [agentId: string, keyHash: string])[];
  count: number;
  /** Creation time of the newest payment whose key was evicted; 0 if none was. */
  evictedCreatedAt: number;
}

/**
 * A closed payment: its number in its agent's closing order, its creation time, its fingerprint (null if denied) and
 * its revision.
 */
export type ClosedKey = readonly [
  closedAs: number,
  createdAt: number,
  fingerprint: string | null,
  revision: number,
];

export const noClosedKeys = (): ClosedKeys => ({
  byAgent: new Map(),
  order: [],
  count: 0,
  evictedCreatedAt: 0,
});

export const isClosedKey = ({ byAgent }: ClosedKeys, agentId: string, keyHash: string): boolean =>
  byAgent.get(agentId)?.has(keyHash) === true;

export interface Closing {
  readonly agentId: string;
  readonly keyHash: string;
  readonly key: ClosedKey;
}

/** An evicted key: its agent, and its number in the agent's closing order. */
type Evicted = readonly [agentId: string, closedAs: number];

/** Adds the key of a closed payment. Beyond `max`, evicts the oldest and returns them. */
export function addClosedKey(
  closedKeys: ClosedKeys,
  { agentId, key, keyHash }: Closing,
  max: number,
): readonly Evicted[] {
  if (max === 0) {
    closedKeys.evictedCreatedAt = Math.max(closedKeys.evictedCreatedAt, key[1]);
    return [[agentId, key[0]]];
  }
  const keys = closedKeys.byAgent.get(agentId) ?? new Map<string, ClosedKey>();
  closedKeys.byAgent.set(agentId, keys.set(keyHash, key));
  closedKeys.order.push([agentId, keyHash]);
  closedKeys.count += 1;
  if (closedKeys.order.length > 2 * max) closedKeys.order = known(closedKeys);
  return evictKeys(closedKeys, max);
}

/** Evicts the oldest keys beyond `max`, and returns them. */
export function evictKeys(closedKeys: ClosedKeys, max: number): readonly Evicted[] {
  const evicted: Evicted[] = [];
  while (closedKeys.count > max && closedKeys.order.length > 0) evicted.push(...evictOldest(closedKeys, max));
  return evicted;
}

/** Removes the key of a payment that is open again. */
export function removeClosedKey(closedKeys: ClosedKeys, agentId: string, keyHash: string): void {
  const keys = closedKeys.byAgent.get(agentId);
  if (keys?.delete(keyHash) !== true) return;
  if (keys.size === 0) closedKeys.byAgent.delete(agentId);
  closedKeys.count -= 1;
  closedKeys.order = known(closedKeys);
}

/** Returns the order without removed keys: those of dropped accounts and of reopened payments. */
const known = ({ byAgent, order }: ClosedKeys): ClosedKeys["order"] =>
  order.filter(([agentId, keyHash]) => byAgent.get(agentId)?.has(keyHash) === true);

/** Share of the keys that is evicted at once: removing one from the front costs as much as removing hundreds. */
const EVICTED_SHARE = 1 / 20;

function evictOldest(closedKeys: ClosedKeys, max: number): Evicted[] {
  const oldest = closedKeys.order.splice(0, Math.max(1, Math.ceil(max * EVICTED_SHARE)));
  return oldest.flatMap(([agentId, keyHash]) => {
    const keys = closedKeys.byAgent.get(agentId);
    const key = keys?.get(keyHash);
    if (keys === undefined || key === undefined) return [];
    keys.delete(keyHash);
    if (keys.size === 0) closedKeys.byAgent.delete(agentId);
    closedKeys.count -= 1;
    closedKeys.evictedCreatedAt = Math.max(closedKeys.evictedCreatedAt, key[1]);
    return [[agentId, key[0]] as const];
  });
}

/** Drops all keys of an agent whose account was dropped: no agent can pay from it again. */
export function dropAgentKeys(closedKeys: ClosedKeys, agentId: string): void {
  closedKeys.count -= closedKeys.byAgent.get(agentId)?.size ?? 0;
  closedKeys.byAgent.delete(agentId);
}

/** A payment with the same fingerprint. `open` is the payment itself while open. */
export interface SimilarPayment {
  readonly createdAt: number;
  readonly keyHash: string;
  readonly open: StoredPayment | null;
}

/**
 * Returns the newest remembered payment with this fingerprint, among closed ones that were not denied and open ones
 * with a status that `isCounted` accepts; null if there is none.
 */
export function newestSimilar(
  closedKeys: ClosedKeys,
  account: Account,
  fingerprint: string,
  isCounted: (status: TransactionStatus) => boolean,
): SimilarPayment | null {
  let newestAt = -Infinity;
  let newestKey = "";
  for (const [keyHash, [, createdAt, closed]] of closedKeys.byAgent.get(account.agentId) ?? []) {
    if (closed !== fingerprint || createdAt < newestAt) continue;
    newestAt = createdAt;
    newestKey = keyHash;
  }
  let newest: SimilarPayment | null =
    newestKey === "" ? null : { createdAt: newestAt, keyHash: newestKey, open: null };
  for (const { payment } of account.open.values()) {
    const { createdAt, request, status } = payment;
    if (request.fingerprint !== fingerprint || !isCounted(status) || createdAt < newestAt) continue;
    newestAt = createdAt;
    newest = { createdAt, keyHash: request.keyHash, open: payment };
  }
  return newest;
}
