import { generateKeyPairSync, type KeyObject, randomUUID } from "node:crypto";
import { isIP } from "node:net";
import ipaddr from "ipaddr.js";
import { der, extension, nameOf, sequence, signedCertificate } from "./der.ts";

/** What a TLS server needs, as PEM. */
export interface Identity {
  readonly cert: string;
  readonly key: string;
}

/** An unknown certificate authority, of a name that no other has: verification goes by names first. */
export interface Authority {
  readonly caPem: string;
  /** An identity for names and addresses, good until 2049 unless it is to have expired. */
  issue(hosts: readonly string[], validity?: "good" | "expired"): Identity;
}

interface Keys {
  readonly publicKey: KeyObject;
  readonly privateKey: KeyObject;
}

const FROM = "200101000000Z";
const UNTIL = { good: "491231235959Z", expired: "210101000000Z" } as const;
const IS_AUTHORITY = extension("13", true, sequence(der(0x01, Buffer.from([0xff]))));
const IS_NO_AUTHORITY = extension("13", true, sequence());
const [DNS_NAME, IP_ADDRESS] = [0x82, 0x87];

const newKeys = (): Keys => generateKeyPairSync("ec", { namedCurve: "P-256" });
const commonName = (name: string): Buffer => nameOf({ "03": name });

const pemOf = (certificate: Buffer): string => {
  const lines = certificate.toString("base64").match(/.{1,64}/g) ?? [];
  return ["-----BEGIN CERTIFICATE-----", ...lines, "-----END CERTIFICATE-----", ""].join("\n");
};

const alternativeNames = (hosts: readonly string[]): Buffer => {
  const names = hosts.map((host) =>
    isIP(host) === 0
      ? der(DNS_NAME, Buffer.from(host))
      : der(IP_ADDRESS, Buffer.from(ipaddr.parse(host).toByteArray())),
  );
  return extension("11", false, sequence(...names));
};

export function newAuthority(): Authority {
  const authority = newKeys();
  const issuer = commonName(`Test authority ${randomUUID()}`);
  const common = { issuer, from: FROM };
  const ca = signedCertificate(
    {
      ...common,
      number: 1,
      until: UNTIL.good,
      subject: issuer,
      publicKey: authority.publicKey,
      extensions: [IS_AUTHORITY],
    },
    authority.privateKey,
  );
  let issued = 1;
  return {
    caPem: pemOf(ca),
    issue(hosts, validity = "good") {
      const keys = newKeys();
      issued += 1;
      const leaf = signedCertificate(
        {
          ...common,
          number: issued,
          until: UNTIL[validity],
          subject: commonName("Test receiver"),
          publicKey: keys.publicKey,
          extensions: [IS_NO_AUTHORITY, alternativeNames(hosts)],
        },
        authority.privateKey,
      );
      const key = keys.privateKey.export({ type: "pkcs8", format: "pem" }).toString();
      return { cert: pemOf(leaf), key };
    },
  };
}
