import { type KeyObject, sign } from "node:crypto";

/** DER by hand (X.690): a tag, a length, and what is in it. */
export const der = (tag: number, ...parts: readonly Uint8Array[]): Buffer => {
  const content = Buffer.concat(parts);
  const { length } = content;
  const size = length < 128 ? [length] : length < 256 ? [0x81, length] : [0x82, length >> 8, length & 0xff];
  return Buffer.concat([Buffer.from([tag, ...size]), content]);
};
export const sequence = (...parts: readonly Uint8Array[]): Buffer => der(0x30, ...parts);
const oid = (hex: string): Buffer => der(0x06, Buffer.from(hex, "hex"));
const utcTime = (text: string): Buffer => der(0x17, Buffer.from(text));

/** A name of one attribute each: 2.5.4.x. */
export const nameOf = (attributes: Readonly<Record<string, string>>): Buffer =>
  sequence(
    ...Object.entries(attributes).map(([type, value]) =>
      der(0x31, sequence(oid(`5504${type}`), der(0x0c, Buffer.from(value)))),
    ),
  );

/** The parts of a certificate in their order, from its number on, signed with ECDSA and SHA-256. */
export interface CertificateParts {
  readonly number: number;
  readonly issuer: Buffer;
  /** As UTC times: `200101000000Z`. */
  readonly from: string;
  readonly until: string;
  readonly subject: Buffer;
  readonly publicKey: KeyObject;
  readonly extensions: readonly Buffer[];
}

const ECDSA_WITH_SHA256 = sequence(oid("2a8648ce3d040302"));

export function signedCertificate(parts: CertificateParts, signer: KeyObject): Buffer {
  const body = sequence(
    der(0xa0, der(0x02, Buffer.from([2]))),
    der(0x02, Buffer.from([parts.number])),
    ECDSA_WITH_SHA256,
    parts.issuer,
    sequence(utcTime(parts.from), utcTime(parts.until)),
    parts.subject,
    parts.publicKey.export({ type: "spki", format: "der" }),
    der(0xa3, sequence(...parts.extensions)),
  );
  return sequence(body, ECDSA_WITH_SHA256, der(0x03, Buffer.from([0]), sign("sha256", body, signer)));
}

/** 2.5.29.x, critical or not. */
export const extension = (number: string, critical: boolean, content: Buffer): Buffer =>
  sequence(oid(`551d${number}`), ...(critical ? [der(0x01, Buffer.from([0xff]))] : []), der(0x04, content));
