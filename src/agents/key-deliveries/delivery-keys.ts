import type { Unavailable } from "../../lib/unavailable.ts";
import { randomBytes } from "node:crypto";
import { mkdir } from "node:fs/promises";
import { join } from "node:path";
import { clearDrafts, destroyFile, errnoOf, obtainFile, readIfThere } from "../../lib/durable-files.ts";

/**
 * Where the keys are stored that seal agents' first keys while they may be delivered again: outside of MongoDB, one for each
 * agent, and gone for good when its window is over. MongoDB keeps what was once written to it, in its log of operations for one,
 * longer than any window; without this key that is noise.
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

/** Names the folder: servers and workers of one database must share it. */
const FOLDER_ID_FILE = "folder-id";

const UUID = /^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$/;

/** The folder can't be used at the moment: nothing is known of any key in it. */
export class DeliveryKeysUnreachable extends Error implements Unavailable {
  override readonly name = "DeliveryKeysUnreachable";
  readonly isUnavailable = true;
}

/**
 * A file each, in a folder that every server and worker of the service sees. That a key is not there counts only where the
 * folder is: on a volume that is away for a while, it is not gone.
 */
export class DeliveryKeyFiles implements DeliveryKeys {
  readonly #folder: string;
  /** Random; made with the folder. */
  readonly folderId: string;

  private constructor(folder: string, folderId: string) {
    this.#folder = folder;
    this.folderId = folderId;
  }

  static async in(folder: string): Promise<DeliveryKeyFiles> {
    await mkdir(folder, { recursive: true, mode: OWNER_ONLY_FOLDER });
    await clearDrafts(folder);
    const folderId = await obtainFile(folder, FOLDER_ID_FILE, () => randomBytes(16).toString("hex"));
    return new DeliveryKeyFiles(folder, folderId.toString("utf8"));
  }

  obtain(agentId: string): Promise<Buffer> {
    return this.#reaching(() => obtainFile(this.#folder, nameOf(agentId), () => randomBytes(SIZE_BYTES)));
  }

  read(agentId: string): Promise<Buffer | null> {
    return this.#reaching(() => readIfThere(join(this.#folder, nameOf(agentId))));
  }

  /** Drafts that a kill left go with it: at the start that followed the kill they may have been too recent to be recognized as such. */
  destroy(agentId: string): Promise<void> {
    return this.#reaching(async () => {
      await destroyFile(this.#folder, nameOf(agentId), SIZE_BYTES);
      await clearDrafts(this.#folder);
    });
  }

  async #reaching<T>(work: () => Promise<T>): Promise<T> {
    try {
      const folderId = await readIfThere(join(this.#folder, FOLDER_ID_FILE));
      if (folderId?.toString("utf8") === this.folderId) return await work();
    } catch (cause) {
      throw new DeliveryKeysUnreachable(`the folder for key deliveries fails (${errnoOf(cause)})`, { cause });
    }
    throw new DeliveryKeysUnreachable("the folder for key deliveries is not there");
  }
}

function nameOf(agentId: string): string {
  if (!UUID.test(agentId)) throw new Error("an agent's id is not as it should be");
  return agentId;
}
