import { type KeyObject, sign } from "node:crypto";

/** DER by hand (X.690): a tag, a length, and what is in it. */
const der = (tag: number, ...parts: readonly Uint8Array[]): Buffer => {
  const content = Buffer.concat(parts);
  const { length } = content;
  const size = length < 128 ? [length] : length < 256 ? [0x81, length] : [0x82, length >> 8, length & 0xff];
  return Buffer.concat([Buffer.from([tag, ...size]), content]);
};
const sequence = (...parts: readonly Uint8Array[]): Buffer => der(0x30, ...parts);
const oid = (hex: string): Buffer => der(0x06, Buffer.from(hex, "hex"));
const utcTime = (text: string): Buffer => der(0x17, Buffer.from(text));

/** A name of one attribute each: 2.5.4.x. */
const nameOf = (attributes: Readonly<Record<string, string>>): Buffer =>
  sequence(
    ...Object.entries(attributes).map(([type, value]) =>
      der(0x31, sequence(oid(`5504${type}`), der(0x0c, Buffer.from(value)))),
    ),
  );

const ECDSA_WITH_SHA256 = sequence(oid("2a8648ce3d040302"));

/** As WebAuthn 8.2.1 wants that of an authenticator's attestation: country, organization, unit, common name. */
const SUBJECT = nameOf({ "06": "AQ", "0a": "Test", "0b": "Authenticator Attestation", "03": "Test" });

/** A certificate of a maker of authenticators that nobody has heard of, signed by itself, good until 2049. */
export function attestationCertificate(keys: {
  readonly privateKey: KeyObject;
  readonly publicKey: KeyObject;
}): Buffer {
  const isNoAuthority = sequence(oid("551d13"), der(0x01, Buffer.from([0xff])), der(0x04, sequence()));
  const body = sequence(
    der(0xa0, der(0x02, Buffer.from([2]))),
    der(0x02, Buffer.from([1])),
    ECDSA_WITH_SHA256,
    SUBJECT,
    sequence(utcTime("200101000000Z"), utcTime("491231235959Z")),
    SUBJECT,
    keys.publicKey.export({ type: "spki", format: "der" }),
    der(0xa3, sequence(isNoAuthority)),
  );
  const signature = sign("sha256", body, keys.privateKey);
  return sequence(body, ECDSA_WITH_SHA256, der(0x03, Buffer.from([0]), signature));
}
