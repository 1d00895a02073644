import { createHash, type KeyObject } from "node:crypto";
import { Binary, type Collection, type Document } from "mongodb";
import { readLogo, type LogoType } from "../contract/logo.ts";
import { isDuplicateKey } from "../lib/duplicate-key.ts";
import { hmacSha256 } from "../secrets/keyed-macs.ts";

/** A tile's image, stored apart from the records that show it. Immutable: other bytes have another id. */
export interface LogoDocument extends Document {
  /** Last part of the image's link: an HMAC of organization, type and the SHA-256 of the bytes. */
  _id: string;
  organizationId: string;
  type: LogoType;
  bytes: Binary;
  createdAt: Date;
}

export interface LogosDependencies {
  readonly collection: Collection<LogoDocument>;
  /** Makes links unguessable, even to an organization that has the same image. */
  readonly key: KeyObject;
  readonly baseUrl: string;
  readonly clock: () => Date;
}

export interface LogoImage {
  readonly type: LogoType;
  readonly bytes: Uint8Array;
}

/** Path that logos are served under. Outside the API, since an `<img>` sends no credentials. */
export const LOGO_PATH = "/logos";

/**
 * Logos of projects and teams, received as data URLs and shown as links. The holder of a link sees the image; only a
 * caller who may read the record gets the link.
 */
export class Logos {
  readonly #dependencies: LogosDependencies;

  constructor(dependencies: LogosDependencies) {
    this.#dependencies = dependencies;
  }

  link(logoHash: string | null): string | null {
    return logoHash === null ? null : `${this.#dependencies.baseUrl}${LOGO_PATH}/${logoHash}`;
  }

  /** Stores an image that the contract allows, once per organization, and returns the hash that names it in records. */
  async keep(organizationId: string, dataUrl: string): Promise<string> {
    const { clock, collection, key } = this.#dependencies;
    const logo = readLogo(dataUrl);
    if ("problem" in logo) throw new Error("the logo violates the contract");
    const { bytes, type } = logo;
    const sha256 = createHash("sha256").update(bytes).digest("hex");
    const _id = hmacSha256(key, `${organizationId}/${type}/${sha256}`);
    const document = { organizationId, type, bytes: new Binary(bytes), createdAt: clock() };
    try {
      await collection.updateOne({ _id }, { $setOnInsert: document }, { upsert: true });
    } catch (error) {
      // A concurrent call stored the same image.
      if (!isDuplicateKey(error)) throw error;
    }
    return _id;
  }

  async find(name: string): Promise<LogoImage | null> {
    const found = await this.#dependencies.collection.findOne({ _id: name });
    return found === null ? null : { type: found.type, bytes: found.bytes.value() };
  }
}
