import { timingSafeEqual } from "node:crypto";
import type { Db } from "mongodb";
import { hmacSha256, MasterKeyError, type MasterKey } from "./master-key.ts";
import { readOrCreateSetting } from "./settings.ts";

const CHECK_ID = "master-key-check";
const CHECK_TEXT = "agent-spending-control master key check";

/**
 * Compares the master key with the one this database was first used with, and remembers it on the first start. Call it before anything is sealed or opened. Throws `MasterKeyError`.
 */
export async function verifyMasterKey(db: Db, masterKey: MasterKey, now = new Date()): Promise<void> {
  // An HMAC of a fixed text shows whether a key is the right one, and nothing else about it.
  const value = hmacSha256(masterKey.deriveKey("check-value"), CHECK_TEXT);
  const stored = await readOrCreateSetting(db, CHECK_ID, () => ({ value, createdAt: now }));
  if (!isSameText(stored.value, value)) {
    throw new MasterKeyError(
      "MASTER_KEY_MISMATCH",
      `The master key from ${masterKey.source} is not the one this database was sealed with; start with the original one.`,
    );
  }
}

function isSameText(left: string, right: string): boolean {
  const [a, b] = [Buffer.from(left), Buffer.from(right)];
  return a.length === b.length && timingSafeEqual(a, b);
}
