import { PaymentPayloadV1Schema } from "@x402/core/schemas";
import type { HandMadeShop, TokenFacts } from "./hand-made.ts";
import { type facilitatorOn, listening, NETWORK_V1 } from "./shops.ts";

type Facilitator = Awaited<ReturnType<typeof facilitatorOn>>["facilitator"];

export interface ShopV1 extends Pick<HandMadeShop, "close" | "url"> {
  /** Requests that carried a payment. */
  readonly paid: () => number;
}

const decoded = (header: string): unknown => JSON.parse(Buffer.from(header, "base64").toString("utf8"));
const encoded = (value: unknown): string => Buffer.from(JSON.stringify(value)).toString("base64");

/** A shop of x402, version 1, for which the packages have a facilitator and no server: written by the protocol's text. */
export async function openShopV1(
  facilitator: Facilitator,
  { name, token, version }: TokenFacts,
  payTo: string,
): Promise<ShopV1> {
  let paid = 0;
  const requirement = {
    scheme: "exact",
    network: NETWORK_V1,
    maxAmountRequired: "1000",
    resource: "http://shop/paid",
    description: "a test",
    mimeType: "text/plain",
    payTo,
    maxTimeoutSeconds: 60,
    asset: token,
    extra: { name, version },
  } as const;
  const server = await listening((request, response) => {
    const header = request.headers["x-payment"];
    const refuse = (error: string): void => {
      const body = { x402Version: 1, error, accepts: [requirement] };
      response.writeHead(402, { "content-type": "application/json" }).end(JSON.stringify(body));
    };
    if (typeof header !== "string") return refuse("X-PAYMENT header is required");
    paid += 1;
    void (async () => {
      const payload = PaymentPayloadV1Schema.parse(decoded(header));
      // The packages' types are those of version 2; their facilitator takes both.
      const both = [payload, requirement] as unknown as Parameters<Facilitator["verify"]>;
      const verified = await facilitator.verify(...both);
      if (!verified.isValid) return refuse(verified.invalidReason ?? "invalid");
      const settled = await facilitator.settle(...both);
      if (!settled.success) return refuse(settled.errorReason ?? "not settled");
      response.writeHead(200, { "x-payment-response": encoded(settled) }).end("goods");
    })().catch((error: unknown) => void response.writeHead(500).end(String(error)));
  });
  return { ...server, paid: () => paid };
}
