import type { Db } from "mongodb";
import {
  type Address,
  createPublicClient,
  erc20Abi,
  getAbiItem,
  type Hash,
  http,
  isHex,
  type PublicClient,
  TransactionReceiptNotFoundError,
  zeroAddress,
} from "viem";
import { pocketEvents, readPockets } from "../../../src/rails/pocket/reconcile.ts";
import type { PocketKeys } from "../../../src/rails/pocket/pocket-keys.ts";
import { collectionsOf } from "../../../src/store/collections.ts";
import { addressOf, spentEvents } from "../../../src/rails/wallet/spent-events.ts";
import { sandboxTokenDeployment } from "../../../src/chain/contracts.ts";
import type { ChainTransactionDocument } from "../../../src/chain/outbox.ts";
import { type AgentDocument, COLLECTIONS } from "../../../src/store/documents.ts";
import { RECIPIENTS } from "../orders.ts";
import type { ForeignTransaction } from "../foreign.ts";
import type { PayingAgent } from "../tenant.ts";
import { type ChainBooks, isReplacedBy, type RecordedEntry, type WalletEntry } from "./books.ts";

const CALL_MS = 10_000;
/** Receipts asked for in one request. */
const BATCH = 100;

export interface ChainScope {
  /** Maximum number of newest transactions that are looked up in the chain. */
  readonly receiptsMax: number;
  /** Account of the shop that is bought from. */
  readonly shop: Address;
  /** Foreign transactions of the service's key. */
  readonly foreign: readonly ForeignTransaction[];
}

/** Reads what the chain has of agents' wallets and pockets, and of the service's transactions. */
export class ChainReader {
  readonly #db: Db;
  readonly #chain: PublicClient;
  readonly #pocketKeys: PocketKeys;

  constructor(db: Db, rpcUrl: string, pocketKeys: PocketKeys) {
    this.#db = db;
    this.#pocketKeys = pocketKeys;
    const transport = http(rpcUrl, { batch: { batchSize: BATCH }, retryCount: 0, timeout: CALL_MS });
    this.#chain = createPublicClient({ transport, cacheTime: 0 });
  }

  async books(
    agents: readonly PayingAgent[],
    { foreign, receiptsMax, shop }: ChainScope,
  ): Promise<ChainBooks> {
    const token = sandboxTokenDeployment(await this.#key()).address;
    const wallets = agents.map(({ wallet }) => addressOf(wallet));
    const sources = {
      accessProofs: null,
      collections: collectionsOf(this.#db),
      db: this.#db,
      pocketKeys: this.#pocketKeys,
    };
    const pockets = await readPockets(
      sources,
      agents.map(({ id }) => id),
    );
    const pocketAddresses = pockets.pockets.map(({ address }) => address);
    const [recorded, nonce, spent, events, entries, supplyUnits, heldUnits] = await Promise.all([
      this.recorded(),
      this.nonce(),
      spentEvents(this.#chain, wallets, token),
      pocketEvents(this.#chain, pocketAddresses, token),
      Promise.all(agents.map((agent) => this.#wallet(token, agent))),
      this.#chain.readContract({ address: token, abi: erc20Abi, functionName: "totalSupply" }),
      this.#held(token, shop),
    ]);
    return {
      nonce,
      recorded,
      supplyUnits,
      heldUnits,
      foreign,
      wallets: entries,
      withoutReceipt: await this.#withoutReceipt(
        recorded.slice(-receiptsMax).filter((entry) => !isReplacedBy(entry, foreign)),
      ),
      spent,
      pockets: { ...pockets, events },
    };
  }

  async #wallet(token: Address, { id, wallet }: PayingAgent): Promise<WalletEntry> {
    const minted = await this.#chain.getLogs({
      address: token,
      event: getAbiItem({ abi: erc20Abi, name: "Transfer" }),
      args: { from: zeroAddress, to: addressOf(wallet) },
      fromBlock: 0n,
      strict: true,
    });
    const mintedUnits = minted.reduce((sum, { args }) => sum + args.value, 0n);
    const both = [addressOf(wallet), this.#pocketKeys.addressOf(id)];
    const balances = await Promise.all(both.map((account) => this.#balance(token, account)));
    return { agentId: id, mintedUnits, balanceUnits: balances.reduce((sum, balance) => sum + balance, 0n) };
  }

  #balance(token: Address, account: Address): Promise<bigint> {
    const read = { address: token, abi: erc20Abi, functionName: "balanceOf" } as const;
    return this.#chain.readContract({ ...read, args: [account] });
  }

  /** Returns the balance of every recipient: all agents' wallets and pockets, and the accounts that were paid. */
  async #held(token: Address, shop: Address): Promise<bigint> {
    const known = await this.#db.collection<AgentDocument>("agents").distinct("wallet.address");
    const pockets = await this.#db.collection(COLLECTIONS.pockets).distinct("agentId");
    const accounts = [
      ...known.map((address) => addressOf(String(address))),
      ...pockets.map((agentId) => this.#pocketKeys.addressOf(String(agentId))),
      ...RECIPIENTS,
      shop,
    ];
    const balances = await Promise.all(accounts.map((account) => this.#balance(token, account)));
    return balances.reduce((sum, balance) => sum + balance, 0n);
  }

  async recorded(): Promise<readonly RecordedEntry[]> {
    const found = await this.#db
      .collection<ChainTransactionDocument>("chain_transactions")
      .find({ nonce: { $gte: 0 } }, { projection: { nonce: 1, hash: 1, replacedBy: 1 } })
      .sort({ nonce: 1 })
      .toArray();
    return found.map(({ _id, hash, nonce, replacedBy }) => {
      if (nonce === null || !isHex(hash)) throw new Error(`${_id} has a nonce and no hash`);
      return { purpose: _id, nonce, hash, isReplaced: replacedBy !== null };
    });
  }

  async nonce(): Promise<number> {
    return this.#chain.getTransactionCount({ address: await this.#key() });
  }

  /** The service's key, as the wallets that it spends from have it. */
  async #key(): Promise<Address> {
    const agent = await this.#db.collection<AgentDocument>("agents").findOne({ wallet: { $ne: null } });
    return addressOf(agent?.wallet?.spender ?? "");
  }

  async #withoutReceipt(recorded: readonly RecordedEntry[]): Promise<readonly Hash[]> {
    const missing: Hash[] = [];
    for (let at = 0; at < recorded.length; at += BATCH) {
      const hashes = recorded.slice(at, at + BATCH).map(({ hash }) => hash);
      const found = await Promise.all(hashes.map((hash) => this.#hasReceipt(hash)));
      missing.push(...hashes.filter((_hash, index) => found[index] === false));
    }
    return missing;
  }

  async #hasReceipt(hash: Hash): Promise<boolean> {
    try {
      await this.#chain.getTransactionReceipt({ hash });
      return true;
    } catch (error) {
      if (error instanceof TransactionReceiptNotFoundError) return false;
      throw error;
    }
  }
}
