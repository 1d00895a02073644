import { readFile } from "node:fs/promises";
import path from "node:path";
import { z } from "zod";
import { callRpc } from "../../../src/engines/anvil-rpc.ts";

const PAYER = "0xf39fd6e51aad88f6f4ce6ab8827279cfffb92266";
const PAYEE = "0x00000000000000000000000000000000000000ee";

const receiptSchema = z.object({ blockHash: z.string(), blockNumber: z.string(), status: z.literal("0x1") });

/** What a client sees of the local chain: one of its rich accounts pays 1 wei after the other. */
export class ChainClient {
  readonly rpcUrl: string;

  constructor(rpcUrl: string) {
    this.rpcUrl = rpcUrl;
  }

  /** Sends the payment of that nonce; answers the transaction's hash. Sent again it has the same. */
  async pay(nonce: number): Promise<string> {
    const fees = { gas: "0x5208", maxFeePerGas: "0x77359400", maxPriorityFeePerGas: "0x1" };
    const payment = { from: PAYER, to: PAYEE, value: "0x1", nonce: `0x${nonce.toString(16)}`, ...fees };
    return z.string().parse(await callRpc(this.rpcUrl, "eth_sendTransaction", [payment]));
  }

  async nonce(): Promise<number> {
    return Number(await callRpc(this.rpcUrl, "eth_getTransactionCount", [PAYER, "latest"]));
  }

  /** In wei: as many as payments came through. */
  async received(): Promise<number> {
    return Number(await callRpc(this.rpcUrl, "eth_getBalance", [PAYEE, "latest"]));
  }

  async blockNumber(): Promise<number> {
    return Number(await callRpc(this.rpcUrl, "eth_blockNumber"));
  }

  /** The receipt with its block's hash, or null. */
  async receipt(hash: string): Promise<z.infer<typeof receiptSchema> | null> {
    return receiptSchema.nullable().parse(await callRpc(this.rpcUrl, "eth_getTransactionReceipt", [hash]));
  }

  /** Pays with the next nonce and waits for the block: accounts show it a moment before it is the latest one. */
  async paid(): Promise<string> {
    const hash = await this.pay(await this.nonce());
    while ((await this.receipt(hash)) === null);
    return hash;
  }

  async mined(nonce: number): Promise<void> {
    while ((await this.nonce()) <= nonce);
  }
}

const savedSchema = z.object({ best_block_number: z.number() });

/** The newest block of the last snapshot on a DATA_DIR; -1 while there is none. */
export async function savedBlock(dataDir: string): Promise<number> {
  try {
    const text = await readFile(path.join(dataDir, "chain", "state.json"), "utf8");
    return savedSchema.parse(JSON.parse(text)).best_block_number;
  } catch {
    return -1;
  }
}
