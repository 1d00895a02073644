import { createPublicKey, type JsonWebKey } from "node:crypto";
import { cose, COSEALG, decodeCredentialPublicKey } from "@simplewebauthn/server/helpers";

/** The algorithms of authenticators, fixed for every server: the library's default depends on the runtime. */
export const ALGORITHMS = [COSEALG.EdDSA, COSEALG.ES256, COSEALG.RS256];

/** NIST's minimum since 2014. */
const RSA_BITS_MIN = 2_048;

type Bytes = Uint8Array<ArrayBuffer>;

/**
 * Whether signatures by a COSE key can ever be verified: its kind fits its algorithm, and its point or modulus is
 * valid. An enrolment without attestation is not signed, so the library accepts any key; but a factor that can't be
 * used must not count as one. Throws for anything that is not a COSE key.
 */
export function isUsableKey(publicKey: Bytes): boolean {
  const jwk = jwkOf(publicKey);
  if (jwk === null) return false;
  // Throws for an invalid key: node checks points and lengths.
  const { asymmetricKeyDetails: details } = createPublicKey({ key: jwk, format: "jwk" });
  return jwk.kty !== "RSA" || (details?.modulusLength ?? 0) >= RSA_BITS_MIN;
}

function jwkOf(publicKey: Bytes): JsonWebKey | null {
  const key = decodeCredentialPublicKey(publicKey);
  const algorithm = key.get(cose.COSEKEYS.alg);
  if (cose.isCOSEPublicKeyEC2(key)) {
    const isP256 = algorithm === COSEALG.ES256 && key.get(cose.COSEKEYS.crv) === cose.COSECRV.P256;
    const [x, y] = [text(key.get(cose.COSEKEYS.x)), text(key.get(cose.COSEKEYS.y))];
    return isP256 ? { kty: "EC", crv: "P-256", x, y } : null;
  }
  if (cose.isCOSEPublicKeyOKP(key)) {
    const isEd25519 = algorithm === COSEALG.EdDSA && key.get(cose.COSEKEYS.crv) === cose.COSECRV.ED25519;
    return isEd25519 ? { kty: "OKP", crv: "Ed25519", x: text(key.get(cose.COSEKEYS.x)) } : null;
  }
  if (!cose.isCOSEPublicKeyRSA(key) || algorithm !== COSEALG.RS256) return null;
  return { kty: "RSA", n: text(key.get(cose.COSEKEYS.n)), e: text(key.get(cose.COSEKEYS.e)) };
}

const text = (bytes: Uint8Array | undefined): string => Buffer.from(bytes ?? []).toString("base64url");
