import type { MasterKey } from "./master-key.ts";

/** Stored forms of API keys: MACs of equal length, with a pepper outside MongoDB. */
export interface ApiKeyHashes {
  make(value: string): string;
  /** Returns the possible stored forms of a presented key, newest first. */
  all(value: string): readonly string[];
}

export const apiKeyHashes = (masterKey: MasterKey): ApiKeyHashes => {
  const macs = masterKey.macs("api-key-pepper");
  return { make: (value) => macs.make(value), all: (value) => macs.all(value) };
};
