import type { SecretExpiryInput } from "../../messages/delivery.ts";
import type { WebhookCollections } from "../../store/webhook-documents.ts";

/** Forgets a secret that was rotated and has expired; nothing where it is gone already, or was given longer. */
export async function eraseSecret(
  { endpoints }: WebhookCollections,
  { endpointId, expiresAt, secretId }: SecretExpiryInput,
): Promise<void> {
  await endpoints.updateOne(
    {
      _id: endpointId,
      "previousSecret.id": secretId,
      "previousSecret.expiresAt": { $lte: new Date(expiresAt) },
    },
    { $set: { previousSecret: null } },
  );
}
