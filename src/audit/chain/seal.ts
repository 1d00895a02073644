import { createHmac, hash as hashOf, type KeyObject } from "node:crypto";
import type { AuditSeal } from "../../domain/audit/entry.ts";
import { isSameText } from "../../lib/same-text.ts";
import type { DerivedKey } from "../../secrets/master-key.ts";

/**
 * Returns the chain's functions. `keys`, newest first, are derived from the master key, which is outside the database.
 */
export function auditSeal(keys: readonly Omit<DerivedKey, "id">[]): AuditSeal {
  const [newest] = keys;
  if (newest === undefined) throw new Error("there is no key to seal the audit log with");
  return {
    hash: (text) => hashOf("sha256", text),
    mac(hash) {
      newest.requireCurrent?.();
      return macOf(newest.key, hash);
    },
    sealingOf(hash, mac) {
      const found = keys.find(({ key }) => isSameText(macOf(key, hash), mac));
      return found === undefined ? null : { retiredAt: found.retiredAt?.toISOString() ?? null };
    },
  };
}

const macOf = (key: KeyObject, hash: string): string =>
  createHmac("sha256", key).update(hash, "utf8").digest("hex");
