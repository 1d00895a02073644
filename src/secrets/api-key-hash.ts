import type { MasterKey } from "./master-key.ts";

/** Stored forms of API keys: MACs of one length, with a pepper outside MongoDB. */
export interface ApiKeyHashes {
  /** Hashes a new key. */
  make(value: string): string;
  /** Forms that a presented key may be stored in, the newest first. */
  all(value: string): readonly string[];
}

export const apiKeyHashes = (masterKey: MasterKey): ApiKeyHashes => {
  const macs = masterKey.macs("api-key-pepper");
  return { make: (value) => macs.make(value), all: (value) => macs.all(value) };
};
