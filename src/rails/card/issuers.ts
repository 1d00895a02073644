import { GuardedFetch } from "../../lib/guarded-fetch/guarded-fetch.ts";
import type { CardIssuerKind } from "../../payments/card-issuer.ts";
import { STRIPE_URL, stripeIssuer } from "../stripe/issuer.ts";

/** Issuers whose accounts can be connected. Each is registered here. */
export function cardIssuers(): readonly CardIssuerKind[] {
  const fetch = new GuardedFetch({ allowCidrs: [], extraCa: null });
  return [stripeIssuer({ name: "stripe", baseUrl: STRIPE_URL, fetch })];
}
