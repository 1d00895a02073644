import { z } from "zod";
import { caip2Of } from "../../../chain/config.ts";
import {
  type Authorization,
  authorizationFields,
  type Fetched,
  type Frame,
  headerOf,
  isReadable,
  type Judged,
  parsedJson,
  type PaymentHeader,
  priced,
  type TokenTerms,
  unpayable,
} from "./offer.ts";

/** x402, versions 1 and 2: the scheme `exact` with ERC-3009 authorizations. */

const address = z.string().regex(/^0x[0-9a-fA-F]{40}$/);
const units = z.string().regex(/^[0-9]{1,30}$/);
const seconds = z.number().min(0).max(Number.MAX_SAFE_INTEGER);

/** Networks named in version 1. Version 1 has no names for other chains. */
const NETWORKS_V1: Readonly<Record<string, number>> = { base: 8453, "base-sepolia": 84532 };

/** The decisive fields of a requirement. The whole requirement is sent back unchanged. */
const decisive = {
  scheme: z.string(),
  network: z.string(),
  asset: address,
  payTo: address,
  maxTimeoutSeconds: seconds,
  extra: z
    .looseObject({ name: z.string(), version: z.string(), assetTransferMethod: z.string().optional() })
    .nullish(),
};
const requirementV2 = z.looseObject({ ...decisive, amount: units });
const requirementV1 = z.looseObject({ ...decisive, maxAmountRequired: units });

const required = <V extends number>(version: V) =>
  z.looseObject({
    x402Version: z.literal(version),
    accepts: z.array(z.unknown()).max(100),
    resource: z.unknown().optional(),
    extensions: z.unknown().optional(),
  });
const [requiredV1, requiredV2] = [required(1), required(2)];

const encoded = (value: unknown): string => Buffer.from(JSON.stringify(value)).toString("base64");
const decoded = (text: string): unknown => parsedJson(Buffer.from(text, "base64").toString("utf8"));

export function offersV2(fetched: Fetched, terms: TokenTerms): readonly Judged[] {
  const header = headerOf(fetched, "payment-required");
  if (header === null) return [];
  if (!isReadable(header)) return [unpayable("its challenge is too large")];
  const challenge = requiredV2.safeParse(decoded(header));
  if (!challenge.success) return [unpayable("its challenge can't be read")];
  const { accepts, extensions, resource } = challenge.data;
  return accepts.map((accepted) => {
    const requirement = requirementV2.safeParse(accepted);
    if (!requirement.success) return unpayable("its challenge can't be read");
    const { amount, network } = requirement.data;
    const offer = { ...requirement.data, amount, isOurChain: network === caip2Of(terms.chainId) };
    return judged({ protocol: "x402/2", accepted, extensions, resource }, offer, terms);
  });
}

/** Returns the offers of a 402 in version 1, whose challenge is the body. */
export function offersV1(fetched: Fetched, terms: TokenTerms): readonly Judged[] {
  const text = fetched.body.toString("utf8");
  const isChallenge = text.trimStart().startsWith("{") && text.includes("x402Version");
  if (!isChallenge) return [];
  if (!isReadable(text)) return [unpayable("its challenge is too large")];
  const challenge = requiredV1.safeParse(parsedJson(text));
  if (!challenge.success) return [];
  return challenge.data.accepts.map((accepted) => {
    const requirement = requirementV1.safeParse(accepted);
    if (!requirement.success) return unpayable("its challenge can't be read");
    const { maxAmountRequired: amount, network, scheme } = requirement.data;
    const isOurChain = Object.hasOwn(NETWORKS_V1, network) && NETWORKS_V1[network] === terms.chainId;
    return judged(
      { protocol: "x402/1", scheme, network },
      { ...requirement.data, amount, isOurChain },
      terms,
    );
  });
}

type Requirement = Pick<
  z.output<typeof requirementV2>,
  "amount" | "asset" | "extra" | "maxTimeoutSeconds" | "payTo" | "scheme"
> & { readonly isOurChain: boolean };

function judged(
  frame: Frame,
  { amount, asset, extra, isOurChain, maxTimeoutSeconds, payTo, scheme }: Requirement,
  terms: TokenTerms,
): Judged {
  if (scheme !== "exact") return unpayable("it wants another scheme than exact");
  if (!isOurChain) return unpayable("it wants another chain");
  const price = priced({ asset, payTo, units: amount }, terms);
  if (typeof price === "string") return unpayable(price);
  if (extra?.name !== terms.name || extra.version !== terms.version)
    return unpayable("it names another signing domain than the token's");
  if ((extra.assetTransferMethod ?? "eip3009") !== "eip3009")
    return unpayable("it wants another way of transfer");
  return { frame, ...price, timeoutSeconds: maxTimeoutSeconds, nonce: null };
}

export function presented(
  frame: Extract<Frame, { protocol: "x402/2" | "x402/1" }>,
  authorization: Authorization,
): PaymentHeader {
  const { signature } = authorization;
  const payload = { signature, authorization: authorizationFields(authorization) };
  // JSON leaves out undefined fields.
  if (frame.protocol === "x402/2") {
    const { accepted, extensions, resource } = frame;
    const value = encoded({ x402Version: 2, payload, extensions, resource, accepted });
    return { name: "payment-signature", value };
  }
  const { network, scheme } = frame;
  return { name: "x-payment", value: encoded({ x402Version: 1, scheme, network, payload }) };
}

const settled = z.looseObject({ success: z.literal(true) });

/** The shop's receipt, as JSON. */
export function receiptIn(fetched: Pick<Fetched, "headers">): string | null {
  const header = headerOf(fetched, "payment-response") ?? headerOf(fetched, "x-payment-response");
  if (header === null || !isReadable(header)) return null;
  const receipt = settled.safeParse(decoded(header));
  return receipt.success ? JSON.stringify(receipt.data) : null;
}
