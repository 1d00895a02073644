import { hkdfSync, type KeyObject } from "node:crypto";
import { LRUCache } from "lru-cache";
import { type Address, type Hex, toHex } from "viem";
import { type PrivateKeyAccount, privateKeyToAccount } from "viem/accounts";

const SALT = "agent-spending-control/pocket/1";
const KEY_SIZE_BYTES = 32;
/** Cached keys; deriving one takes about a millisecond. */
const CACHED_KEYS_MAX = 10_000;

/**
 * The keys of agents' pockets. Each is derived from a sub-key of the master key and the agent's id, and is stored
 * nowhere. The library's accounts expose their address and no key.
 */
export class PocketKeys {
  readonly #key: KeyObject;
  readonly #accounts = new LRUCache<string, PrivateKeyAccount>({ max: CACHED_KEYS_MAX });

  constructor(key: KeyObject) {
    this.#key = key;
  }

  addressOf(agentId: string): Address {
    return this.accountOf(agentId).address;
  }

  accountOf(agentId: string): PrivateKeyAccount {
    const known = this.#accounts.get(agentId);
    if (known !== undefined) return known;
    const account = privateKeyToAccount(this.#derive(agentId));
    this.#accounts.set(agentId, account);
    return account;
  }

  #derive(agentId: string): Hex {
    return toHex(Buffer.from(hkdfSync("sha256", this.#key, SALT, agentId, KEY_SIZE_BYTES)));
  }
}
