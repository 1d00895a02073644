import { access, mkdir, rm, writeFile } from "node:fs/promises";
import path from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { Connection } from "@temporalio/client";
import proto from "@temporalio/proto";
import { endCallContext } from "../lib/call-context.ts";
import { childEnvironment } from "./environment.ts";
import type { LoopbackAddress } from "./loopback-guard.ts";
import { accepts, LOOPBACK } from "./ports.ts";
import type { EngineSpec } from "./supervisor.ts";
import { addMissingAttributes } from "./search-attributes.ts";
import { temporalArguments, type TemporalDevConfig } from "./temporal-config.ts";

const STOP_GRACE_MS = 10_000;
const POLL_INTERVAL_MS = 50;
const CONNECT_TIMEOUT_MS = 2_000;
const CALL_TIMEOUT_MS = 5_000;
const SECONDS_PER_DAY = 86_400;
/**
 * Heap growth in percent between two garbage collections, 100 by default: more memory for a sixth less processor time.
 */
const GARBAGE_PERCENT = "400";

/** The dev server's database, inside DATA_DIR. */
export const temporalDatabase = (dataDir: string, config: TemporalDevConfig): string =>
  path.join(dataDir, config.databaseFile);

const firstStartMark = (database: string): string => `${database}.first-start`;

const exists = async (file: string): Promise<boolean> => {
  try {
    await access(file);
    return true;
  } catch {
    return false;
  }
};

/**
 * Prepares the database's folder. The dev server assumes that an existing database is complete, so one whose very first
 * start was cut short would fail forever. A mark stands next to it until it has been usable once; a database found with
 * the mark has served no workflow, and is recreated.
 */
export async function prepareTemporalDatabase(database: string): Promise<void> {
  await mkdir(path.dirname(database), { recursive: true, mode: 0o700 });
  const mark = firstStartMark(database);
  if (await exists(mark)) {
    const files = [database, `${database}-wal`, `${database}-shm`, `${database}-journal`];
    await Promise.all(files.map((file) => rm(file, { force: true })));
  } else if (!(await exists(database))) {
    await writeFile(mark, "", { mode: 0o600 });
  }
}

async function setRetention(connection: Connection, config: TemporalDevConfig): Promise<void> {
  const { name: namespace, retentionDays } = config.namespace;
  const expectedSeconds = retentionDays * SECONDS_PER_DAY;
  const described = await connection.workflowService.describeNamespace({ namespace });
  if (described.config?.workflowExecutionRetentionTtl?.seconds?.toNumber() === expectedSeconds) return;
  await connection.workflowService.updateNamespace({
    namespace,
    config: {
      workflowExecutionRetentionTtl: proto.google.protobuf.Duration.fromObject({ seconds: expectedSeconds }),
    },
  });
}

async function settle(address: string, config: TemporalDevConfig): Promise<void> {
  const connection = await Connection.connect({ address, connectTimeout: CONNECT_TIMEOUT_MS });
  try {
    await connection.withDeadline(Date.now() + CALL_TIMEOUT_MS, async () => {
      await setRetention(connection, config);
      // The dev server registers attributes only with a namespace it creates; attributes added to the file later are
      // registered here.
      const { namespace, searchAttributes } = config;
      await addMissingAttributes(connection.operatorService, namespace.name, searchAttributes);
    });
  } finally {
    await connection.close();
    endCallContext(connection);
  }
}

export interface TemporalOptions {
  readonly binary: string;
  readonly database: string;
  readonly port: number;
  /** Address of the UI; null for none. */
  readonly ui: LoopbackAddress | null;
  readonly logFile: string;
  readonly env: NodeJS.ProcessEnv;
  readonly config: TemporalDevConfig;
}

async function waitUntilUsable(options: TemporalOptions, signal: AbortSignal): Promise<void> {
  let last: unknown = new Error("it never listened");
  while (!signal.aborted) {
    try {
      const { port, ui } = options;
      if ((await accepts(port)) && (ui === null || (await accepts(ui.port, ui.host)))) {
        await settle(`${LOOPBACK}:${String(port)}`, options.config);
        await rm(firstStartMark(options.database), { force: true });
        return;
      }
    } catch (error) {
      last = error; // the frontend responds before history does: polled again
    }
    await sleep(POLL_INTERVAL_MS);
  }
  throw new Error("the Temporal dev server did not become usable", { cause: last });
}

/**
 * The Temporal dev server on loopback, configured by temporal-dev.yaml. Ready once its namespace answers with all
 * search attributes and the file's retention.
 */
export const temporalSpec = (options: TemporalOptions): EngineSpec => ({
  name: "temporal",
  binary: options.binary,
  args: temporalArguments(options.config, {
    port: options.port,
    ui: options.ui,
    databaseFile: options.database,
  }),
  env: { ...childEnvironment(options.env), GOGC: GARBAGE_PERCENT },
  logFile: options.logFile,
  stopGraceMs: STOP_GRACE_MS,
  remedy:
    `Look into ${options.logFile}. Where the disk is full, make room and start again; ` +
    `where ${options.database} is damaged, put back a backup of all of DATA_DIR (without one, move the file away: ` +
    "`npm run admin -- restore-ledger` rebuilds each project's ledger from the records); " +
    "with TEMPORAL_ADDRESS and TEMPORAL_NAMESPACE the service uses a Temporal of your own.",
  ready: (signal) => waitUntilUsable(options, signal),
});
