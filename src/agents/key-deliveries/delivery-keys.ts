import { randomBytes } from "node:crypto";
import { mkdir } from "node:fs/promises";
import { join } from "node:path";
import { clearDrafts, destroyFile, errnoOf, obtainFile, readIfThere } from "../../lib/durable-files.ts";
import type { Unavailable } from "../../lib/unavailable.ts";

/**
 * Keys that seal agents' first keys while they may be delivered again: outside of MongoDB, one for each agent, and gone for
 * good when its window is over. MongoDB keeps what was once written to it, in its log of operations and in backups, longer
 * than any window; without this key that is noise.
 */
export interface DeliveryKeys {
  /** The agent's, made at the first call; all later ones, by whichever process, give the same. */
  obtain(agentId: string): Promise<Buffer>;
  /** Null: it was never made, or is gone. */
  read(agentId: string): Promise<Buffer | null>;
  /** Destroys it. May be repeated. */
  destroy(agentId: string): Promise<void>;
}

const SIZE_BYTES = 32;
const OWNER_ONLY_FOLDER = 0o700;

const UUID = /^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$/;

/** The folder fails at the moment: nothing is known of any key in it. */
export class DeliveryKeysUnreachable extends Error implements Unavailable {
  override readonly name = "DeliveryKeysUnreachable";
  readonly isUnavailable = true;
}

/** A file each, in a folder of the one process that is server and worker: overwritten when it is destroyed. */
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

  /** Drafts that a kill left go with it: at the start that followed the kill they may have been too recent to be recognized as such. */
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
  if (!UUID.test(agentId)) throw new Error("an agent's id is not as it should be");
  return agentId;
}
