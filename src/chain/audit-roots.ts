import type { Db } from "mongodb";
import { type Address, concatHex, type Hash, type Hex, toHex } from "viem";
import { caip2Of, type ChainConfig } from "./config.ts";
import { COLLECTIONS } from "../store/documents.ts";
import { GAS } from "./contracts.ts";
import { type ChainOutbox, type ChainTransactionDocument, isTransaction, type Recorded } from "./outbox.ts";

/** Prefix of a root transaction's data, which distinguishes it from the key's other transactions. */
const TAG = toHex("audit-log/1:");

/** The transaction that contains a root, as a verifier needs it to find the root on the chain. */
export interface RootTransaction {
  /** CAIP-2 id: `eip155:<chain id>`. */
  readonly chain: string;
  readonly from: Address;
  readonly hash: Hash;
}

export interface RootDependencies {
  readonly outbox: ChainOutbox;
  readonly config: ChainConfig;
  readonly from: Address;
  readonly broadcast: (recorded: Iterable<Recorded>) => Promise<void>;
}

/** Returns the data of the transaction for a root, 32 bytes in hex. */
export const rootData = (root: string): Hex => concatHex([TAG, `0x${root}`]);

/**
 * Records a transaction of the service's key to itself with the root as its data, and broadcasts it; if that fails, the
 * keeper sends it. One per root. Idempotent.
 */
export async function recordRoot(
  { broadcast, from, outbox, config }: RootDependencies,
  root: string,
): Promise<RootTransaction> {
  const purpose = `audit/${root}`;
  const call = {
    kind: "call",
    purpose,
    wallet: null,
    to: from,
    data: rootData(root),
    gas: GAS.anchor,
    isRepeated: true,
  } as const;
  const recorded = (await outbox.record([call])).get(purpose);
  if (recorded === undefined || !isTransaction(recorded)) throw new Error(`${purpose} was not recorded`);
  await broadcast([recorded]);
  return { chain: caip2Of(config.chainId), from, hash: recorded.hash };
}

/** A root recorded for a chain, by whichever server. */
export interface RecordedRoot {
  readonly root: string;
  readonly from: string;
  /** Hashes of all signings, newest last: any of them may have been mined. */
  readonly hashes: readonly string[];
}

export async function recordedRoots(db: Db): Promise<RecordedRoot[]> {
  const recorded = await db
    .collection<ChainTransactionDocument>(COLLECTIONS.chainTransactions, {
      readConcern: { level: "majority" },
    })
    .find({ _id: RECORDED, hash: { $ne: null } }, { projection: { from: 1, hash: 1, raised: 1 } })
    .toArray();
  return recorded.flatMap(({ _id, from, hash, raised }) => {
    const root = RECORDED.exec(_id)?.[1];
    if (root === undefined || hash === null) return [];
    return [{ root, from, hashes: [hash, ...raised.map((signing) => signing.hash)] }];
  });
}

const RECORDED = /^eip155:\d+\/(?:again\/\d+\/)?audit\/([0-9a-f]{64})$/;
