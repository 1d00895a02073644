import { MongoClient } from "mongodb";
import { createPublicClient, type Hash, http, keccak256, parseGwei, type PublicClient } from "viem";
import type { Signer } from "../../src/chain/config.ts";
import { readChain } from "../../server/chain.ts";
import { MasterKey } from "../../src/secrets/master-key.ts";
import type { Site } from "./site.ts";

/** A transaction of the service's key that the service has not made. */
export interface ForeignTransaction {
  readonly nonce: number;
  readonly hash: Hash;
}

/** More than the service ever offers here, so that a pool takes it in the other one's place. */
const FEES = { maxFeePerGas: parseGwei("900"), maxPriorityFeePerGas: parseGwei("20") };
const GAS = 21_000n;
const TRIES_MAX = 20;

/** An operator who cancels by the service's key, without the service's knowledge. */
export class ForeignSender {
  readonly #chain: PublicClient;
  readonly #chainId: number;
  readonly #signer: Signer;
  readonly #sent: ForeignTransaction[] = [];

  constructor({ addresses, env }: Pick<Site, "addresses" | "env">) {
    const { mongodbUri, rpcUrl } = addresses;
    const masterKey = MasterKey.parse(env["MASTER_KEY"] ?? "", "MASTER_KEY");
    const { config, signer } = readChain(rpcUrl, env, masterKey, new MongoClient(mongodbUri).db());
    this.#chain = createPublicClient({ transport: http(rpcUrl), cacheTime: 0 });
    this.#chainId = config.chainId;
    this.#signer = signer;
  }

  /** Transactions that the chain has accepted; it may have lost some again with its newest blocks. */
  get sent(): readonly ForeignTransaction[] {
    return this.#sent;
  }

  /** Takes the next nonce, whatever the service has signed under it; that it does not succeed is no matter. */
  async take(): Promise<void> {
    const { address } = this.#signer;
    for (let tries = 0; tries < TRIES_MAX; tries += 1) {
      try {
        const nonce = await this.#chain.getTransactionCount({ address });
        const call = { chainId: this.#chainId, nonce, to: address, data: "0x", gas: GAS, ...FEES } as const;
        const serializedTransaction = await this.#signer.sign(call);
        await this.#chain.sendRawTransaction({ serializedTransaction });
        this.#sent.push({ nonce, hash: keccak256(serializedTransaction) });
        return;
      } catch {
        // The service was faster, or the chain is down.
      }
    }
  }
}
