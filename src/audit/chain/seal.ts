import { createHmac, hash as hashOf, type KeyObject } from "node:crypto";
import type { AuditSeal } from "../../domain/audit/entry.ts";

/** The chain's two functions; the key is derived from the master key, which is outside the database. */
export const auditSeal = (key: KeyObject): AuditSeal => ({
  hash: (text) => hashOf("sha256", text),
  mac: (hash) => createHmac("sha256", key).update(hash, "utf8").digest("hex"),
});
