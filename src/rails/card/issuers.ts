import { GuardedFetch } from "../../lib/guarded-fetch/guarded-fetch.ts";
import type { CardIssuerKind } from "../../payments/card-issuer.ts";
import { simulatedElements, STRIPE_ELEMENTS, STRIPE_URL, stripeIssuer } from "../stripe/issuer.ts";

const LOOPBACK_CIDRS = ["127.0.0.0/8", "::1/128"];

/**
 * Returns the connectable issuers. Each is registered here. `simulatorUrl` is the address of a simulated network, which
 * speaks Stripe's API.
 */
export function cardIssuers(simulatorUrl: string | null): readonly CardIssuerKind[] {
  const publicFetch = new GuardedFetch({ allowCidrs: [], extraCa: null });
  const stripe = stripeIssuer({
    name: "stripe",
    baseUrl: STRIPE_URL,
    elements: STRIPE_ELEMENTS,
    fetch: publicFetch,
  });
  if (simulatorUrl === null) return [stripe];
  const fetch = new GuardedFetch({ allowCidrs: LOOPBACK_CIDRS, extraCa: null, allowsHttp: true });
  const elements = simulatedElements(simulatorUrl);
  return [stripe, stripeIssuer({ name: "simulator", baseUrl: simulatorUrl, elements, fetch })];
}
