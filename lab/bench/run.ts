import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { Client, Connection } from "@temporalio/client";
import { MasterKey } from "../../src/secrets/master-key.ts";
import { payloadKeysOf } from "../../src/temporal/payload-keys.ts";
import { openPayloads } from "../../src/temporal/temporal-payloads.ts";
import { type RunningEngines, startEngines } from "../../src/engines/start.ts";
import { ALL_CASES, type SystemName } from "./cases.ts";
import { Child } from "./child.ts";
import { type IdleResult, measureIdle } from "./idle.ts";
import type { BenchOptions } from "./options.ts";
import { type ListsResult, measureLists } from "./lists.ts";
import { measurePending } from "./pending.ts";
import { type BenchResult, machine } from "./report.ts";
import { Rounds, type Systems } from "./rounds.ts";
import { startBare, startBareRuns, startBareStarts } from "./systems/bare.ts";
import { startCreates } from "./systems/creates.ts";
import { startDeliveries } from "./systems/deliveries.ts";
import {
  startCappedPayments,
  startPaymentsAmong,
  startPaymentsBesideRunaway,
  startPaymentsBesideShops,
  startPayments,
  startPaymentsBesideStuck,
  startPaymentsBesidePages,
  startPaymentsBesideWaiting,
  startNotifiedPayments,
  startEncryptedPayments,
  startUnauditedPayments,
  startWalletPayments,
} from "./systems/payments.ts";
import { startPlain, startPlainLevels } from "./systems/plain.ts";
import { startBareRead, startKeyRead, startSessionRead } from "./systems/reads.ts";
import { startTransfers } from "./systems/transfers.ts";
import { MASTER_KEY, type Site, type System } from "./systems/system.ts";
import { judge, judgeIdle, judgeLists, judgePending } from "./targets.ts";

type Say = (line: string) => void;

const START: Readonly<Record<SystemName, (site: Site) => Promise<System>>> = {
  bare: startBare,
  payments: startPayments,
  unaudited: startUnauditedPayments,
  encrypted: startEncryptedPayments,
  plain: startPlain,
  "plain-levels": startPlainLevels,
  transfers: startTransfers,
  wallet: startWalletPayments,
  "bare-read": startBareRead,
  "key-read": startKeyRead,
  "session-read": startSessionRead,
  "bare-start": startBareStarts,
  creates: startCreates,
  capped: startCappedPayments,
  "large-1000": (site) => startPaymentsAmong(site, 1_000),
  "large-10000": (site) => startPaymentsAmong(site, 10_000),
  runaway: startPaymentsBesideRunaway,
  shops: (site) => startPaymentsBesideShops(site, "client"),
  "shops-loop": (site) => startPaymentsBesideShops(site, "loop"),
  "bare-runs": startBareRuns,
  deliveries: startDeliveries,
  delivered: startNotifiedPayments,
  stuck: startPaymentsBesideStuck,
  waiting: startPaymentsBesideWaiting,
  streamed: startPaymentsBesidePages,
};

/** Stack of undo steps, executed last first. */
export class Undo {
  readonly #steps: (() => Promise<unknown>)[] = [];

  add(step: () => Promise<unknown>): void {
    this.#steps.push(step);
  }

