import {
  createCipheriv,
  createDecipheriv,
  createHmac,
  type KeyObject,
  randomBytes,
  timingSafeEqual,
} from "node:crypto";
import { gunzipSync, gzipSync } from "node:zlib";
import type { Payload, PayloadCodec, SerializationContext } from "@temporalio/common";
import proto from "@temporalio/proto";
import type { PayloadRefusal, RefusedPayload } from "../messages/envelope.ts";
import type { PayloadKey, PayloadKeys } from "./payload-keys.ts";

/** Called with a refused payload's place and the reason. */
export type OnRefused = (place: string | null, refused: PayloadRefusal) => void;

export interface PayloadCodecOptions {
  readonly keys: PayloadKeys;
  /** Whether payloads are encrypted; otherwise they are readable in Temporal, but authenticated nevertheless. */
  readonly isEncrypted: boolean;
  readonly onRefused: OnRefused;
}

type OpenedPayload =
  { readonly ok: true; readonly payload: Payload } | { readonly ok: false; readonly refused: PayloadRefusal };

const ENCODING = "encoding";
const ENCRYPTED = "binary/encrypted";
const JSON_PLAIN = "json/plain";
const GZIP = "binary/gzip+json";

/** Metadata of this codec: the key's id, the payload's intended place, and its MAC if it is not encrypted. */
const KEY_ID = "encryption-key-id";
const PLACE = "place";
const MAC = "mac";

const VERSION = "temporal-payload/1";
const CIPHER = "aes-256-gcm";
const NONCE_SIZE_BYTES = 12;
const TAG_SIZE_BYTES = 16;

/** Size above which JSON is compressed: batches of payments, and a ledger's state carried over to its next run. */
const COMPRESSED_ABOVE_BYTES = 64 * 1024;
/** Prefers speed to size: compression dominates the cost of an update with many payments. */
const GZIP_LEVEL = 1;

/** A protobufjs message without data inherits an empty array, which is not a typed one. */
const dataOf = ({ data }: Payload): Uint8Array =>
  data instanceof Uint8Array ? data : Buffer.from(data ?? []);

const bytes = (text: string): Buffer => Buffer.from(text, "utf8");
const JSON_PLAIN_METADATA = { [ENCODING]: bytes(JSON_PLAIN) };
const GZIP_METADATA = { [ENCODING]: bytes(GZIP) };

/**
 * Seals every payload given to Temporal: AES-256-GCM over the whole payload or, unencrypted, an HMAC-SHA-256 over data
 * and metadata. Both are bound to the payload's workflow or activity. Opens either kind; a payload that does not open
 * becomes a `RefusedPayload`.
 */
export class SealingCodec implements PayloadCodec {
  readonly #options: PayloadCodecOptions;

  constructor(options: PayloadCodecOptions) {
    this.#options = options;
  }

  encode(payloads: Payload[], context?: SerializationContext): Promise<Payload[]> {
    const place = placeOf(context) ?? "";
    return Promise.resolve(payloads.map((payload) => this.seal(payload, place)));
  }

  decode(payloads: Payload[], context?: SerializationContext): Promise<Payload[]> {
    const place = placeOf(context);
    return Promise.resolve(
      payloads.map((payload) => {
        const opened = this.open(payload, place);
        if (opened.ok) return opened.payload;
        this.#options.onRefused(place, opened.refused);
        return refusedPayload({ refused: opened.refused });
      }),
    );
  }

  seal(payload: Payload, place: string): Payload {
    const { isEncrypted, keys } = this.#options;
    return (isEncrypted ? encrypted : authenticated)(compressed(payload), place, keys.current);
  }

  /** `place` is the required place; null accepts any. */
  open(payload: Payload, place: string | null): OpenedPayload {
    const keyId = metadataOf(payload, KEY_ID);
    const sealedFor = metadataOf(payload, PLACE);
    if (keyId === null || sealedFor === null) return { ok: false, refused: "unauthenticated" };
    const key = this.#options.keys.keyFor(keyId);
    if (key === null) return { ok: false, refused: "unknown_key" };
    const opened =
      metadataOf(payload, ENCODING) === ENCRYPTED
        ? decrypted(payload, sealedFor, key)
        : verified(payload, sealedFor, key);
    if (opened === null) return { ok: false, refused: "altered" };
    if (place !== null && place !== sealedFor) return { ok: false, refused: "misplaced" };
    return { ok: true, payload: expanded(opened) };
  }
}

