import type { KeyObject } from "node:crypto";
import { extension, nameOf, sequence, signedCertificate } from "./certificates/der.ts";

/** As WebAuthn 8.2.1 wants that of an authenticator's attestation: country, organization, unit, common name. */
const SUBJECT = nameOf({ "06": "AQ", "0a": "Test", "0b": "Authenticator Attestation", "03": "Test" });

/** A certificate of an unknown maker of authenticators, signed by itself, good until 2049. */
export function attestationCertificate(keys: {
  readonly privateKey: KeyObject;
  readonly publicKey: KeyObject;
}): Buffer {
  return signedCertificate(
    {
      number: 1,
      issuer: SUBJECT,
      from: "200101000000Z",
      until: "491231235959Z",
      subject: SUBJECT,
      publicKey: keys.publicKey,
      // It is no authority.
      extensions: [extension("13", true, sequence())],
    },
    keys.privateKey,
  );
}
