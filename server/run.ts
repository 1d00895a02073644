import { existsSync } from "node:fs";
import { join } from "node:path";
import type { EffectDependencies } from "../src/payments/effects.ts";
import { withoutCredentials } from "../src/engines/mongodb.ts";
import { shownOf } from "../src/lib/plain-error.ts";
import { builtFile, packageVersion } from "../src/lib/package-root.ts";
import { type Config, hostNameOf, readConfig, refuseExposure } from "./config.ts";
import { ConfigError } from "../src/lib/config-error.ts";
import type { EnginesInUse } from "./engines.ts";
import { type HttpServer, listen } from "./http/server.ts";
import { createLogger, endLog, type Logger } from "../src/lib/logger.ts";
import type { Roles, RunningRoles } from "./roles.ts";
import type { Backends } from "./service-options.ts";
import { heedSignals, type Stopping } from "./stopping.ts";
import { withProfile } from "./temporal-settings.ts";

const ROLES: Readonly<Record<string, Roles>> = {
  start: { server: true, worker: true },
  server: { server: true, worker: false },
  worker: { server: false, worker: true },
};

const OTHERS_NOTHING = 0o077;

export interface RunOverrides {
  readonly decorateEffects?: (dependencies: EffectDependencies) => EffectDependencies;
  readonly decorateBackends?: (backends: Backends) => Backends;
}

const say = (line: string): void => void process.stdout.write(`${line}\n`);

/**
 * Runs a role until it is stopped. A failed start prints one line on standard error and exits non-zero. SIGTERM and
 * SIGINT drain, or abort a start.
 */
export async function main(
  role: string,
  env: NodeJS.ProcessEnv,
  overrides: RunOverrides = {},
  stopping: Stopping = heedSignals(),
): Promise<void> {
  // Files of this process and its engines are private to its user from the start.
  process.umask(OTHERS_NOTHING);
  try {
    const roles = ROLES[role];
    if (roles === undefined)
      throw new ConfigError(`Unknown role "${role}": use ${Object.keys(ROLES).join(", ")} or admin.`);
    const embedded = role === "start";
    const config = readConfig(env, embedded ? "localhost" : "0.0.0.0");
    const named = withProfile(env);
    if (embedded) refuseExposure(config, named);
    await run({ role, roles, embedded, config, env: named, overrides, stopping });
    process.exit(0);
  } catch (error) {
    process.stderr.write(`error: ${shownOf(error)}\n`);
    process.exit(1);
  }
}

/**
 * Loads most of the program, as far as the roles need it. Called after the settings are validated, while the engines
 * start.
 */
async function restOfTheProgram(roles: Roles, logger: Logger) {
  if (roles.server) await import("./service.ts");
  if (roles.worker) (await import("./worker.ts")).installRuntime(logger);
  return import("./roles.ts");
}

interface StartOptions {
  readonly role: string;
  readonly roles: Roles;
  readonly embedded: boolean;
  readonly config: Config;
  readonly env: NodeJS.ProcessEnv;
  readonly overrides: RunOverrides;
  readonly stopping: Stopping;
}

interface Running {
  readonly failed: Promise<never>;
  stop(): Promise<void>;
  /** Part that is being stopped, or would be next. */
  unfinished(): string;
}

async function run(options: StartOptions): Promise<void> {
  const { config, embedded, role, roles, stopping } = options;
  // Bound first, so that nothing is started, fetched or built for a service that cannot be reached.
  const { keepAliveSeconds, metricsPort } = config;
  const http = roles.server ? await listen(config.host, config.port, { keepAliveSeconds }) : null;
  const probesHttp =
    metricsPort === null
      ? null
      : await listen(config.host, metricsPort, { keepAliveSeconds, variable: "METRICS_PORT" });
  const logger = createLogger({
    level: config.logLevel,
    file: embedded ? join(config.dataDir, "logs", "service.log") : null,
  });
  logger.info(
    {
      role,
      version: packageVersion(),
      node: process.version,
      port: http?.port ?? null,
      metricsPort: probesHttp?.port ?? null,
    },
    "starting",
  );
  process.once("uncaughtExceptionMonitor", (err) => logger.fatal({ err }, "ended by an unexpected error"));
  let running: Running | null = null;
  const bound = () => boundTheEnd(config.drainSeconds, () => running?.unfinished() ?? "start", logger);
  const signalled = untilSignalled(stopping, bound, logger);
  running = await startOrGiveUp(options, logger, http, probesHttp);
  if (running !== null) await untilStopped(running, signalled, bound, logger);
  await endLog(logger);
}

/** Starts the process. Returns null if it was stopped during the start, in which case nothing of it remains. */
async function startOrGiveUp(
  options: StartOptions,
  logger: Logger,
  http: HttpServer | null,
  probesHttp: HttpServer | null,
): Promise<Running | null> {
  try {
    return await startWith(options, logger, http, probesHttp);
  } catch (err) {
    if (options.stopping.signal.aborted) {
      await Promise.all([http?.drain(), probesHttp?.drain()]);
      logger.info({ err }, "stopped, before it had started");
      return null;
    }
    logger.error({ err }, "could not start");
    throw err;
  }
}

