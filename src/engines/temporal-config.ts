import { readFile } from "node:fs/promises";
import path from "node:path";
import { parse } from "yaml";
import { z } from "zod";
import { PACKAGE_ROOT } from "../lib/package-root.ts";
import { EngineError, reasonOf } from "./errors.ts";
import type { LoopbackAddress } from "./loopback-guard.ts";
import { LOOPBACK } from "./ports.ts";

/**
 * The dynamic configuration keys in use, each verified in server 1.29. The server silently accepts any key, so a
 * misspelt one would have no effect; here it is refused.
 */
const DYNAMIC_CONFIG_KEYS = [
  "frontend.enableExecuteMultiOperation",
  "frontend.enableUpdateWorkflowExecution",
  "frontend.enableUpdateWorkflowExecutionAsyncAccepted",
  "frontend.httpAllowedHosts",
  "frontend.namespaceCount",
  "frontend.namespaceRPS",
  "frontend.namespaceRPS.visibility",
  "frontend.persistenceMaxQPS",
  "frontend.rps",
  "history.persistenceMaxQPS",
  "history.rps",
  "history.timerProcessorMaxPollRPS",
  "history.timerProcessorMaxTimeShift",
  "history.transferProcessorMaxPollRPS",
  "history.visibilityProcessorMaxPollRPS",
  "matching.numTaskqueueReadPartitions",
  "matching.numTaskqueueWritePartitions",
  "matching.persistenceMaxQPS",
  "matching.rps",
  "system.enableActivityEagerExecution",
] as const;

const portSchema = z.int().min(0).max(65_535);

const temporalDevSchema = z.strictObject({
  namespace: z.strictObject({
    name: z.string().regex(/^[a-z0-9][a-z0-9.-]{1,62}$/),
    /** Retention of a closed workflow's history. */
    retentionDays: z.int().min(1).max(365),
  }),
  /** Used when TEMPORAL_PORT and TEMPORAL_UI_PORT are not set. */
  ports: z.strictObject({ frontend: portSchema, ui: portSchema }),
  /** Path inside DATA_DIR. */
  databaseFile: z
    .string()
    .regex(/^[A-Za-z0-9._-]+(\/[A-Za-z0-9._-]+)*$/)
    .refine((file) => !file.split("/").includes(".."), "must stay inside DATA_DIR"),
  logLevel: z.enum(["debug", "info", "warn", "error"]),
  sqlitePragmas: z.strictObject({
    journal_mode: z.enum(["DELETE", "WAL"]),
    synchronous: z.enum(["NORMAL", "FULL"]),
  }),
  searchAttributes: z.record(
    z.string().regex(/^[A-Za-z][A-Za-z0-9]*$/),
    z.enum(["Text", "Keyword", "Int", "Double", "Bool", "Datetime", "KeywordList"]),
  ),
  dynamicConfig: z.partialRecord(
    z.enum(DYNAMIC_CONFIG_KEYS),
    z.union([z.boolean(), z.int(), z.string().regex(/^\d+(ms|s|m|h)$/), z.array(z.string())]),
  ),
});

export type TemporalDevConfig = z.infer<typeof temporalDevSchema>;

const DEFAULT_FILE = path.join(PACKAGE_ROOT, "temporal-dev.yaml");

/** Reads temporal-dev.yaml. Throws EngineError CONFIG that names what is wrong, including unknown keys. */
export async function loadTemporalDevConfig(file: string = DEFAULT_FILE): Promise<TemporalDevConfig> {
  const name = path.basename(file);
  let content: unknown;
  try {
    content = parse(await readFile(file, "utf8"));
  } catch (error) {
    throw new EngineError("CONFIG", `${name} cannot be read: ${reasonOf(error)}`, { cause: error });
  }
  const parsed = temporalDevSchema.safeParse(content);
  if (parsed.success) return parsed.data;
  const issues = parsed.error.issues.map((issue) =>
    issue.path.length === 0 ? issue.message : `${issue.path.join(".")}: ${issue.message}`,
  );
  throw new EngineError("CONFIG", `${name} is invalid: ${issues.join("; ")}`);
}

export interface DevServerOptions {
  readonly port: number;
  /** Address of the UI; null for none. */
  readonly ui: LoopbackAddress | null;
  readonly databaseFile: string;
}

const flagsOf = (flag: string, values: Readonly<Record<string, string>>): string[] =>
  Object.entries(values).flatMap(([key, value]) => [flag, `${key}=${value}`]);

/** Returns the dev server's arguments: loopback only, everything else from the file. */
export function temporalArguments(config: TemporalDevConfig, options: DevServerOptions): readonly string[] {
  const dynamicConfig = Object.entries(config.dynamicConfig).map(([key, value]) => [
    key,
    JSON.stringify(value),
  ]);
  const { ui } = options;
  return [
    ["server", "start-dev", "--ip", LOOPBACK, "--port", String(options.port)],
    ui === null ? ["--headless"] : ["--ui-ip", ui.host, "--ui-port", String(ui.port)],
    ["--db-filename", options.databaseFile, "--namespace", config.namespace.name],
    ["--log-level", config.logLevel, "--color", "never"],
    flagsOf("--search-attribute", config.searchAttributes),
    flagsOf("--sqlite-pragma", config.sqlitePragmas),
    flagsOf("--dynamic-config-value", Object.fromEntries(dynamicConfig)),
  ].flat();
}
