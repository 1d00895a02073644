import { createHash, generateKeyPairSync, type KeyObject, randomBytes, sign as signBytes } from "node:crypto";
import type {
  AuthenticationResponse,
  CreationOptions,
  RegistrationResponse,
  RequestOptions,
} from "../../src/contract/webauthn.ts";
import { type Cbor, encodeCbor } from "./cbor.ts";
import { attestationCertificate } from "./certificate.ts";

/** What a browser at this origin would let an authenticator do; a test may have either of them lie. */
export interface Ceremony {
  readonly origin: string;
  readonly rpId: string;
  /** The challenge that is signed instead of the options' own. */
  readonly challenge: string;
  /** Of the client data: `webauthn.create` or `webauthn.get` unless told otherwise. */
  readonly type: string;
  readonly crossOrigin: boolean;
  readonly userPresent: boolean;
  readonly userVerified: boolean;
  readonly backupEligible: boolean;
  readonly backedUp: boolean;
  /** The counter to show instead of the next. */
  readonly counter: number;
  /** The handle to answer instead of the one that came with the enrolment; null: none. */
  readonly userHandle: string | null;
  readonly attestation: "none" | "self" | "certificate";
  /** The credential id to make the passkey under instead of a random one. */
  readonly credentialId: string;
  /** The COSE algorithm to claim. */
  readonly algorithm: number;
  /** The COSE key to show instead of the passkey's own. */
  readonly publicKey: ReadonlyMap<number, Cbor>;
}

/** The keys that authenticators make, by their COSE algorithms. */
export type KeyKind = "ES256" | "EdDSA" | "RS256";

interface Credential {
  readonly id: string;
  readonly privateKey: KeyObject;
  readonly userHandle: string;
  counter: number;
}

const ALGORITHMS: Readonly<Record<KeyKind, number>> = { ES256: -7, EdDSA: -8, RS256: -257 };
const FLAGS = { userPresent: 0x01, userVerified: 0x04, backupEligible: 0x08, backedUp: 0x10, attested: 0x40 };
const bytes = (field: string | undefined): Buffer => Buffer.from(field ?? "", "base64url");
const base64url = (data: Uint8Array): string => Buffer.from(data).toString("base64url");
const sha256 = (data: Uint8Array): Buffer => createHash("sha256").update(data).digest();

/**
 * An authenticator with its browser in software: real keys, real authenticator data, attestation objects and
 * signatures, as a platform's passkeys are made and used. It does what it is told; refusing is the service's part.
 */
export class SoftwareAuthenticator {
  readonly #credentials: Credential[] = [];
  readonly #origin: string;
  readonly #counts: boolean;
  readonly #keys: KeyKind;

  /** One that counts its signatures, as security keys do; synced passkeys say 0 for ever. */
  constructor(
    origin: string,
    { counts = true, keys = "ES256" }: { readonly counts?: boolean; readonly keys?: KeyKind } = {},
  ) {
    this.#origin = origin;
    this.#counts = counts;
    this.#keys = keys;
  }