  async all(): Promise<void> {
    for (const step of this.#steps.splice(0).toReversed()) await step().catch(() => undefined);
  }
}

/** One run: engines and systems up, rounds, audit, everything down again, whatever happens. */
export async function runBench(options: BenchOptions, say: Say): Promise<BenchResult> {
  const undo = new Undo();
  const interrupted = new Promise<never>((_resolve, reject) => {
    for (const signal of ["SIGINT", "SIGTERM"] as const) {
      process.once(signal, () => reject(new Error(`interrupted by ${signal}`)));
    }
  });
  try {
    return await Promise.race([measure(options, undo, say), interrupted]);
  } finally {
    await undo.all();
  }
}

async function measure(options: BenchOptions, undo: Undo, say: Say): Promise<BenchResult> {
  const startedAt = new Date();
  const { disagreements, errors, idle, lists, pending, series } = await measureOnEngines(options, undo, say);
  return {
    startedAt: startedAt.toISOString(),
    seconds: (Date.now() - startedAt.getTime()) / 1_000,
    machine: machine(),
    options: { rounds: options.rounds, seconds: options.seconds, turns: options.turns },
    series,
    targets: [...judge(series), ...judgeLists(lists), ...judgeIdle(idle), ...judgePending(pending)],
    pending,
    idle,
    lists,
    disagreements,
    errors,
  };
}

/** Lists are many, and each page is asked for a part of the time that a payment is. */
const LIST_PARTS = 4;

type Measured = Pick<BenchResult, "series" | "disagreements" | "idle" | "lists" | "pending" | "errors">;

async function measureOnEngines(options: BenchOptions, undo: Undo, say: Say): Promise<Measured> {
  const site = await prepareSite(options, undo, say);
  const systems = await startSystems(options, site, undo, say);
  const generator = await Child.start({ entry: "load/generator.ts", config: null });
  undo.add(() => generator.stop());
  const rounds = new Rounds({ options, systems, generator, pids: site.pids, onProgress: say });
  await rounds.run();
  const { errors, series } = rounds;
  const disagreements = await audit(systems, rounds);
  const idle = await idleAgents(options, site, undo, say);
  const lists = await listed(options, site, generator, undo, say);
  const { pending: isAsked, rounds: turns } = options;
  const pending = isAsked
    ? await measurePending({ site, rounds: turns, onProgress: say, undo: (step) => undo.add(step) })
    : null;
  return { series, disagreements, idle, lists, pending, errors };
}

async function idleAgents(
  { idleAgents: count }: BenchOptions,
  site: Site,
  undo: Undo,
  say: Say,
): Promise<IdleResult | string | null> {
  if (count === null) return null;
  try {
    return await measureIdle({ site, count, onProgress: say, undo: (step) => undo.add(step) });
  } catch (error) {
    // Earlier measurements stand.
    return error instanceof Error ? error.message : String(error);
  }
}

async function listed(
  { listedRows: rows, seconds }: BenchOptions,
  site: Site,
  generator: Child,
  undo: Undo,
  say: Say,
): Promise<ListsResult | null> {
  if (rows === null) return null;
  const options = { site, rows, seconds: seconds / LIST_PARTS, generator };
  return measureLists({ ...options, onProgress: say, undo: (step) => undo.add(step) });
}

export async function prepareSite(
  options: Pick<BenchOptions, "profileDir">,
  undo: Undo,
  say: Say,
): Promise<Site> {
  const dataDir = await mkdtemp(join(tmpdir(), "spending-control-bench-"));
  undo.add(() => rm(dataDir, { recursive: true, force: true }));
  const engines = await startEngines({
    dataDir,
    env: ownEngines(process.env),
    ports: { mongodb: 0, temporal: 0, temporalUi: 0, chain: 0 },
    // A dump of the chain every other second is the engine's own work, and neither system's.
    chainSnapshotMs: null,
    onProgress: say,
    onUnexpectedExit: (engine, detail) => say(`${engine} ended: ${detail}`),
  });
  undo.add(() => engines.stop());
  const temporal = await connectTemporal(engines, undo);
  return {
    mongodbUri: engines.mongodb.uri,
    temporalAddress: engines.temporal.address,
    temporalNamespace: engines.temporal.namespace,
    evmRpcUrl: engines.chain.directUrl,
    temporal,
    pids: () => ({ temporal: engines.temporal.pid, mongod: engines.mongodb.pid, anvil: engines.chain.pid }),
    dataDir,
    profileDir: options.profileDir,
  };
}

/** Engines of the bench's own, whatever the environment names: no real ones are put under load. */
function ownEngines(env: NodeJS.ProcessEnv): NodeJS.ProcessEnv {
  const theirs = ["MONGODB_URI", "TEMPORAL_ADDRESS", "TEMPORAL_NAMESPACE", "EVM_RPC_URL"];
  return Object.fromEntries(Object.entries(env).filter(([name]) => !theirs.includes(name)));
}

async function connectTemporal({ temporal }: RunningEngines, undo: Undo): Promise<Client> {
  const connection = await Connection.connect({ address: temporal.address });
  undo.add(() => connection.close());
  const payloads = openPayloads({
    keys: payloadKeysOf(MasterKey.parse(MASTER_KEY, "the bench")),
    isEncrypted: true,
  });
  return new Client({ connection, namespace: temporal.namespace, ...payloads.client });
}

async function startSystems(options: BenchOptions, site: Site, undo: Undo, say: Say): Promise<Systems> {
  const systems = new Map<SystemName, System>();
  const needed = new Set(options.cases.flatMap((name) => ALL_CASES[name].systems));
  for (const name of options.systems.filter((each) => needed.has(each))) {
    say(`${name}: starting`);
    const system = await START[name](site);
    undo.add(() => system.stop());
    systems.set(name, system);
  }
  return systems;
}

async function audit(systems: Systems, rounds: Rounds): Promise<string[]> {
  const found: string[] = [];
  for (const [name, system] of systems) found.push(...(await system.audit(rounds.answeredBy(name))));
  return found;
}
