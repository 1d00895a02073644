import { type RunningCardNetwork, startCardNetwork } from "../../src/engines/card-network/server.ts";
import { GuardedFetch } from "../../src/lib/guarded-fetch/guarded-fetch.ts";
import type { CardIssuerKind } from "../../src/payments/card-issuer.ts";
import { simulatedElements, stripeIssuer } from "../../src/rails/stripe/issuer.ts";
import { atEnd } from "./at-end.ts";
import { seed } from "./seed.ts";

let running: Promise<RunningCardNetwork> | null = null;

/** The card network of this process's services. */
export const testCardNetwork = (): Promise<RunningCardNetwork> =>
  (running ??= startCardNetwork({ port: 0, folder: null, seed }).then((network) => {
    atEnd(() => network.close());
    return network;
  }));

/** Stripe's adapter at such a network. */
export const issuersAt = ({ url: baseUrl }: Pick<RunningCardNetwork, "url">): readonly CardIssuerKind[] => {
  const fetch = new GuardedFetch({ allowCidrs: ["127.0.0.0/8"], extraCa: null, allowsHttp: true });
  return [stripeIssuer({ name: "stripe", baseUrl, elements: simulatedElements(baseUrl), fetch })];
};
