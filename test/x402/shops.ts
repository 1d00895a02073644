import { createServer, type RequestListener, type Server } from "node:http";
import { x402Facilitator } from "@x402/core/facilitator";
import type { FacilitatorClient } from "@x402/core/server";
import { toFacilitatorEvmSigner } from "@x402/evm";
import { ExactEvmScheme as FacilitatorScheme } from "@x402/evm/exact/facilitator";
import { ExactEvmSchemeV1 } from "@x402/evm/exact/v1/facilitator";
import { ExactEvmScheme as ServerScheme } from "@x402/evm/exact/server";
import { paymentMiddleware, x402ResourceServer } from "@x402/express";
import express from "express";
import type { TokenFacts } from "./hand-made.ts";
import {
  type Address,
  createTestClient,
  createWalletClient,
  defineChain,
  http,
  parseAbi,
  parseEther,
  publicActions,
} from "viem";
import { generatePrivateKey, privateKeyToAccount } from "viem/accounts";

/** Shops that the x402 packages' own server and facilitator run, on the tests' chain. */

export const NETWORK = "eip155:31337";
/** The name of chain 84532 in version 1, which knows no local chain. */
export const NETWORK_V1 = "base-sepolia";

const domainAbi = parseAbi([
  "function name() view returns (string)",
  "function version() view returns (string)",
]);

/** The chain as a facilitator sees it, with a key of its own that has gas. */
export async function facilitatorOn(rpcUrl: string, chainId = 31_337) {
  const chain = defineChain({
    id: chainId,
    name: "test",
    nativeCurrency: { name: "Ether", symbol: "ETH", decimals: 18 },
    rpcUrls: { default: { http: [rpcUrl] } },
  });
  const account = privateKeyToAccount(generatePrivateKey());
  const transport = http(rpcUrl);
  await createTestClient({ chain, transport, mode: "anvil" }).setBalance({
    address: account.address,
    value: parseEther("100"),
  });
  const client = createWalletClient({ account, chain, transport, pollingInterval: 50 }).extend(publicActions);
  const signer = toFacilitatorEvmSigner({
    address: account.address,
    readContract: (args) => client.readContract({ ...args, args: args.args ?? [] }),
    verifyTypedData: (args) => client.verifyTypedData(args as Parameters<typeof client.verifyTypedData>[0]),
    writeContract: ({ dataSuffix: _none, ...args }) => client.writeContract({ ...args, args: args.args }),
    sendTransaction: (args) => client.sendTransaction(args),
    waitForTransactionReceipt: (args) => client.waitForTransactionReceipt(args),
    getCode: (args) => client.getCode(args),
  });
  const facilitator = new x402Facilitator()
    .register(NETWORK, new FacilitatorScheme(signer))
    // Typed for the names of version 2.
    .registerV1(NETWORK_V1 as never, new ExactEvmSchemeV1(signer));
  return { client, facilitator };
}

export interface Shop {
  readonly url: string;
  readonly payTo: Address;
  readonly facts: TokenFacts;
  /** Paths that were asked for, those with a payment marked by an asterisk. */
  readonly visits: string[];
  close(): Promise<void>;
}

export interface ShopOptions {
  readonly rpcUrl: string;
  readonly token: Address;
  /** Smallest units of the token: a cent is 10,000. */
  readonly units?: string;
  readonly deliver?: express.RequestHandler;
  /** Stands between the shop and its facilitator. */
  readonly decorate?: (facilitator: FacilitatorClient) => FacilitatorClient;
}

/** Signing domain by the token's own account. */
export async function factsOf(
  client: Awaited<ReturnType<typeof facilitatorOn>>["client"],
  token: Address,
): Promise<TokenFacts> {
  const read = { address: token, abi: domainAbi } as const;
  const [name, version] = await Promise.all([
    client.readContract({ ...read, functionName: "name" }),
    client.readContract({ ...read, functionName: "version" }),
  ]);
  return { token, name, version };
}

/** A shop that sells everything under `/paid`. */
export async function openShop({
  decorate = (plain) => plain,
  deliver = (request, response) => void response.json({ bought: request.path }),
  rpcUrl,
  token,
  units = "1000",
}: ShopOptions): Promise<Shop> {
  const { client, facilitator } = await facilitatorOn(rpcUrl);
  const facts = await factsOf(client, token);
  const { name, version } = facts;
  const payTo = privateKeyToAccount(generatePrivateKey()).address;
  const plain: FacilitatorClient = {
    verify: (payload, requirements) => facilitator.verify(payload, requirements),
    settle: (payload, requirements) => facilitator.settle(payload, requirements),
    getSupported: () => Promise.resolve(facilitator.getSupported() as never),
  };
  const server = new x402ResourceServer(decorate(plain)).register(NETWORK, new ServerScheme());
  const app = express();
  const visits: string[] = [];
  app.use((request, _response, next) => {
    const isPaid = request.headers["payment-signature"] !== undefined;
    visits.push(`${request.path}${isPaid ? "*" : ""}`);
    next();
  });
  const price = { amount: units, asset: token, extra: { name, version } };
  const accepts = { scheme: "exact", network: NETWORK, payTo, price } as const;
  app.use(paymentMiddleware({ "/paid/*": { accepts, description: "a test" } }, server));
  app.use("/paid", deliver);
  app.use((_request, response) => void response.send("free"));
  return { ...(await listening(app)), payTo, visits, facts };
}

/** A server on this machine that answers as it is told. */
export async function listening(
  listener: RequestListener,
): Promise<{ readonly url: string; close(): Promise<void> }> {
  const server: Server = createServer(listener);
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  const address = server.address();
  if (address === null || typeof address === "string") throw new Error("a TCP server has a port");
  return {
    url: `http://127.0.0.1:${String(address.port)}`,
    async close() {
      server.closeAllConnections();
      await new Promise<void>((resolve) => server.close(() => resolve()));
    },
  };
}
