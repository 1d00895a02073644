import type { MasterKey } from "./master-key.ts";

/** What is stored of API keys: MACs with a pepper held outside MongoDB, of one length. */
export interface ApiKeyHashes {
  /** For a new key. */
  make(value: string): string;
  /** What a presented key may be stored as, the newest first. */
  all(value: string): readonly string[];
}

export const apiKeyHashes = (masterKey: MasterKey): ApiKeyHashes => {
  const macs = masterKey.macs("api-key-pepper");
  return { make: (value) => macs.make(value), all: (value) => macs.all(value) };
};
