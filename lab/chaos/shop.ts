import { createServer, type IncomingMessage, type ServerResponse } from "node:http";
import { setTimeout as sleep } from "node:timers/promises";
import { MongoClient } from "mongodb";
import {
  type Address,
  createPublicClient,
  encodeFunctionData,
  type Hash,
  type Hex,
  http,
  keccak256,
  parseAbi,
  parseGwei,
  type PublicClient,
  recoverTypedDataAddress,
  toHex,
} from "viem";
import { generatePrivateKey, privateKeyToAccount } from "viem/accounts";
import { z } from "zod";
import { readChain } from "../../server/chain.ts";
import { callRpc } from "../../src/engines/anvil-rpc.ts";
import { MasterKey } from "../../src/secrets/master-key.ts";
import type { Site } from "./site.ts";

const ABI = parseAbi([
  "function name() view returns (string)",
  "function version() view returns (string)",
  "function transferWithAuthorization(address from, address to, uint256 value, uint256 validAfter, uint256 validBefore, bytes32 nonce, bytes signature)",
]);
const TRANSFER = [
  { name: "from", type: "address" },
  { name: "to", type: "address" },
  { name: "value", type: "uint256" },
  { name: "validAfter", type: "uint256" },
  { name: "validBefore", type: "uint256" },
  { name: "nonce", type: "bytes32" },
] as const;

const hex = z.custom<Hex>((value) => typeof value === "string" && /^0x[0-9a-fA-F]+$/.test(value));
const digits = z.string().regex(/^\d+$/).transform(BigInt);
const presented = z.object({
  payload: z.object({
    signature: hex,
    authorization: z.object({
      from: hex,
      to: hex,
      value: digits,
      validAfter: digits,
      validBefore: digits,
      nonce: hex,
    }),
  }),
});
type Presented = z.output<typeof presented>["payload"];

const UNITS_PER_CENT = 10_000n;
/** Longer than any disaster keeps the chain away, and shorter than rounds are given to come to rest. */
const VALID_SECONDS = 90;
/** The shop's answer to a paid request comes after its settlement, or not at all. */
const SETTLED_MS = 8_000;
const POLL_MS = 200;
const GAS = 150_000n;
const FEES = { maxFeePerGas: parseGwei("500"), maxPriorityFeePerGas: parseGwei("1") };

/** An authorization that a buyer has presented, and the transaction that settles it. */
interface Sale {
  readonly paid: Presented;
  sent: { readonly raw: Hex; readonly hash: Hash; readonly nonce: number } | null;
  isSettled: boolean;
}

/**
 * Sells by x402, version 2, and settles with a key of its own. No disaster strikes it; a chain that has lost its newest blocks gets
 * its transactions again. It stands for a merchant who delivers once he is paid.
 */
export class Shop {
  readonly payTo: Address = privateKeyToAccount(generatePrivateKey()).address;
  readonly url: string;
  readonly #account = privateKeyToAccount(generatePrivateKey());
  readonly #chain: PublicClient;
  readonly #rpcUrl: string;
  readonly #chainId: number;
  readonly #token: Address;
  readonly #server: ReturnType<typeof createServer>;
  readonly #sales = new Map<Hex, Sale>();
  readonly #stopping = new AbortController();
  readonly #settling: Promise<void>;
  #domain: Promise<{ readonly name: string; readonly version: string }> | null = null;

  private constructor(
    server: ReturnType<typeof createServer>,
    { rpcUrl, ...chain }: { readonly rpcUrl: string; readonly chainId: number; readonly token: Address },
  ) {
    const address = server.address();
    if (address === null || typeof address === "string") throw new Error("a TCP server has a port");
    this.url = `http://127.0.0.1:${String(address.port)}`;
    this.#rpcUrl = rpcUrl;
    this.#chainId = chain.chainId;
    this.#token = chain.token;
    this.#chain = createPublicClient({ transport: http(rpcUrl, { retryCount: 0 }), cacheTime: 0 });
    this.#server = server.on("request", (request, response) => void this.#answer(request, response));
    this.#settling = this.#settle();
  }

  static async open({ addresses, env }: Pick<Site, "addresses" | "env">): Promise<Shop> {
    const { mongodbUri, rpcUrl } = addresses;
    const masterKey = MasterKey.parse(env["MASTER_KEY"] ?? "", "MASTER_KEY");
    const { config } = readChain(rpcUrl, env, masterKey, new MongoClient(mongodbUri).db());
    const server = createServer();
    await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
    return new Shop(server, { rpcUrl, chainId: config.chainId, token: config.token });
  }

  /** URL at which something is sold at this price. */
  urlOf(what: string, amountCents: number): string {
    return `${this.url}/${what}?cents=${String(amountCents)}`;
  }

