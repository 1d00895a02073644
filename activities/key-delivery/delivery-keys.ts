import { randomBytes } from "node:crypto";
import { link, mkdir, open, readFile, rm } from "node:fs/promises";
import { join } from "node:path";

/**
 * Where the keys lie that seal agents' first keys while they may be delivered again (decisions.md section 3): outside of
 * MongoDB, one for each agent, and gone for good when its window is over. MongoDB keeps what was once written to it, in its
 * log of operations for one, longer than any window; without this key that is noise.
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
const OWNER_ONLY = 0o600;
const OWNER_ONLY_FOLDER = 0o700;

/** Names the folder: servers and workers of one database must share it. */
const FOLDER_ID_FILE = "folder-id";

const UUID = /^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$/;

/** A file each, in a folder that every server and worker of the service sees. */
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
    const folderId = await obtain(folder, FOLDER_ID_FILE, () => randomBytes(16).toString("hex"));
    return new DeliveryKeyFiles(folder, folderId.toString("utf8"));
  }

  obtain(agentId: string): Promise<Buffer> {
    return obtain(this.#folder, nameOf(agentId), () => randomBytes(SIZE_BYTES));
  }

  read(agentId: string): Promise<Buffer | null> {
    return readIfThere(join(this.#folder, nameOf(agentId)));
  }

  async destroy(agentId: string): Promise<void> {
    const path = join(this.#folder, nameOf(agentId));
    try {
      // Over what is there: on most disks the bytes would outlive the name.
      await writeDurably(path, "r+", Buffer.alloc(SIZE_BYTES));
    } catch (error) {
      if (isErrno(error, "ENOENT")) return;
      throw error;
    }
    await rm(path, { force: true });
    await syncFolder(this.#folder);
  }
}

function nameOf(agentId: string): string {
  if (!UUID.test(agentId)) throw new Error("an agent's id is not as it should be");
  return agentId;
}

/** Written whole under another name and linked into place: of several who make it at once, all get the first one's. */
async function obtain(folder: string, name: string, make: () => Buffer | string): Promise<Buffer> {
  const path = join(folder, name);
  const there = await readIfThere(path);
  if (there !== null) return there;
  const draft = join(folder, `.${randomBytes(8).toString("hex")}`);
  const made = Buffer.from(make());
  try {
    await writeDurably(draft, "wx", made);
    await link(draft, path);
    await syncFolder(folder);
    return made;
  } catch (error) {
    if (!isErrno(error, "EEXIST")) throw error;
    return await readFile(path);
  } finally {
    await rm(draft, { force: true });
  }
}

async function readIfThere(path: string): Promise<Buffer | null> {
  try {
    return await readFile(path);
  } catch (error) {
    if (isErrno(error, "ENOENT")) return null;
    throw error;
  }
}

async function writeDurably(path: string, flag: "wx" | "r+", bytes: Buffer): Promise<void> {
  const file = await open(path, flag, OWNER_ONLY);
  try {
    await file.write(bytes, 0, bytes.length, 0);
    await file.sync();
  } finally {
    await file.close();
  }
}

/** Makes a new or a removed name survive a power cut. */
async function syncFolder(path: string): Promise<void> {
  const folder = await open(path, "r");
  try {
    await folder.sync();
  } finally {
    await folder.close();
  }
}

const isErrno = (error: unknown, code: string): boolean =>
  error instanceof Error && "code" in error && error.code === code;
