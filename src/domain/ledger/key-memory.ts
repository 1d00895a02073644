import type { Account } from "./state.ts";

/**
 * The idempotency keys that a ledger remembers of closed payments, those of open ones being in the accounts. What became of a closed
 * payment is in its record; the ledger knows only that there is one, so that a key costs it some thirty bytes.
 */
export interface KeyMemory {
  /** By agent, then by the hash of its key. */
  readonly byAgent: Map<string, Map<string, ClosedKey>>;
  /** In the order of closing, the oldest first. Keys of agents whose account was dropped are passed over. */
  order: (readonly [agentId: string, keyHash: string])[];
  count: number;
}

/** A closed payment: as which of its agent's it was closed, when it was made, and its fingerprint; null: it was denied. */
export type ClosedKey = readonly [closedAs: number, createdAt: number, fingerprint: string | null];

export const emptyKeyMemory = (): KeyMemory => ({ byAgent: new Map(), order: [], count: 0 });

export const isClosedKey = ({ byAgent }: KeyMemory, agentId: string, keyHash: string): boolean =>
  byAgent.get(agentId)?.has(keyHash) === true;

/** A payment's key once the payment was closed. */
export interface Closing {
  readonly agentId: string;
  readonly keyHash: string;
  readonly key: ClosedKey;
}

/**
 * Remembers the key of a closed payment; beyond so many the oldest are forgotten. Says which, by the agent and as which the payment was
 * closed.
 */
export function rememberClosed(
  memory: KeyMemory,
  { agentId, key, keyHash }: Closing,
  max: number,
): readonly (readonly [agentId: string, closedAs: number])[] {
  const keys = memory.byAgent.get(agentId) ?? new Map<string, ClosedKey>();
  memory.byAgent.set(agentId, keys.set(keyHash, key));
  memory.order.push([agentId, keyHash]);
  memory.count += 1;
  if (memory.order.length > 2 * max) memory.order = known(memory);
  const forgotten: (readonly [agentId: string, closedAs: number])[] = [];
  while (memory.count > max && memory.order.length > 0) forgotten.push(...forgetOldest(memory, max));
  return forgotten;
}

/** The order without the keys of agents whose account was dropped. */
const known = ({ byAgent, order }: KeyMemory): KeyMemory["order"] =>
  order.filter(([agentId, keyHash]) => byAgent.get(agentId)?.has(keyHash) === true);

/** So much of them is forgotten at once: taking one from the front of the order costs as much as taking some hundred. */
const FORGOTTEN_AT_ONCE = 1 / 20;

function forgetOldest(memory: KeyMemory, max: number): (readonly [agentId: string, closedAs: number])[] {
  const oldest = memory.order.splice(0, Math.max(1, Math.ceil(max * FORGOTTEN_AT_ONCE)));
  return oldest.flatMap(([agentId, keyHash]) => {
    const keys = memory.byAgent.get(agentId);
    const key = keys?.get(keyHash);
    if (keys === undefined || key === undefined) return [];
    keys.delete(keyHash);
    if (keys.size === 0) memory.byAgent.delete(agentId);
    memory.count -= 1;
    return [[agentId, key[0]] as const];
  });
}

/** Forgets all keys of an agent whose account is no more: nobody can pay from it again. */
export function forgetAgent(memory: KeyMemory, agentId: string): void {
  memory.count -= memory.byAgent.get(agentId)?.size ?? 0;
  memory.byAgent.delete(agentId);
}

/** When the newest payment of this fingerprint was made, among those that the ledger has or remembers; denied ones are like none. */
export function newestLikeAt(memory: KeyMemory, account: Account, fingerprint: string): number | null {
  let newestAt: number | null = null;
  const note = (at: number): void => void (newestAt = Math.max(newestAt ?? at, at));
  for (const [, createdAt, closed] of memory.byAgent.get(account.agentId)?.values() ?? []) {
    if (closed === fingerprint) note(createdAt);
  }
  for (const { payment } of account.open.values()) {
    if (payment.status !== "denied" && payment.request.fingerprint === fingerprint) note(payment.createdAt);
  }
  return newestAt;
}