/** Returns the place of a payload; null if the SDK does not say. Workflow ids are never reused for different things. */
function placeOf(context: SerializationContext | undefined): string | null {
  if (context === undefined) return null;
  const workflowId = context.workflowId ?? "";
  return context.type === "workflow" ? workflowId : `${workflowId} activity ${context.activityId ?? ""}`;
}

function metadataOf({ metadata }: Payload, name: string): string | null {
  const value = metadata?.[name];
  return value === undefined || value === null ? null : Buffer.from(value).toString("utf8");
}

/** Returns a separate key per place: random nonces under a single key would repeat after some billion payloads. */
const sealingKey = ({ sealing }: PayloadKey, place: string): Buffer =>
  createHmac("sha256", sealing)
    .update(JSON.stringify([VERSION, place]))
    .digest();

function encrypted(payload: Payload, place: string, key: PayloadKey): Payload {
  const nonce = randomBytes(NONCE_SIZE_BYTES);
  const cipher = createCipheriv(CIPHER, sealingKey(key, place), nonce, { authTagLength: TAG_SIZE_BYTES });
  const plain = proto.temporal.api.common.v1.Payload.encode(payload).finish();
  const data = Buffer.concat([nonce, cipher.update(plain), cipher.final(), cipher.getAuthTag()]);
  return { metadata: { [ENCODING]: bytes(ENCRYPTED), [KEY_ID]: bytes(key.id), [PLACE]: bytes(place) }, data };
}

function decrypted(payload: Payload, place: string, key: PayloadKey): Payload | null {
  const sealed = dataOf(payload);
  if (sealed.byteLength < NONCE_SIZE_BYTES + TAG_SIZE_BYTES) return null;
  const nonce = sealed.subarray(0, NONCE_SIZE_BYTES);
  const decipher = createDecipheriv(CIPHER, sealingKey(key, place), nonce, { authTagLength: TAG_SIZE_BYTES });
  decipher.setAuthTag(sealed.subarray(-TAG_SIZE_BYTES));
  try {
    const opened = [decipher.update(sealed.subarray(NONCE_SIZE_BYTES, -TAG_SIZE_BYTES)), decipher.final()];
    const { data: plain, metadata } = proto.temporal.api.common.v1.Payload.decode(Buffer.concat(opened));
    return { data: plain, metadata };
  } catch {
    return null;
  }
}

function authenticated(payload: Payload, place: string, key: PayloadKey): Payload {
  const mac = macOf(payload, place, key.authenticating);
  return {
    metadata: { ...payload.metadata, [KEY_ID]: bytes(key.id), [PLACE]: bytes(place), [MAC]: mac },
    data: dataOf(payload),
  };
}

function verified(payload: Payload, place: string, key: PayloadKey): Payload | null {
  const { [KEY_ID]: _keyId, [PLACE]: _place, [MAC]: given, ...metadata } = payload.metadata ?? {};
  const plain = { metadata, data: dataOf(payload) };
  const made = macOf(plain, place, key.authenticating);
  return given?.byteLength === made.byteLength && timingSafeEqual(given, made) ? plain : null;
}

function macOf(payload: Payload, place: string, key: KeyObject): Buffer {
  const facts = Object.entries(payload.metadata ?? {})
    .map(([name, value]) => [name, Buffer.from(value).toString("base64")])
    .toSorted(([left = ""], [right = ""]) => (left < right ? -1 : 1));
  const hmac = createHmac("sha256", key);
  // JSON contains no line end, so everything after the first one is the data.
  hmac.update(`${JSON.stringify([VERSION, place, facts])}\n`);
  return hmac.update(dataOf(payload)).digest();
}

function compressed(payload: Payload): Payload {
  const data = dataOf(payload);
  const isLarge = data.byteLength > COMPRESSED_ABOVE_BYTES;
  if (!isLarge || metadataOf(payload, ENCODING) !== JSON_PLAIN) return payload;
  return { metadata: GZIP_METADATA, data: gzipSync(data, { level: GZIP_LEVEL }) };
}

function expanded(payload: Payload): Payload {
  if (metadataOf(payload, ENCODING) !== GZIP) return payload;
  return { metadata: JSON_PLAIN_METADATA, data: gunzipSync(dataOf(payload)) };
}

const refusedPayload = (refused: RefusedPayload): Payload => ({
  metadata: JSON_PLAIN_METADATA,
  data: bytes(JSON.stringify(refused)),
});
