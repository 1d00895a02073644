import { createPrivateKey, createPublicKey, generateKeyPairSync, type KeyObject } from "node:crypto";
import type { Db } from "mongodb";
import type { Sealer } from "../secrets/sealer.ts";
import { readOrCreateSetting, settingsOf } from "../secrets/settings.ts";

const SETTING_ID = "session-signing-key";
const PURPOSE = "session-signing-key";

export interface SigningKey {
  readonly privateKey: KeyObject;
  readonly publicKey: KeyObject;
}

/**
 * Loads the Ed25519 pair that signs session tokens. Created on the first start and the same on every server; the
 * private half is sealed in MongoDB. The public half is derived from it and not stored, so that write access to the
 * database does not suffice to get forged tokens accepted.
 */
export async function loadSigningKey(db: Db, sealer: Sealer, clock: () => Date): Promise<SigningKey> {
  const stored = await readOrCreateSetting(db, SETTING_ID, () => ({
    value: sealer.seal(PURPOSE, SETTING_ID, newPrivateKey()),
    createdAt: clock(),
  }));
  const privateKey = createPrivateKey(sealer.open(PURPOSE, SETTING_ID, stored.value));
  return { privateKey, publicKey: createPublicKey(privateKey) };
}

/** Replaces a pair whose private half may be compromised. Servers load the new one at their next start. */
export async function replaceSigningKey(db: Db, sealer: Sealer, now: Date): Promise<void> {
  const replaced = { value: sealer.seal(PURPOSE, SETTING_ID, newPrivateKey()), createdAt: now };
  await settingsOf(db).updateOne({ _id: SETTING_ID }, { $set: replaced }, { upsert: true });
}

const newPrivateKey = (): string =>
  generateKeyPairSync("ed25519").privateKey.export({ type: "pkcs8", format: "pem" }).toString();
