import { X509Certificate } from "node:crypto";
import { accessSync, constants } from "node:fs";
import { createSecureContext } from "node:tls";
import {
  type ClientConfigProfile,
  type ClientConfigTLS,
  type ConfigDataSource,
  loadClientConfigProfile,
  loadConfigData,
  toClientOptions,
} from "@temporalio/envconfig";
import { ConfigError } from "../src/lib/config-error.ts";
import { firstLineOf } from "../src/lib/plain-error.ts";
import type { TemporalSecurity } from "../src/store/temporal-connection.ts";

export interface TemporalTarget {
  /** Empty if the environment names none, like `namespace`. */
  readonly address: string;
  readonly namespace: string;
  /** Reads the certificates and keys from disk. Throws `ConfigError`. */
  readonly readSecurity: () => TemporalSecurity;
}

const NAMING = ["TEMPORAL_ADDRESS", "TEMPORAL_PROFILE", "TEMPORAL_CONFIG_FILE"];
const SECURITY = /^TEMPORAL_(TLS($|_)|API_KEY$|PROFILE$|CONFIG_FILE$|GRPC_META_)/;
/** Characters allowed in a header value, since a key is sent as one. */
const HEADER_VALUE = /^[\x21-\x7e]+$/;

const HOST_NAME = /^[a-z0-9.-]+$/i;

/** Whether the environment names an external Temporal, so that none is started. */
export const isTemporalNamed = (env: NodeJS.ProcessEnv): boolean => NAMING.some((name) => isSet(env, name));

const isSet = (env: NodeJS.ProcessEnv, name: string): boolean => (env[name] ?? "") !== "";

/** Returns the environment with `TEMPORAL_ADDRESS` and `TEMPORAL_NAMESPACE` from its profile. */
export function withProfile(env: NodeJS.ProcessEnv): NodeJS.ProcessEnv {
  if (!isTemporalNamed(env)) return env;
  const { address, namespace } = readTemporal(env);
  return { ...env, TEMPORAL_ADDRESS: address, TEMPORAL_NAMESPACE: namespace };
}

/** Reads Temporal's environment configuration and profile file. Throws `ConfigError`. */
export function readTemporal(env: NodeJS.ProcessEnv): TemporalTarget {
  const { address = "", namespace = "" } = readProfile(env);
  securityOf(env);
  return { address, namespace, readSecurity: () => securityOf(env) };
}

function securityOf(env: NodeJS.ProcessEnv): TemporalSecurity {
  const profile = readProfile(env);
  const { apiKey, tls } = profile;
  if (apiKey !== undefined && !HEADER_VALUE.test(apiKey)) {
    throw new ConfigError(
      `${sourceOf(env, "TEMPORAL_API_KEY")}: the API key has blanks or control characters.`,
    );
  }
  if (tls !== undefined && tls.disabled !== true) checkTls(env, tls);
  const { connectionOptions } = toClientOptions(profile);
  return {
    options: {
      tls: connectionOptions.tls ?? false,
      ...(apiKey === undefined ? {} : { apiKey }),
      metadata: connectionOptions.metadata ?? {},
    },
    settings: Object.keys(env)
      .filter((name) => SECURITY.test(name) && isSet(env, name))
      .toSorted(),
  };
}

function readProfile(env: NodeJS.ProcessEnv): ClientConfigProfile {
  refuseUnusable(env);
  const file = env["TEMPORAL_CONFIG_FILE"] ?? "";
  try {
    return loadClientConfigProfile({ overrideEnvVars: withoutBlanks(env), configFileStrict: file !== "" });
  } catch (error) {
    const name = isSet(env, "TEMPORAL_PROFILE") ? "TEMPORAL_PROFILE" : sourceOf(env, "TEMPORAL_CONFIG_FILE");
    throw new ConfigError(`${name}: ${firstLineOf(error)}`);
  }
}

/**
 * Removes empty values, which count as unset. An empty `TEMPORAL_GRPC_META_…` is kept, since it removes the profile's
 * header.
 */
