import { type RecordedRoot, rootData } from "../../src/chain/audit-roots.ts";
import { caip2Of } from "../../src/chain/config.ts";
import { ChainRpc, ChainUnreachable, type FoundTransaction, WrongChain } from "../../src/chain/rpc.ts";
import type { AnchorTransaction } from "../../src/domain/audit/anchor.ts";
import type { ChainSettings } from "../chain.ts";

/** The chain's answers about the roots that the anchor file claims are on the chain. */
export interface OnChain {
  readonly confirmed: number;
  /** Transactions not mined, or on a chain other than the configured one. */
  readonly unseen: number;
  /** Transactions with other content or from another sender. */
  readonly wrong: readonly string[];
  readonly reachable: boolean;
}

const READ_AT_ONCE = 50;

/** Looks up every transaction named in the file, if a chain is configured and answers. */
export async function rootsOnChain(
  chain: ChainSettings | null,
  transactions: readonly AnchorTransaction[],
  recorded: readonly RecordedRoot[],
): Promise<OnChain> {
  const found = { confirmed: 0, unseen: 0, wrong: [] as string[] };
  if (chain === null) return { ...found, unseen: transactions.length, reachable: false };
  const rpc = new ChainRpc(chain.config);
  try {
    await rpc.check();
    const reading = {
      rpc,
      chain: caip2Of(await rpc.answer(rpc.client.getChainId())),
      // The service's key may have changed since. The outbox has the addresses of earlier keys.
      own: new Set([chain.signer.address, ...recorded.map(({ from }) => from)].map(lowered)),
      hashesOf: hashesByRoot(recorded),
    };
    for (let from = 0; from < transactions.length; from += READ_AT_ONCE) {
      const batch = transactions.slice(from, from + READ_AT_ONCE);
      const answers = await Promise.all(batch.map((one) => rootOn(reading, one)));
      batch.forEach(({ hash }, index) => {
        const answer = answers[index];
        if (answer === "confirmed") found.confirmed += 1;
        else if (answer === "wrong") found.wrong.push(hash);
        else found.unseen += 1;
      });
    }
    return { ...found, reachable: true };
  } catch (error) {
    if (!(error instanceof ChainUnreachable || error instanceof WrongChain)) throw error;
    return { ...found, unseen: transactions.length - found.confirmed - found.wrong.length, reachable: false };
  }
}

interface Reading {
  readonly rpc: ChainRpc;
  readonly chain: string;
  /** Addresses of the service's keys. */
  readonly own: ReadonlySet<string>;
  /**
   * Replacement transactions of a root, signed since its line was written: with a higher fee, or under another nonce.
   */
  readonly hashesOf: ReadonlyMap<string, readonly string[]>;
}

function hashesByRoot(recorded: readonly RecordedRoot[]): ReadonlyMap<string, readonly string[]> {
  const byRoot = new Map<string, readonly string[]>();
  for (const { hashes, root } of recorded) byRoot.set(root, [...(byRoot.get(root) ?? []), ...hashes]);
  return byRoot;
}

async function rootOn(reading: Reading, line: AnchorTransaction): Promise<"confirmed" | "unseen" | "wrong"> {
  if (line.chain !== reading.chain) return "unseen";
  const named = await rootIn(reading, line, line.hash);
  if (named !== "unseen") return named;
  for (const hash of reading.hashesOf.get(line.root) ?? []) {
    // A further transaction found in the records counts only if it contains the root.
    if ((await rootIn(reading, line, hash)) === "confirmed") return "confirmed";
  }
  return "unseen";
}

async function rootIn(
  { own, rpc }: Reading,
  line: AnchorTransaction,
  hash: string,
): Promise<"confirmed" | "unseen" | "wrong"> {
  const transaction = await rpc.transaction(asHash(hash));
  if (transaction === null || transaction.blockNumber === null) return "unseen";
  return isOwn(transaction, line, own) && transaction.data === rootData(line.root) ? "confirmed" : "wrong";
}

/**
 * Whether a transaction is from the service's key to itself. A sealed line is sufficient evidence of whose key it was.
 */
function isOwn({ from, to }: FoundTransaction, line: AnchorTransaction, own: Reading["own"]): boolean {
  const sender = lowered(from);
  if (lowered(line.from) !== sender || lowered(to ?? "") !== sender) return false;
  return line.version === 2 || own.has(sender);
}

const lowered = (address: string): string => address.toLowerCase();
const asHash = (hash: string): `0x${string}` => `0x${hash.slice(2)}`;
