import { resolve } from "node:path";
import { z } from "zod";
import { DEFAULT_TASK_QUEUE } from "../src/messages/common.ts";
import type { Addresses } from "./connections.ts";

/** What the environment says (decisions.md section 10). */
export interface Config {
  readonly host: string;
  readonly port: number;
  /** Null: derived from the port. */
  readonly baseUrl: string | null;
  readonly mcpUrl: string | null;
  readonly dataDir: string;
  readonly masterKey: string | undefined;
  readonly approvalWindowSeconds: number;
  readonly logLevel: string;
}

/** A wrong setting; the message is one line for a person. */
export class ConfigError extends Error {
  override readonly name = "ConfigError";
}

const url = z.url({ protocol: /^https?$/ }).transform((value) => value.replace(/\/+$/, ""));

const environment = z.object({
  HOST: z.string().min(1).optional(),
  PORT: z.coerce.number().int().min(0).max(65_535).default(8080),
  BASE_URL: url.optional(),
  MCP_URL: url.optional(),
  DATA_DIR: z.string().min(1).default(".data"),
  MASTER_KEY: z.string().optional(),
  APPROVAL_WINDOW_SECONDS: z.coerce.number().int().min(1).max(31_536_000).default(86_400),
  LOG_LEVEL: z.enum(["fatal", "error", "warn", "info", "debug", "trace", "silent"]).default("info"),
});

/** Reads the configuration. The embedded default listens on loopback; a server role on every interface. */
export function readConfig(env: NodeJS.ProcessEnv, defaultHost: string): Config {
  const parsed = environment.safeParse(env);
  if (!parsed.success) {
    const [issue] = parsed.error.issues;
    throw new ConfigError(
      `${issue?.path.join(".") ?? "The environment"}: ${issue?.message ?? "is not usable"}`,
    );
  }
  const value = parsed.data;
  return {
    host: value.HOST ?? defaultHost,
    port: value.PORT,
    baseUrl: value.BASE_URL ?? null,
    mcpUrl: value.MCP_URL ?? null,
    dataDir: resolve(value.DATA_DIR),
    masterKey: value.MASTER_KEY,
    approvalWindowSeconds: value.APPROVAL_WINDOW_SECONDS,
    logLevel: value.LOG_LEVEL,
  };
}

const engineAddresses = z.object({
  MONGODB_URI: z.string().min(1),
  TEMPORAL_ADDRESS: z.string().min(1),
  TEMPORAL_NAMESPACE: z.string().min(1),
});

/** `TEMPORAL_TASK_QUEUE`, for services that share a namespace. */
export const readTaskQueue = (env: NodeJS.ProcessEnv): string =>
  env["TEMPORAL_TASK_QUEUE"] ?? DEFAULT_TASK_QUEUE;

/** Where the engines are that somebody else runs: a separate server or worker starts none. */
export function readAddresses(env: NodeJS.ProcessEnv): Addresses {
  const parsed = engineAddresses.safeParse(env);
  if (!parsed.success) {
    const missing = parsed.error.issues.map((issue) => issue.path.join(".")).join(", ");
    throw new ConfigError(`Set ${missing}: this role runs on engines that are there, it starts none.`);
  }
  const { MONGODB_URI, TEMPORAL_ADDRESS, TEMPORAL_NAMESPACE } = parsed.data;
  return {
    mongodbUri: MONGODB_URI,
    temporalAddress: TEMPORAL_ADDRESS,
    temporalNamespace: TEMPORAL_NAMESPACE,
    taskQueue: readTaskQueue(env),
  };
}
