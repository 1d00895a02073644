import { randomUUID } from "node:crypto";
import { once } from "node:events";
import { createServer, type IncomingMessage, type ServerResponse } from "node:http";
import type { AddressInfo } from "node:net";
import {
  type Address,
  createTestClient,
  createWalletClient,
  getAddress,
  http,
  isHash,
  parseAbi,
  parseEther,
  publicActions,
} from "viem";
import { generatePrivateKey, privateKeyToAccount } from "viem/accounts";
import { anvil } from "viem/chains";
import { z } from "zod";
import { operations } from "../../src/contract/registry.ts";
import type { AgentClient, Owner } from "./clients.ts";
import { dollars, expectStep, StepDiffers, tell } from "./stage.ts";

const WALLET_CENTS = 1_000;
/** A tenth of a cent, of a token with 6 decimals. */
const PRICE_UNITS = 1_000n;
const PRICE = "0.001";
const GOODS = JSON.stringify({ forecast: "sunny" });

const tokenAbi = parseAbi([
  "function name() view returns (string)",
  "function version() view returns (string)",
  "function transferWithAuthorization(address from, address to, uint256 value, uint256 validAfter, uint256 validBefore, bytes32 nonce, bytes signature)",
]);

const hex = z.templateLiteral(["0x", z.string()]);
const payment = z.object({
  payload: z.object({
    signature: hex,
    authorization: z.object({
      from: hex,
      to: hex,
      value: z.string(),
      validAfter: z.string(),
      validBefore: z.string(),
      nonce: hex,
    }),
  }),
});

/** A shop that speaks x402 and settles on the local chain with an account of its own. */
class Shop {
  readonly payTo = privateKeyToAccount(generatePrivateKey()).address;
  readonly #account = privateKeyToAccount(generatePrivateKey());
  readonly #client;
  readonly #rpcUrl: string;
  readonly #token: Address;
  readonly #server = createServer((request, response) => {
    this.#answer(request, response).catch(() => response.writeHead(402).end());
  });

  constructor(rpcUrl: string, token: Address) {
    this.#rpcUrl = rpcUrl;
    this.#token = token;
    const transport = http(rpcUrl);
    this.#client = createWalletClient({ account: this.#account, chain: anvil, transport }).extend(
      publicActions,
    );
  }

  /** Answers its address. */
  async open(): Promise<string> {
    const test = createTestClient({ chain: anvil, mode: "anvil", transport: http(this.#rpcUrl) });
    await test.setBalance({ address: this.#account.address, value: parseEther("1") });
    this.#server.listen(0, "127.0.0.1");
    await once(this.#server, "listening");
    return `http://127.0.0.1:${(this.#server.address() as AddressInfo).port}/forecast`;
  }

  async #answer({ headers, url }: IncomingMessage, response: ServerResponse): Promise<void> {
    const paid = headers["payment-signature"];
    if (typeof paid !== "string") {
      const challenge = { x402Version: 2, resource: { url }, accepts: [await this.#requirement()] };
      response.writeHead(402, { "payment-required": encoded(challenge) }).end();
      return;
    }
    const { payload } = payment.parse(JSON.parse(Buffer.from(paid, "base64").toString()));
    const { from, nonce, to, validAfter, validBefore, value } = payload.authorization;
    const times = [BigInt(validAfter), BigInt(validBefore)] as const;
    const transaction = await this.#client.writeContract({
      address: this.#token,
      abi: tokenAbi,
      functionName: "transferWithAuthorization",
      args: [from, to, BigInt(value), ...times, nonce, payload.signature],
    });
    await this.#client.waitForTransactionReceipt({ hash: transaction });
    response.setHeader("payment-response", encoded({ success: true, transaction, payer: from }));
    response.end(GOODS);
  }

  async #requirement(): Promise<object> {
    const read = { address: this.#token, abi: tokenAbi } as const;
    const name = await this.#client.readContract({ ...read, functionName: "name" });
    const version = await this.#client.readContract({ ...read, functionName: "version" });
    return {
      scheme: "exact",
      network: `eip155:${String(anvil.id)}`,
      amount: String(PRICE_UNITS),
      asset: this.#token,
      payTo: this.payTo,
      maxTimeoutSeconds: 60,
      extra: { name, version },
    };
  }

  close(): void {
    this.#server.close();
    this.#server.closeAllConnections();
  }
}

const encoded = (value: unknown): string => Buffer.from(JSON.stringify(value)).toString("base64");

/** The token of the chain's first transfer to a wallet. */
async function tokenOf(rpcUrl: string, hash: string): Promise<Address> {
  if (!isHash(hash)) throw new StepDiffers(`${hash} is no transaction hash`);
  const client = createWalletClient({ chain: anvil, transport: http(rpcUrl) }).extend(publicActions);
  const [log] = (await client.getTransactionReceipt({ hash })).logs;
  if (log === undefined) throw new StepDiffers(`${hash} has moved nothing`);
  return getAddress(log.address);
}

/** An agent buys from a shop that asks for payment with 402, and asks for the same once more. */
export async function buyFromShop(
  rpcUrl: string,
  owner: Owner,
  mcp: AgentClient,
  agentId: string,
): Promise<void> {
  const { output: funded } = operations.fundAgentInSandbox;
  const path = `/v1/sandbox/agents/${agentId}/fund`;
  const { onChainTxHash } = await owner.call(funded, "POST", path, { amountCents: WALLET_CENTS });
  tell("owner", `put ${dollars(WALLET_CENTS)} of test money into the agent's wallet`);
  const shop = new Shop(rpcUrl, await tokenOf(rpcUrl, onChainTxHash));
  try {
    const url = await shop.open();
    tell("shop", `sells forecasts at ${url}, for ${PRICE} USD each, by x402`);
    const { output: bought } = operations.payX402Request;
    const purchase = {
      url,
      maxAmountCents: 1,
      purpose: "Tomorrow's weather",
      idempotencyKey: randomUUID(),
    };
    const first = await mcp.use(bought, "pay_x402_request", purchase);
    const { amount, merchant, onChainTxHash: hash, status } = first.transaction ?? {};
    expectStep("a purchase", [status, amount, merchant], ["approved", PRICE, shop.payTo]);
    expectStep("what was bought", [first.httpStatus, first.body], [200, GOODS]);
    tell("agent", `bought ${GOODS} for ${PRICE} USD: ${status ?? ""}, transaction ${hash ?? ""}`);
    const again = await mcp.use(bought, "pay_x402_request", purchase);
    const repeated = [again.replayed, again.body, again.transaction?.onChainTxHash];
    expectStep("the same call again", repeated, [true, GOODS, hash]);
    tell("agent", "repeated the call: the same goods, paid once");
  } finally {
    shop.close();
  }
}
