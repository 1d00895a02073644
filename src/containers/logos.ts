import { createHash, type KeyObject } from "node:crypto";
import { Binary, type Collection, type Document } from "mongodb";
import { readLogo, type LogoType } from "../contract/logo.ts";
import { isDuplicateKey } from "../lib/duplicate-key.ts";
import { hmacSha256 } from "../secrets/keyed-macs.ts";

/** A tile's image, apart from the records that show it. Never changed: other bytes have another id. */
export interface LogoDocument extends Document {
  /** The last part of its link: an HMAC of organization, type and the SHA-256 of the bytes. */
  _id: string;
  organizationId: string;
  type: LogoType;
  bytes: Binary;
  createdAt: Date;
}

export interface LogosDependencies {
  readonly collection: Collection<LogoDocument>;
  /** Makes links that can't be guessed, also not by who has the same image in another organization. */
  readonly key: KeyObject;
  readonly baseUrl: string;
  readonly clock: () => Date;
}

export interface LogoImage {
  readonly type: LogoType;
  readonly bytes: Uint8Array;
}

/** The path that logos are served under: not the API, since an `<img>` sends no credential. */
export const LOGO_PATH = "/logos";

/**
 * Logos of projects and teams: a data URL in, a link out. A holder of the link sees the image, and only a caller who may read the
 * record gets the link.
 */
export class Logos {
  readonly #dependencies: LogosDependencies;

  constructor(dependencies: LogosDependencies) {
    this.#dependencies = dependencies;
  }

  link(logoHash: string | null): string | null {
    return logoHash === null ? null : `${this.#dependencies.baseUrl}${LOGO_PATH}/${logoHash}`;
  }

  /** Keeps an image that the contract has let in, once however often it comes; the answer names it in records. */
  async keep(organizationId: string, dataUrl: string): Promise<string> {
    const { clock, collection, key } = this.#dependencies;
    const logo = readLogo(dataUrl);
    if ("problem" in logo) throw new Error("a logo that the contract does not allow");
    const { bytes, type } = logo;
    const sha256 = createHash("sha256").update(bytes).digest("hex");
    const _id = hmacSha256(key, `${organizationId}/${type}/${sha256}`);
    const document = { organizationId, type, bytes: new Binary(bytes), createdAt: clock() };
    try {
      await collection.updateOne({ _id }, { $setOnInsert: document }, { upsert: true });
    } catch (error) {
      // Another was keeping the same image at the same moment.
      if (!isDuplicateKey(error)) throw error;
    }
    return _id;
  }

  async find(name: string): Promise<LogoImage | null> {
    const found = await this.#dependencies.collection.findOne({ _id: name });
    return found === null ? null : { type: found.type, bytes: found.bytes.value() };
  }
}
