import { mkdir, open, readFile, rename } from "node:fs/promises";
import path from "node:path";
import { z } from "zod";
import { reasonOf } from "./errors.ts";
import { hasErrorCode } from "../lib/error-code.ts";
import type { OnProgress } from "./progress.ts";

/**
 * Number of blocks whose transactions and receipts the local chain keeps; older ones are dropped to keep a dump small.
 * A payment takes about 10 kB of a dump, so this is at most 50 MB and a quarter of a second.
 */
export const BLOCKS_RETAINED = 5_000;

/** Folder of the local chain's state, inside DATA_DIR. */
export const chainFolder = (dataDir: string): string => path.join(dataDir, "chain");

/** File that anvil itself writes on SIGTERM, not atomically: only a complete one is used. */
export const exitStateFile = (folder: string): string => path.join(folder, "state.exit.json");
const snapshotFile = (folder: string): string => path.join(folder, "state.json");
const previousFile = (folder: string): string => path.join(folder, "state.previous.json");

const hexNumber = z
  .string()
  .regex(/^0x[0-9a-f]+$/i)
  .transform(Number);

/** Fields of anvil's state file that show whether the file is complete. The other fields stay as they are. */
const stateSchema = z.object({
  best_block_number: z.int(),
  blocks: z.array(z.looseObject({ header: z.looseObject({ number: hexNumber }) })),
  transactions: z.array(
    z.looseObject({ block_number: z.int(), info: z.looseObject({ from: z.string(), nonce: z.int() }) }),
  ),
  accounts: z.record(z.string(), z.looseObject({ nonce: z.int() })),
});
type ChainState = z.infer<typeof stateSchema>;

/**
 * Returns what is wrong with the blocks, or null if they are complete. anvil refuses to start without its newest block.
 */
function brokenChain({ best_block_number: best, blocks, transactions }: ChainState): string | null {
  const newest = blocks.reduce((highest, { header }) => Math.max(highest, header.number), -1);
  if (newest !== best) return `its newest block is ${String(newest)}, not ${String(best)}`;
  const beyond = transactions.some(({ block_number: number }) => number > best);
  return beyond ? "it has a transaction of a block that is missing" : null;
}

/**
 * Whether accounts show the effect of a missing transaction. anvil reads blocks, transactions and accounts one after
 * another while it goes on mining, so the state that it writes itself may be torn; a dump taken by the service is not.
 */
function isTorn({ accounts, transactions }: ChainState): boolean {
  const nextNonces = new Map<string, number>();
  for (const { info } of transactions) {
    nextNonces.set(info.from, Math.max(nextNonces.get(info.from) ?? 0, info.nonce + 1));
  }
  return [...nextNonces].some(([sender, nonce]) => accounts[sender]?.nonce !== nonce);
}

async function syncFolder(folder: string): Promise<void> {
  const handle = await open(folder, "r");
  try {
    await handle.sync();
  } finally {
    await handle.close();
  }
}

async function writeWhole(file: string, content: Uint8Array | string): Promise<void> {
  const handle = await open(file, "w", 0o600);
  try {
    await handle.writeFile(content);
    await handle.sync();
  } finally {
    await handle.close();
  }
}

/**
 * Makes a complete file the newest state. At every moment the newest state is either `state.json` or the previous file.
 */
async function promote(folder: string, file: string): Promise<void> {
  await rename(snapshotFile(folder), previousFile(folder)).catch((error: unknown) => {
    if (!hasErrorCode(error, "ENOENT")) throw error;
  });
  await rename(file, snapshotFile(folder));
  await syncFolder(folder);
}

/** Saves a dump so that after any crash a reader finds this dump or the previous one, never a partial file. */
export async function saveState(folder: string, state: Uint8Array | string): Promise<void> {
  const temporary = path.join(folder, "state.new.json");
  await writeWhole(temporary, state);
  await promote(folder, temporary);
}

/** Returns why anvil's own reader refuses a file; null if it accepts the file. */
export type Examine = (file: string) => Promise<string | null>;

