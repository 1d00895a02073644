import type { Db } from "mongodb";
import { type Address, keccak256, toBytes } from "viem";
import type { DepositRecord } from "../store/event-records.ts";
import type { Clock } from "../payments/ports.ts";
import { caip2Of, type ChainConfig } from "./config.ts";
import { type Checkpoint, type DepositCursor, DepositCursors } from "./deposit-cursor.ts";
import { type ChainRpc, ChainUnreachable } from "./rpc.ts";
import { type Transfer, transfersTo } from "./transfers.ts";
import { centsOf } from "./units.ts";

const BLOCKS_PER_STEP_MAX = 500;
/** Hex digits of the hash in a deposit's id. */
const ID_HEX_DIGITS = 32;

/** Addresses whose deposits are watched. */
export interface Recipients {
  /** Distinguishes the cursor from those of other recipients; "" for treasuries. */
  readonly cursorName: "" | "/wallets";
  /** Returns the owners' ids by address. */
  all(): Promise<ReadonlyMap<Address, string>>;
  /** Publishes a deposit. Idempotent by the record's id. */
  publish(ownerId: string, from: Address, deposit: DepositRecord): Promise<void>;
}

export interface DepositWatchDependencies {
  readonly db: Db;
  readonly config: ChainConfig;
  readonly rpc: ChainRpc;
  readonly recipients: Recipients;
  readonly clock: Clock;
  /** Start of the first search. A test chain is short, and may have been reset. */
  readonly beginsAt: "the first block" | "the newest final block";
}

interface Deposit {
  readonly ownerId: string;
  readonly from: Address;
  readonly record: DepositRecord;
}

/**
 * Publishes each deposit to its recipients once it has its confirmations. Searches from a cursor up to the newest final
 * block, writes the events, then moves the cursor. A repetition, whether after a crash, by several processes or after a
 * reorganization, writes the same events under the same ids, which are derived from the transactions.
 * A recipient recorded while the cursor is far ahead has missed nothing: it is recorded before its address is disclosed
 * and after the cursor has begun (`begin`), so deposits to it are in later blocks. Hence the recipients are read after
 * the newest block is known, never before.
 */
export class DepositWatch {
  readonly #dependencies: DepositWatchDependencies;
  readonly #cursors: DepositCursors;
  readonly #id: string;
  #blocksPerStep = BLOCKS_PER_STEP_MAX;
  #hasBegun = false;
  /** Newest final block as of the last look; null while there may be blocks to read. */
  #reached: Checkpoint | null = null;

  constructor(dependencies: DepositWatchDependencies) {
    const { db, config, recipients } = dependencies;
    this.#dependencies = dependencies;
    this.#cursors = new DepositCursors(db);
    this.#id = `${caip2Of(config.chainId)}/${config.token}${recipients.cursorName}`;
  }

