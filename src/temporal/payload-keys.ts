import type { KeyObject } from "node:crypto";
import { hmacSha256, type MasterKey } from "../secrets/master-key.ts";

/** The keys of one master key for payloads. */
export interface PayloadKey {
  /** Stored with each payload; says nothing about the key. */
  readonly id: string;
  readonly sealing: KeyObject;
  readonly authenticating: KeyObject;
}

/** `current` seals; whatever `keyFor` knows opens, so that payloads survive a rotation of the master key. */
export interface PayloadKeys {
  readonly current: PayloadKey;
  keyFor(id: string): PayloadKey | null;
}

const ID_CHARACTERS = 12;

export function payloadKeysOf(current: MasterKey, ...earlier: readonly MasterKey[]): PayloadKeys {
  const first = payloadKeyOf(current);
  const byId = new Map([first, ...earlier.map(payloadKeyOf)].map((key) => [key.id, key]));
  return { current: first, keyFor: (id) => byId.get(id) ?? null };
}

function payloadKeyOf(masterKey: MasterKey): PayloadKey {
  const authenticating = masterKey.deriveKey("payload-authentication");
  return {
    id: hmacSha256(authenticating, "key id").slice(0, ID_CHARACTERS),
    sealing: masterKey.deriveKey("payload-sealing"),
    authenticating,
  };
}
