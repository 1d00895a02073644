import { randomBytes } from "node:crypto";
import { mkdir } from "node:fs/promises";
import { join } from "node:path";
import { clearDrafts, destroyFile, errnoOf, obtainFile, readIfThere } from "../../lib/durable-files.ts";
import type { Unavailable } from "../../lib/unavailable.ts";

/**
 * Keys that seal agents' first keys while these may be delivered again. Stored outside of MongoDB, one per agent, and
 * destroyed when the agent's window ends. MongoDB retains old data in its oplog and in backups longer than any window;
 * without this key that data is noise.
 */
export interface DeliveryKeys {
  /** Returns the agent's key, created by the first call; later calls, by any process, return the same. */
  obtain(agentId: string): Promise<Buffer>;
  /** Returns null if the key was never created or is destroyed. */
  read(agentId: string): Promise<Buffer | null>;
  /** Destroys the key. May be repeated. */
  destroy(agentId: string): Promise<void>;
}

const SIZE_BYTES = 32;
const OWNER_ONLY_FOLDER = 0o700;

const UUID = /^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$/;

/** The folder can't be accessed at the moment; whether a key exists is unknown. */
export class DeliveryKeysUnreachable extends Error implements Unavailable {
  override readonly name = "DeliveryKeysUnreachable";
  readonly isUnavailable = true;
}

/** Keys in files, in a folder of the single process that is server and worker. Overwritten when destroyed. */
export class DeliveryKeyFiles implements DeliveryKeys {
  readonly #folder: string;

  private constructor(folder: string) {
    this.#folder = folder;
  }

  static async in(folder: string): Promise<DeliveryKeyFiles> {
    await mkdir(folder, { recursive: true, mode: OWNER_ONLY_FOLDER });
    await clearDrafts(folder);
    return new DeliveryKeyFiles(folder);
  }

  obtain(agentId: string): Promise<Buffer> {
    return reaching(() => obtainFile(this.#folder, nameOf(agentId), newKey));
  }

  read(agentId: string): Promise<Buffer | null> {
    return reaching(() => readIfThere(join(this.#folder, nameOf(agentId))));
  }

  /** Also removes drafts left by a kill: at the restart they may have been too recent to be recognized. */
  destroy(agentId: string): Promise<void> {
    return reaching(async () => {
      await destroyFile(this.#folder, nameOf(agentId), SIZE_BYTES);
      await clearDrafts(this.#folder);
    });
  }
}

const newKey = (): Buffer => randomBytes(SIZE_BYTES);

async function reaching<T>(work: () => Promise<T>): Promise<T> {
  try {
    return await work();
  } catch (cause) {
    throw new DeliveryKeysUnreachable(`the folder for key deliveries fails (${errnoOf(cause)})`, { cause });
  }
}

function nameOf(agentId: string): string {
  if (!UUID.test(agentId)) throw new Error("an agent's id is not a UUID");
  return agentId;
}