const withoutBlanks = (env: NodeJS.ProcessEnv): Record<string, string> =>
  Object.fromEntries(
    Object.entries(env).flatMap(([name, value]) =>
      value === undefined || (value === "" && !name.startsWith("TEMPORAL_GRPC_META_")) ? [] : [[name, value]],
    ),
  );

/** Refuses values that `@temporalio/envconfig` ignores silently. */
function refuseUnusable(env: NodeJS.ProcessEnv): void {
  const isTls = env["TEMPORAL_TLS"] ?? "";
  if (!["", "0", "1", "false", "true"].includes(isTls))
    throw new ConfigError("TEMPORAL_TLS: must be true or false.");
  if (/^(1|true)$/.test(env["TEMPORAL_TLS_DISABLE_HOST_VERIFICATION"] ?? "")) {
    throw new ConfigError(
      "TEMPORAL_TLS_DISABLE_HOST_VERIFICATION: the server's certificate is always verified; name its authority with TEMPORAL_TLS_SERVER_CA_CERT_PATH and its name with TEMPORAL_TLS_SERVER_NAME.",
    );
  }
  const file = env["TEMPORAL_CONFIG_FILE"] ?? "";
  if (file === "") return;
  try {
    accessSync(file, constants.R_OK);
  } catch (error) {
    throw new ConfigError(`TEMPORAL_CONFIG_FILE: ${firstLineOf(error)}`);
  }
}

function checkTls(env: NodeJS.ProcessEnv, tls: ClientConfigTLS): void {
  if (tls.serverName !== undefined && !HOST_NAME.test(tls.serverName)) {
    throw new ConfigError(
      `${sourceOf(env, "TEMPORAL_TLS_SERVER_NAME")}: must be a host name without a port.`,
    );
  }
  const ca = readPart(env, "TEMPORAL_TLS_SERVER_CA_CERT_PATH", tls.serverCACert);
  const cert = readPart(env, "TEMPORAL_TLS_CLIENT_CERT_PATH", tls.clientCert);
  const key = readPart(env, "TEMPORAL_TLS_CLIENT_KEY_PATH", tls.clientKey);
  for (const { data, name } of [ca, cert]) if (data !== null) checkCertificate(name, data);
  if ((cert.data === null) !== (key.data === null)) {
    throw new ConfigError(
      "TEMPORAL_TLS_CLIENT_CERT_PATH and TEMPORAL_TLS_CLIENT_KEY_PATH: one is set without the other.",
    );
  }
  if (cert.data === null || key.data === null) return;
  try {
    createSecureContext({ cert: cert.data, key: key.data });
  } catch (error) {
    throw new ConfigError(
      `${cert.name}, ${key.name}: not a certificate and its key (${firstLineOf(error)}).`,
    );
  }
}

interface Part {
  readonly name: string;
  readonly data: Buffer | null;
}

function readPart(env: NodeJS.ProcessEnv, setting: string, source: ConfigDataSource | undefined): Part {
  const name = sourceOf(env, setting, setting.replace(/_PATH$/, "_DATA"));
  try {
    const data = loadConfigData(source);
    return { name, data: data === undefined ? null : Buffer.from(data) };
  } catch (error) {
    throw new ConfigError(`${name}: ${firstLineOf(error)}`);
  }
}

function checkCertificate(name: string, pem: Buffer): void {
  const { validTo } = parsedCertificate(name, pem);
  if (Date.parse(validTo) < Date.now())
    throw new ConfigError(`${name}: the certificate expired on ${validTo}.`);
}

function parsedCertificate(name: string, pem: Buffer): X509Certificate {
  try {
    return new X509Certificate(pem);
  } catch (error) {
    throw new ConfigError(`${name}: not a certificate in PEM (${firstLineOf(error)}).`);
  }
}

/** Returns the source of a value: the one of `names` that is set, or the profile file. */
const sourceOf = (env: NodeJS.ProcessEnv, ...names: readonly string[]): string =>
  names.find((name) => isSet(env, name)) ??
  (isSet(env, "TEMPORAL_PROFILE") ? "TEMPORAL_PROFILE" : "TEMPORAL_CONFIG_FILE");