  /** Ensures that no later deposit is missed. May need one call to the chain. */
  async begin(): Promise<void> {
    if (this.#hasBegun) return;
    await this.#cursor();
    this.#hasBegun = true;
  }

  /**
   * Searches once; `isBehind` means that more blocks can be read now. If the chain or the database does not answer,
   * throws without having moved the cursor.
   */
  async step(): Promise<{ readonly isBehind: boolean }> {
    const { rpc } = this.#dependencies;
    await rpc.check();
    if (this.#reached !== null && (await this.#isNewest(this.#reached))) return { isBehind: false };
    this.#reached = null;
    const cursor = await this.#cursor();
    const final = await this.#newestFinalBlock();
    if (!(await this.#isStillThere(cursor))) {
      await this.#goBack(cursor);
      return { isBehind: true };
    }
    if (final <= cursor.block) {
      this.#reached = cursor;
      return { isBehind: false };
    }
    const to = Math.min(final, cursor.block + this.#blocksPerStep);
    const hash = await this.#readTransfers(cursor, to);
    if (hash === null) return { isBehind: true };
    await this.#cursors.advance(cursor, { block: to, hash });
    return { isBehind: to < final };
  }

  #cursor(): Promise<DepositCursor> {
    return this.#cursors.read(this.#id, async () => {
      if (this.#dependencies.beginsAt === "the first block") return -1;
      await this.#dependencies.rpc.check();
      return Math.max(-1, await this.#newestFinalBlock());
    });
  }

  /** Below zero if there is no final block. */
  async #newestFinalBlock(): Promise<number> {
    const { config, rpc } = this.#dependencies;
    const { blockNumber } = await rpc.head();
    return Number(blockNumber) - (config.confirmations - 1);
  }

  /** Whether the chain has the block and none after it is final. The calls leave in one tick, so as one request. */
  async #isNewest(checkpoint: Checkpoint): Promise<boolean> {
    const [final, isThere] = await Promise.all([this.#newestFinalBlock(), this.#isStillThere(checkpoint)]);
    return isThere && final <= checkpoint.block;
  }

  /** Whether the chain as it is now has this block. A block's hash covers all before it, too. */
  async #isStillThere({ block, hash }: Checkpoint): Promise<boolean> {
    return hash === null || (await this.#dependencies.rpc.blockHash(BigInt(block))) === hash;
  }

  /** Resets the cursor after a reorganization deeper than the confirmations, or lost blocks of a killed chain. */
  async #goBack(cursor: DepositCursor): Promise<void> {
    const areThere = await Promise.all(
      cursor.checkpoints.map((checkpoint) => this.#isStillThere(checkpoint)),
    );
    const newest = cursor.checkpoints.findLast((_checkpoint, at) => areThere[at] === true);
    await this.#cursors.goBack(cursor, newest ?? null);
  }

  /**
   * Writes the events of all deposits from the cursor up to a block; returns that block's hash. If the chain changed
   * meanwhile, writes nothing and returns null.
   */
  async #readTransfers(cursor: DepositCursor, to: number): Promise<string | null> {
    const { recipients, rpc } = this.#dependencies;
    const hash = await rpc.blockHash(BigInt(to));
    const owners = await recipients.all();
    // Sent in one tick, and so in one request: the node that returns the transfers vouches for both ends.
    const [transfers, isStillThere, hashAfter] = await Promise.all([
      this.#transfers(cursor, to, [...owners.keys()]),
      this.#isStillThere(cursor),
      rpc.blockHash(BigInt(to)),
    ]);
    if (hash === null || hashAfter !== hash || !isStillThere) return null;
    const deposits = this.#depositsOf(transfers, owners, this.#dependencies.clock());
    await Promise.all(deposits.map(({ from, ownerId, record }) => recipients.publish(ownerId, from, record)));
    return hash;
  }

  /** Reads transfers. Nodes limit the size of one answer, so a failure reduces the number of blocks per request. */
  async #transfers(cursor: DepositCursor, to: number, recipients: readonly Address[]) {
    const { config, rpc } = this.#dependencies;
    const fromBlock = BigInt(cursor.block + 1);
    try {
      const filter = { token: config.token, recipients, fromBlock, toBlock: BigInt(to) };
      const found = await transfersTo(rpc, filter);
      this.#blocksPerStep = Math.min(BLOCKS_PER_STEP_MAX, this.#blocksPerStep * 2);
      return found;
    } catch (error) {
      if (error instanceof ChainUnreachable) {
        this.#blocksPerStep = Math.max(1, Math.floor(this.#blocksPerStep / 2));
      }
      throw error;
    }
  }

  #depositsOf(
    transfers: readonly Transfer[],
    owners: ReadonlyMap<Address, string>,
    at: Date,
  ): readonly Deposit[] {
    const { chainId, tokenDecimals } = this.#dependencies.config;
    const counts = new Map<string, number>();
    const deposits: Deposit[] = [];
    for (const { from, to, transactionHash, units } of transfers) {
      // Counted among the transfers of the transaction to the same address. The count does not depend on its block,
      // its place there, or which other addresses are known.
      const inTransaction = `${String(chainId)}/${transactionHash}/${to}`;
      const index = counts.get(inTransaction) ?? 0;
      counts.set(inTransaction, index + 1);
      const ownerId = owners.get(to);
      const amountCents = centsOf(units, tokenDecimals);
      // Less than a cent cannot be spent, and a transfer to itself brings nothing.
      if (ownerId === undefined || amountCents === 0 || from === to) continue;
      const record: DepositRecord = {
        id: depositId(`${inTransaction}/${String(index)}`),
        amountCents,
        currency: "USD",
        address: to,
        onChainTxHash: transactionHash,
        chainCaip2: caip2Of(chainId),
        settledAt: at,
      };
      deposits.push({ ownerId, from, record });
    }
    return deposits;
  }
}

const depositId = (position: string): string =>
  `dep_${keccak256(toBytes(position)).slice("0x".length, "0x".length + ID_HEX_DIGITS)}`;
