import type { KeyObject } from "node:crypto";
import type { MasterKey } from "../secrets/master-key.ts";

export interface PayloadKey {
  /** Id of the master key, stored with each payload. */
  readonly id: string;
  readonly sealing: KeyObject;
  readonly authenticating: KeyObject;
}

/** Keys of payloads: `current` seals; all that `keyFor` knows open, so that payloads survive a key's rotation. */
export interface PayloadKeys {
  readonly current: PayloadKey;
  keyFor(id: string): PayloadKey | null;
}

/** Returns the payload keys. Includes retired keys once read from the database, since workflows may run for years. */
export function payloadKeysOf(masterKey: MasterKey): PayloadKeys {
  const byId = new Map<string, PayloadKey>();
  const keyFor = (id: string): PayloadKey | null => {
    const known = byId.get(id) ?? derived(masterKey, id);
    if (known !== null) byId.set(id, known);
    return known;
  };
  const current = keyFor(masterKey.newestId);
  if (current === null) throw new Error("a master key derives its own sub-keys");
  return { current, keyFor };
}

function derived(masterKey: MasterKey, id: string): PayloadKey | null {
  const keyOf = (purpose: "payload-authentication" | "payload-sealing"): KeyObject | undefined =>
    masterKey.deriveKeys(purpose).find((each) => each.id === id)?.key;
  const [sealing, authenticating] = [keyOf("payload-sealing"), keyOf("payload-authentication")];
  return sealing === undefined || authenticating === undefined ? null : { id, sealing, authenticating };
}
