import { hash, randomFillSync } from "node:crypto";
import { monotonicFactory } from "ulid";
import { v7 } from "uuid";

/** Randomness is drawn in pages: a call per character of an id would be its main cost. */
const page = Buffer.alloc(4_096);
let used = page.length;

function random(): number {
  if (used >= page.length) {
    randomFillSync(page);
    used = 0;
  }
  const byte = page.readUInt8(used);
  used += 1;
  return byte / 256;
}

const ulid = monotonicFactory(random);

/** Returns an id that sorts by time. */
export const newId = (
  prefix:
    | "txn"
    | "apr"
    | "akey"
    | "okey"
    | "inv"
    | "pky"
    | "req"
    | "rule"
    | "pay"
    | "whe"
    | "whs"
    | "whr"
    | "dlv"
    | "fnd"
    | "rail",
): string => `${prefix}_${ulid()}`;

export const newUuid = (): string => v7();

/** Returns 128 bits of a SHA-256, short enough that thousands can be kept. */
export const shortHash = (value: string): string =>
  hash("sha256", value, "buffer").subarray(0, 16).toString("base64url");

/** Returns the SHA-256 of a value as JSON, which depends on the order of fields. */
export const contentHash = (value: unknown): string => hash("sha256", JSON.stringify(value), "base64url");

/** Returns the hash of a parsed body, independent of the order of fields. */
export const payloadHash = (payload: unknown): string => shortHash(canonicalJson(payload));

function canonicalJson(value: unknown): string {
  if (Array.isArray(value)) return `[${value.map(canonicalJson).join(",")}]`;
  if (typeof value !== "object" || value === null) return JSON.stringify(value) ?? "null";
  const fields = Object.entries(value).filter(([, field]) => field !== undefined);
  fields.sort(([a], [b]) => (a < b ? -1 : 1));
  return `{${fields.map(([key, field]) => `${JSON.stringify(key)}:${canonicalJson(field)}`).join(",")}}`;
}
