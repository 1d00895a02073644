import { readFile } from "node:fs/promises";
import { ConfigError } from "../lib/config-error.ts";

/** Returns the certificate authorities (PEM) in a setting's file; null if none is named. Throws `ConfigError`. */
export async function authoritiesIn(setting: string, caFile: string | null): Promise<string | null> {
  if (caFile === null) return null;
  const advice = "name a PEM file of certificates.";
  const text = await readFile(caFile, "utf8").catch((error: unknown) => {
    const reason = error instanceof Error && "code" in error ? String(error.code) : String(error);
    throw new ConfigError(`${setting}: ${caFile} can't be read (${reason}): ${advice}`, { cause: error });
  });
  if (!text.includes("-----BEGIN CERTIFICATE-----")) {
    throw new ConfigError(`${setting}: ${caFile} holds no certificate: ${advice}`);
  }
  return text;
}