  /** Returns a line about settlements under way; null: there are none. */
  unsettled(): string | null {
    const open = [...this.#sales.values()].filter(({ isSettled }) => !isSettled).length;
    return open === 0 ? null : `the shop has ${String(open)} payments to settle`;
  }

  async close(): Promise<void> {
    this.#stopping.abort();
    this.#server.closeAllConnections();
    await new Promise<void>((resolve) => this.#server.close(() => resolve()));
    await this.#settling;
  }

  async #answer(request: IncomingMessage, response: ServerResponse): Promise<void> {
    try {
      request.resume();
      const cents = new URL(request.url ?? "", this.url).searchParams.get("cents") ?? "";
      const units = BigInt(cents) * UNITS_PER_CENT;
      const header = request.headers["payment-signature"];
      if (typeof header !== "string") return await this.#ask(response, units);
      const { payload } = presented.parse(JSON.parse(Buffer.from(header, "base64").toString("utf8")));
      if (!(await this.#isGood(payload, units))) return await this.#ask(response, units);
      const sale = this.#sales.get(payload.authorization.nonce) ?? {
        paid: payload,
        sent: null,
        isSettled: false,
      };
      this.#sales.set(payload.authorization.nonce, sale);
      const until = performance.now() + SETTLED_MS;
      while (!sale.isSettled && performance.now() < until) await sleep(POLL_MS);
      if (!sale.isSettled || sale.sent === null) return void response.writeHead(500).end();
      const receipt = JSON.stringify({ success: true, transaction: sale.sent.hash });
      response.writeHead(200, { "payment-response": Buffer.from(receipt).toString("base64") }).end("goods");
    } catch {
      response.writeHead(500).end();
    }
  }

  async #ask(response: ServerResponse, units: bigint): Promise<void> {
    const { name, version } = await this.#signingDomain();
    const accepted = {
      scheme: "exact",
      network: `eip155:${String(this.#chainId)}`,
      amount: String(units),
      asset: this.#token,
      payTo: this.payTo,
      maxTimeoutSeconds: VALID_SECONDS,
      extra: { name, version },
    };
    const challenge = JSON.stringify({
      x402Version: 2,
      error: "pay",
      resource: { url: "/" },
      accepts: [accepted],
    });
    response.writeHead(402, { "payment-required": Buffer.from(challenge).toString("base64") }).end();
  }

  #signingDomain(): Promise<{ readonly name: string; readonly version: string }> {
    const read = { address: this.#token, abi: ABI } as const;
    this.#domain ??= Promise.all([
      this.#chain.readContract({ ...read, functionName: "name" }),
      this.#chain.readContract({ ...read, functionName: "version" }),
    ])
      .then(([name, version]) => ({ name, version }))
      .catch((error: unknown) => {
        this.#domain = null;
        throw error;
      });
    return this.#domain;
  }

  async #isGood({ authorization, signature }: Presented, units: bigint): Promise<boolean> {
    const domain = {
      ...(await this.#signingDomain()),
      chainId: this.#chainId,
      verifyingContract: this.#token,
    };
    const types = { TransferWithAuthorization: TRANSFER };
    const typed = {
      domain,
      types,
      primaryType: "TransferWithAuthorization",
      message: authorization,
    } as const;
    const signer = await recoverTypedDataAddress({ ...typed, signature });
    const { from, to, value } = authorization;
    return signer === from && to === this.payTo && value === units;
  }

  /** Settles one sale after another; those that the chain has lost first, by the same transactions. */
  async #settle(): Promise<void> {
    const { signal } = this.#stopping;
    while (!signal.aborted) {
      await this.#settleSome().catch(() => undefined);
      await sleep(POLL_MS, undefined, { signal }).catch(() => undefined);
    }
  }

  async #settleSome(): Promise<void> {
    const { address } = this.#account;
    const next = await this.#chain.getTransactionCount({ address });
    if (next === 0) await callRpc(this.#rpcUrl, "anvil_setBalance", [address, toHex(10n ** 20n)]);
    for (const sale of this.#sent().filter(({ sent }) => sent.nonce >= next)) {
      sale.isSettled = false;
      // A chain that has lost blocks has to have the pocket's top-up again, too.
      if (!(await this.#isPayable(sale))) return;
      await this.#chain.sendRawTransaction({ serializedTransaction: sale.sent.raw });
    }
    for (const sale of this.#sales.values()) {
      if (sale.sent === null) await this.#send(sale);
      else if (!sale.isSettled) {
        const receipt = await this.#chain.getTransactionReceipt({ hash: sale.sent.hash });
        sale.isSettled = receipt.status === "success";
      }
    }
  }

  /** Sales with a transaction, in the order of these. */
  #sent() {
    return [...this.#sales.values()]
      .flatMap((sale) => (isSent(sale) ? [sale] : []))
      .toSorted((one, other) => one.sent.nonce - other.sent.nonce);
  }

  async #send(sale: Sale): Promise<void> {
    const { nonce: id, validBefore } = sale.paid.authorization;
    if (BigInt(Math.floor(Date.now() / 1_000)) >= validBefore) {
      this.#sales.delete(id);
      return;
    }
    if (!(await this.#isPayable(sale))) return;
    const nonce = this.#sent().length;
    const data = encodeFunctionData(this.#callOf(sale));
    const fields = { chainId: this.#chainId, nonce, to: this.#token, data, gas: GAS, ...FEES };
    const raw = await this.#account.signTransaction(fields);
    sale.sent = { raw, hash: keccak256(raw), nonce };
    await this.#chain.sendRawTransaction({ serializedTransaction: raw });
  }

  #isPayable(sale: Sale): Promise<boolean> {
    const call = { ...this.#callOf(sale), address: this.#token, account: this.#account.address };
    return this.#chain.simulateContract(call).then(
      () => true,
      () => false,
    );
  }

  #callOf({ paid: { authorization, signature } }: Sale) {
    const { from, nonce, to, validAfter, validBefore, value } = authorization;
    const args = [from, to, value, validAfter, validBefore, nonce, signature] as const;
    return { abi: ABI, functionName: "transferWithAuthorization", args } as const;
  }
}

const isSent = (sale: Sale): sale is Sale & { readonly sent: NonNullable<Sale["sent"]> } =>
  sale.sent !== null;