  /** `navigator.credentials.create()` and `toJSON()`. */
  create(options: CreationOptions, told: Partial<Ceremony> = {}): RegistrationResponse {
    const { key, privateKey } = newKey(this.#keys, told.algorithm);
    const id = told.credentialId ?? base64url(randomBytes(32));
    const credential = { id, privateKey, userHandle: options.user.id, counter: 0 };
    this.#credentials.push(credential);
    const rawId = Buffer.from(id, "base64url");
    const length = Buffer.from([rawId.length >> 8, rawId.length & 0xff]);
    const attested = Buffer.concat([Buffer.alloc(16), length, rawId, encodeCbor(told.publicKey ?? key)]);
    const authenticatorData = this.#authenticatorData(credential, options.rp.id, told, attested);
    const clientData = this.#clientData("webauthn.create", options.challenge, told);
    const signed = { kind: this.#keys, privateKey, authenticatorData, clientData };
    const attestation = new Map<string, Cbor>([
      ["fmt", (told.attestation ?? "none") === "none" ? "none" : "packed"],
      ["attStmt", statementOf(told.attestation ?? "none", signed)],
      ["authData", authenticatorData],
    ]);
    return {
      id,
      rawId: id,
      type: "public-key",
      authenticatorAttachment: "platform",
      clientExtensionResults: { credProps: { rk: true } },
      response: {
        clientDataJSON: base64url(clientData),
        attestationObject: base64url(encodeCbor(attestation)),
        transports: ["internal", "hybrid"],
      },
    };
  }

  /** `navigator.credentials.get()` and `toJSON()`, by the newest passkey that the options allow. */
  get(options: RequestOptions, told: Partial<Ceremony> = {}): AuthenticationResponse {
    const allowed = new Set(options.allowCredentials.map(({ id }) => id));
    const credential = this.#credentials.findLast(({ id }) => allowed.size === 0 || allowed.has(id));
    if (credential === undefined) throw new Error("The authenticator has none of the passkeys asked for.");
    const authenticatorData = this.#authenticatorData(credential, options.rpId, told);
    const clientData = this.#clientData("webauthn.get", options.challenge, told);
    const userHandle = told.userHandle === undefined ? credential.userHandle : told.userHandle;
    return {
      id: credential.id,
      rawId: credential.id,
      type: "public-key",
      authenticatorAttachment: "platform",
      clientExtensionResults: {},
      response: {
        clientDataJSON: base64url(clientData),
        authenticatorData: base64url(authenticatorData),
        signature: base64url(sign(credential.privateKey, authenticatorData, clientData)),
        ...(userHandle === null ? {} : { userHandle }),
      },
    };
  }

  #authenticatorData(
    credential: Credential,
    rpId: string,
    told: Partial<Ceremony>,
    attested: Buffer = Buffer.alloc(0),
  ): Buffer {
    if (this.#counts) credential.counter += 1;
    const flags =
      (told.userPresent === false ? 0 : FLAGS.userPresent) |
      (told.userVerified === false ? 0 : FLAGS.userVerified) |
      (told.backupEligible === true ? FLAGS.backupEligible : 0) |
      (told.backedUp === true ? FLAGS.backedUp : 0) |
      (attested.length > 0 ? FLAGS.attested : 0);
    const counter = Buffer.alloc(4);
    counter.writeUInt32BE(told.counter ?? credential.counter);
    const rpIdHash = sha256(Buffer.from(told.rpId ?? rpId));
    return Buffer.concat([rpIdHash, Buffer.from([flags]), counter, attested]);
  }

  #clientData(type: string, challenge: string, told: Partial<Ceremony>): Buffer {
    const { crossOrigin = false, origin = this.#origin } = told;
    const data = { type: told.type ?? type, challenge: told.challenge ?? challenge, origin, crossOrigin };
    return Buffer.from(JSON.stringify(data));
  }
}

/** EdDSA hashes for itself. */
const sign = (key: KeyObject, authenticatorData: Buffer, clientData: Buffer): Buffer =>
  signBytes(
    key.asymmetricKeyType === "ed25519" ? null : "sha256",
    Buffer.concat([authenticatorData, sha256(clientData)]),
    key,
  );

/** A new key pair, the public half in COSE's terms (RFC 9053). */
function newKey(
  kind: KeyKind,
  algorithm: number = ALGORITHMS[kind],
): { key: Map<number, Cbor>; privateKey: KeyObject } {
  const { privateKey, publicKey } = pairOf(kind);
  const jwk = publicKey.export({ format: "jwk" });
  const parameters: Readonly<Record<KeyKind, readonly (readonly [number, Cbor])[]>> = {
    ES256: [
      [1, 2],
      [3, algorithm],
      [-1, 1],
      [-2, bytes(jwk.x)],
      [-3, bytes(jwk.y)],
    ],
    EdDSA: [
      [1, 1],
      [3, algorithm],
      [-1, 6],
      [-2, bytes(jwk.x)],
    ],
    RS256: [
      [1, 3],
      [3, algorithm],
      [-1, bytes(jwk.n)],
      [-2, bytes(jwk.e)],
    ],
  };
  return { key: new Map(parameters[kind]), privateKey };
}

function pairOf(kind: KeyKind): { readonly privateKey: KeyObject; readonly publicKey: KeyObject } {
  if (kind === "EdDSA") return generateKeyPairSync("ed25519");
  if (kind === "RS256") return generateKeyPairSync("rsa", { modulusLength: 2_048 });
  return generateKeyPairSync("ec", { namedCurve: "P-256" });
}

function statementOf(
  attestation: Ceremony["attestation"],
  { authenticatorData, clientData, kind, privateKey }: Signed,
): Map<string, Cbor> {
  if (attestation === "none") return new Map();
  if (attestation === "self") {
    return new Map<string, Cbor>([
      ["alg", ALGORITHMS[kind]],
      ["sig", sign(privateKey, authenticatorData, clientData)],
    ]);
  }
  const maker = generateKeyPairSync("ec", { namedCurve: "P-256" });
  return new Map<string, Cbor>([
    ["alg", ALGORITHMS.ES256],
    ["sig", sign(maker.privateKey, authenticatorData, clientData)],
    ["x5c", [attestationCertificate(maker)]],
  ]);
}

/** What an attestation signs, and the new passkey itself. */
interface Signed {
  readonly kind: KeyKind;
  readonly privateKey: KeyObject;
  readonly authenticatorData: Buffer;
  readonly clientData: Buffer;
}