export interface StateOptions {
  readonly folder: string;
  readonly examine: Examine;
  readonly onProgress: OnProgress;
  /** Number of blocks to which an old state is pruned. */
  readonly blocksRetained?: number;
}

type Inspected =
  | { readonly state: "absent" }
  | { readonly state: "unusable"; readonly reason: string }
  | { readonly state: "usable"; readonly raw: unknown; readonly chain: ChainState };

async function inspect(file: string, examine: Examine): Promise<Inspected> {
  try {
    const raw: unknown = JSON.parse(await readFile(file, "utf8"));
    const chain = stateSchema.parse(raw);
    const reason = brokenChain(chain) ?? (await examine(file));
    return reason === null ? { state: "usable", raw, chain } : { state: "unusable", reason };
  } catch (error) {
    if (hasErrorCode(error, "ENOENT")) return { state: "absent" };
    const reason = error instanceof z.ZodError ? "it is not a state of anvil" : reasonOf(error);
    return { state: "unusable", reason };
  }
}

const listsSchema = z.looseObject({ blocks: z.array(z.unknown()), transactions: z.array(z.unknown()) });

/**
 * Drops old blocks, except the first, and their transactions once there are twice too many: anvil itself never drops a
 * block's header. Accounts and contracts stay unchanged.
 */
async function prune(
  { blocksRetained = BLOCKS_RETAINED, folder }: StateOptions,
  { raw, chain }: { readonly raw: unknown; readonly chain: ChainState },
): Promise<void> {
  if (chain.blocks.length <= 2 * blocksRetained) return;
  const after = chain.best_block_number - blocksRetained;
  const lists = listsSchema.parse(raw);
  const isRetained = (number: number | undefined): boolean => number === 0 || (number ?? 0) > after;
  const retained = {
    ...lists,
    blocks: lists.blocks.filter((_block, index) => isRetained(chain.blocks[index]?.header.number)),
    transactions: lists.transactions.filter((_one, index) =>
      isRetained(chain.transactions[index]?.block_number),
    ),
  };
  await saveState(folder, JSON.stringify(retained));
}

async function quarantine(file: string, reason: string, onProgress: OnProgress): Promise<void> {
  const quarantined = `${file}.unusable`; // one for each name at most
  await rename(file, quarantined);
  onProgress(`anvil: ${file} cannot be used (${reason}); it is renamed to ${path.basename(quarantined)}`);
}

/** Adopts the state that anvil wrote on SIGTERM, which is newer than any snapshot of the same run. */
async function takeExitState({ examine, folder, onProgress }: StateOptions): Promise<void> {
  const file = exitStateFile(folder);
  const found = await inspect(file, examine);
  if (found.state === "absent") return;
  if (found.state === "unusable") await quarantine(file, found.reason, onProgress);
  else if (isTorn(found.chain)) await quarantine(file, "a transaction is missing in it", onProgress);
  else await promote(folder, file);
}

/**
 * Returns the newest state that anvil can load: its exit state, the last snapshot, or the previous one; null for an
 * empty chain. Unusable files are set aside, with a line that says why. Must not be called while anvil runs.
 */
export async function newestState(options: StateOptions): Promise<string | null> {
  const { examine, folder, onProgress } = options;
  await mkdir(folder, { recursive: true, mode: 0o700 });
  await takeExitState(options);
  let lost = false;
  for (const file of [snapshotFile(folder), previousFile(folder)]) {
    const found = await inspect(file, examine);
    if (found.state === "unusable") {
      await quarantine(file, found.reason, onProgress);
      lost = true;
    }
    if (found.state !== "usable") continue;
    if (lost) onProgress(`anvil: the chain goes on with the snapshot before, ${file}`);
    if (file === previousFile(folder)) await restorePrevious(folder);
    await prune(options, found);
    return snapshotFile(folder);
  }
  if (lost) onProgress("anvil: no state is left, the chain starts empty");
  return null;
}

/** Restores the previous state, so that the next snapshot does not replace the only one. */
async function restorePrevious(folder: string): Promise<void> {
  await rename(previousFile(folder), snapshotFile(folder));
  await syncFolder(folder);
}
