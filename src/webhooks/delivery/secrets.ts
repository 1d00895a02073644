import type { SecretExpiryInput } from "../../messages/delivery.ts";
import type { AccessProofs } from "../../secrets/access-proofs.ts";
import type { WebhookCollections } from "../../store/webhook-documents.ts";

/** Erases a rotated secret that has expired. Does nothing if it is already gone, or was extended. */
export async function eraseSecret(
  { endpoints }: WebhookCollections,
  accessProofs: Pick<AccessProofs, "changed" | "genuine">,
  { endpointId, expiresAt, secretId }: SecretExpiryInput,
): Promise<void> {
  const expired = {
    _id: endpointId,
    "previousSecret.id": secretId,
    "previousSecret.expiresAt": { $lte: new Date(expiresAt) },
  };
  const found = await endpoints.findOne(expired);
  if (found === null) return;
  const erased = { previousSecret: null };
  // A forged record must stay recognizable as forged.
  const isGenuine = accessProofs.genuine("webhook", found) !== null;
  const $set = isGenuine ? accessProofs.changed("webhook", found, erased) : erased;
  const { matchedCount } = await endpoints.updateOne({ ...expired, proof: found.proof }, { $set });
  if (matchedCount === 0) throw new Error(`${endpointId} was changed meanwhile`);
}
