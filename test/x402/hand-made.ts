import type { IncomingMessage, ServerResponse } from "node:http";
import type { Address } from "viem";
import { privateKeyToAccount, generatePrivateKey } from "viem/accounts";
import { listening, NETWORK } from "./shops.ts";

/** Shops that no package would run: each says what it likes. */

export interface TokenFacts {
  readonly token: Address;
  readonly name: string;
  readonly version: string;
}

export const somebody = (): Address => privateKeyToAccount(generatePrivateKey()).address;

/** A requirement of x402, version 2, that nothing is wrong with. */
export const requirement = ({ name, token, version }: TokenFacts, fields: object = {}): object => ({
  scheme: "exact",
  network: NETWORK,
  amount: "1000",
  asset: token,
  payTo: somebody(),
  maxTimeoutSeconds: 60,
  extra: { name, version },
  ...fields,
});

export const encoded = (value: unknown): string => Buffer.from(JSON.stringify(value)).toString("base64");

/** The header of a 402 of version 2. */
export const challengeV2 = (...accepts: readonly unknown[]): string =>
  encoded({ x402Version: 2, error: "pay", resource: { url: "/" }, accepts });

/** The header of a 402 of MPP. */
export function challengeMpp(
  { token }: Pick<TokenFacts, "token">,
  fields: { readonly request?: object; readonly params?: Readonly<Record<string, string>> } = {},
): string {
  const request = {
    amount: "1000",
    currency: token,
    recipient: somebody(),
    methodDetails: { chainId: 31_337, credentialTypes: ["authorization"], decimals: 6 },
    ...fields.request,
  };
  const params = {
    id: `challenge-${String(Math.random())}`,
    realm: "test",
    method: "evm",
    intent: "charge",
    request: Buffer.from(JSON.stringify(request)).toString("base64url"),
    ...fields.params,
  };
  return `Payment ${Object.entries(params)
    .map(([name, value]) => `${name}="${value}"`)
    .join(", ")}`;
}

export interface Visit {
  readonly path: string;
  /** The header that pays; null: unpaid. */
  readonly payment: string | null;
}

export interface HandMadeShop {
  readonly url: string;
  readonly visits: Visit[];
  close(): Promise<void>;
}

type Answer = (visit: Visit, response: ServerResponse, request: IncomingMessage) => void;

export async function openHandMade(answer: Answer): Promise<HandMadeShop> {
  const visits: Visit[] = [];
  const server = await listening((request, response) => {
    const { authorization, "payment-signature": x402 } = request.headers;
    const payment = typeof x402 === "string" ? x402 : (authorization ?? null);
    const visit = { path: request.url ?? "", payment };
    visits.push(visit);
    request.resume();
    request.once("end", () => answer(visit, response, request));
  });
  return { ...server, visits };
}

/** Answers 402 with a challenge of version 2. */
export const ask = (response: ServerResponse, ...accepts: readonly unknown[]): void =>
  void response.writeHead(402, { "payment-required": challengeV2(...accepts) }).end("{}");