async function startWith(
  { config, embedded, env, overrides, role, roles, stopping: { signal } }: StartOptions,
  logger: Logger,
  http: HttpServer | null,
  probesHttp: HttpServer | null,
): Promise<Running> {
  const urls = urlsOf(config, http);
  const { failed, fail } = failure();

  const { embeddedEngines, externalEngines } = await import("./engines.ts");
  const starting = embedded
    ? embeddedEngines({ config, env, ...urls, logger, onProgress: say, onFailed: fail, signal })
    : externalEngines(env);
  const [engines, { startRoles }] = await Promise.all([starting, restOfTheProgram(roles, logger)]);
  const running = await startRoles({
    roles,
    config,
    addresses: engines.addresses,
    embedded: engines.ownMongodb,
    temporalUiUrl: engines.temporalUiUrl,
    cardNetworkUrl: engines.cardNetworkUrl,
    http,
    probesHttp,
    ...urls,
    logger,
    clock: () => new Date(),
    env,
    ...overrides,
  }).catch(async (error: unknown) => {
    await engines.stop();
    throw error;
  });
  running.failed.catch(fail);
  const whole = {
    failed,
    stop: () => stop(running, engines),
    unfinished: () => running.unfinished() ?? "engines",
  };
  if (signal.aborted) return whole;
  await engines.announce();
  const probes = probesHttp === null ? null : addressOf(config, probesHttp.port);
  announce({ role, config, urls, engines, probes, setUpLink: await running.setUpLink() });
  logger.info({ role, seconds: Math.round(process.uptime() * 10) / 10 }, "running");
  return whole;
}

/** Returns a promise that a part of the process rejects when it has failed permanently. */
function failure(): { readonly failed: Promise<never>; readonly fail: (error: unknown) => void } {
  const rejects: ((error: unknown) => void)[] = [];
  const failed = new Promise<never>((_resolve, reject) => rejects.push(reject));
  failed.catch(() => undefined);
  return { failed, fail: (error) => rejects.forEach((reject) => reject(error)) };
}

interface Urls {
  readonly baseUrl: string;
  readonly mcpUrl: string;
}

function urlsOf(config: Config, http: HttpServer | null): Urls {
  const baseUrl = config.baseUrl ?? addressOf(config, http?.port ?? config.port);
  return { baseUrl, mcpUrl: config.mcpUrl ?? baseUrl };
}

const addressOf = ({ host }: Config, port: number): string => `http://${hostNameOf(host)}:${port}`;

interface Announcement {
  readonly role: string;
  readonly config: Config;
  readonly urls: Urls;
  readonly engines: EnginesInUse;
  readonly probes: string | null;
  /** Printed for the operator who starts the service and never logged: it is a secret until used. */
  readonly setUpLink: string | null;
}

function announce({ role, config, urls, engines, probes, setUpLink }: Announcement): void {
  const { baseUrl, mcpUrl } = urls;
  const metrics = probes === null ? null : `${probes}/metrics`;
  if (role === "worker") {
    say("The worker is running.");
    if (metrics !== null) say(`  Metrics      ${metrics}`);
    return;
  }
  const rows = [
    ["REST", `${baseUrl}/v1`],
    ["MCP", `${mcpUrl}/mcp`],
    ["API docs", `${baseUrl}/docs`],
    ["Metrics", metrics],
    ["Temporal", engines.addresses.temporalAddress],
    ["Temporal UI", engines.temporalUiUrl],
    ["MongoDB", engines.ownMongodb ? withoutCredentials(engines.addresses.mongodbUri) : "as configured"],
    ["Local chain", engines.chainUrl],
    ["Card network", engines.cardNetworkUrl],
    ["Data, logs", role === "start" ? config.dataDir : null],
  ] as const;
  say("\nAgent Spending Control is running.");
  for (const [name, value] of rows) if (value !== null) say(`  ${name.padEnd(12)} ${value}`);
  if (setUpLink !== null) say(`\nSet up: ${setUpLink}`);
  if (role !== "start") return;
  // The tour exists only in a checkout, not in an installed package.
  const hint = existsSync(builtFile("scripts/demo.ts")) ? "New here? `npm run demo` plays a tour. " : "";
  say(`\n${hint}Stop with Ctrl-C.`);
}

/** Resolves at the first SIGTERM or SIGINT, also during the start. From then on the time to the end is limited. */
function untilSignalled(
  { beforeEndingAtOnce, signal }: Stopping,
  bound: () => void,
  logger: Logger,
): Promise<void> {
  beforeEndingAtOnce(() => logger.warn("ended by a second signal before everything had stopped"));
  return new Promise((resolve) => {
    const stopRequested = (): void => {
      logger.info("stopping");
      say("Stopping: requests finish, then the engines.");
      bound();
      resolve();
    };
    signal.addEventListener("abort", stopRequested, { once: true });
    if (signal.aborted) stopRequested();
  });
}

function boundTheEnd(seconds: number, unfinished: () => string, logger: Logger): void {
  setTimeout(() => {
    logger.error({ seconds, unfinished: unfinished() }, "ended before everything had stopped");
    process.exit(1);
  }, seconds * 1_000).unref();
}

async function untilStopped(
  running: Running,
  signalled: Promise<void>,
  bound: () => void,
  logger: Logger,
): Promise<void> {
  const reason = await Promise.race([
    signalled.then(() => null),
    running.failed.then(
      () => null,
      (error: unknown) => ({ error }),
    ),
  ]);
  if (reason !== null) {
    logger.error({ err: reason.error }, "stopping, because a part has failed permanently");
    bound();
  }
  try {
    await running.stop();
    logger.info("stopped");
  } catch (error) {
    logger.error({ err: error }, "some parts did not stop cleanly");
    if (reason === null) throw error;
  }
  if (reason !== null) throw reason.error;
}

async function stop(running: RunningRoles, engines: EnginesInUse): Promise<void> {
  await running.stop();
  await engines.stop();
}
