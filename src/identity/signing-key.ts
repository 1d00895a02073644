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
 * The Ed25519 pair that signs session tokens: made on the first start, the private half sealed
 * in MongoDB, the same on every server. The public half is derived from it and not stored, so that writing to the
 * database is not enough to have one's own tokens accepted.
 */
export async function loadSigningKey(db: Db, sealer: Sealer, clock: () => Date): Promise<SigningKey> {
  const stored = await readOrCreateSetting(db, SETTING_ID, () => ({
    value: sealer.seal(PURPOSE, SETTING_ID, newPrivateKey()),
    createdAt: clock(),
  }));
  const privateKey = createPrivateKey(sealer.open(PURPOSE, SETTING_ID, stored.value));
  return { privateKey, publicKey: createPublicKey(privateKey) };
}

/** Replaces the pair, of which somebody else may know the private half. Servers take it up with their next start. */
export async function replaceSigningKey(db: Db, sealer: Sealer, now: Date): Promise<void> {
  const replaced = { value: sealer.seal(PURPOSE, SETTING_ID, newPrivateKey()), createdAt: now };
  await settingsOf(db).updateOne({ _id: SETTING_ID }, { $set: replaced }, { upsert: true });
}

const newPrivateKey = (): string =>
  generateKeyPairSync("ed25519").privateKey.export({ type: "pkcs8", format: "pem" }).toString();
