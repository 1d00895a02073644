import { join } from "node:path";
import type { Roles } from "../../server/roles.ts";
import { LEDGER_STATE_QUERY, type LedgerStateView, ledgerWorkflowId } from "../../src/messages/ledger.ts";
import { Child } from "./child.ts";
import { type CpuMs, cpuUsed, readCpu } from "./cpu.ts";
import { LoadClient } from "./load/client.ts";
import type { ServiceConfig } from "./processes/service.ts";
import { prepareSite, Undo } from "./run.ts";
import { createAgents } from "./systems/payments-agents.ts";
import { createOrganizationWithAgents } from "./systems/payments.ts";
import { ORDER, portOf, serviceEnvironment } from "./systems/system.ts";

/**
 * One project's payments through several servers, each number between two measurements of one server:
 * `node dist/lab/bench/servers.js 2 8 14`. All share the machine with the engines, so the ratios are lower bounds. With `apart`, servers
 * do not know of each other; with `spare`, only the first is sent payments, which shows the cost of processes that have nothing to do.
 * First payments of fresh agents are compared with their next ones, by one server.
 */
const CONNECTIONS = 32;
const SECONDS = 8;
/** A process that has answered some hundred payments only runs code that is not compiled yet. */
const WARM_UP_SECONDS = 10;

/** Agents whose first payments are compared with their next ones. */
const FRESH_AGENTS = 200;
const FIRST_SECONDS_MAX = 60;

const named = process.argv.slice(2);
const [apart, spare] = [named.includes("apart"), named.includes("spare")];
const numbers = named.map(Number).filter((count) => count > 0);
const undo = new Undo();
try {
  await measure(numbers.length > 0 ? numbers : [2, 8, 14]);
} finally {
  await undo.all();
}
process.exit(0);

interface Paid {
  readonly rate: number;
  readonly p50: number;
  readonly perUpdate: number;
  /** Requests to other servers, per payment. */
  readonly forwards: number;
  readonly errors: readonly string[];
  readonly cpuMs: string;
}

async function measure(counts: readonly number[]): Promise<void> {
  const site = await prepareSite({ profileDir: null }, undo, () => undefined);
  const env = {
    ...serviceEnvironment(site, "bench_servers"),
    ...(apart ? {} : { INTERNAL_URL: "http://127.0.0.1:0" }),
  };
  const start = async (name: string, roles: Roles): Promise<Child> => {
    const config: ServiceConfig = { env, logFile: join(site.dataDir, "logs", `${name}.log`), roles };
    return Child.start({ entry: "processes/payments.ts", config, profileDir: null });
  };
  const worker = await start("worker", { server: false, worker: true });
  undo.add(() => worker.stop());
  const servers: Child[] = [];
  undo.add(() => Promise.all(servers.map((server) => server.stop())));
  const resize = async (count: number): Promise<void> => {
    while (servers.length < count)
      servers.push(await start(`server-${String(servers.length)}`, { server: true, worker: false }));
    await Promise.all(servers.splice(count).map((server) => server.stop()));
  };
  await resize(1);
  const { agents, owner, place } = await createOrganizationWithAgents(
    env,
    portOf(servers[0]?.port ?? null),
    1,
  );
  const ledger = site.temporal.workflow.getHandle(ledgerWorkflowId(place.projectId));
  const updates = async () => (await ledger.query<LedgerStateView>(LEDGER_STATE_QUERY)).revision;
  const forwards = async (): Promise<number> => {
    const texts = servers.map(async ({ port }) =>
      (await fetch(`http://127.0.0.1:${String(portOf(port))}/metrics`)).text(),
    );
    const found = (await Promise.all(texts)).map((text) =>
      /ledger_forwards_total\{result="answered"\} (\d+)/.exec(text),
    );
    return found.reduce((sum, each) => sum + Number(each?.[1] ?? 0), 0);
  };
  const cpu = (): Promise<CpuMs> => {
    const own = servers.map(({ pid }, index) => [`server-${String(index)}`, pid] as const);
    return readCpu({ ...site.pids(), worker: worker.pid, ...Object.fromEntries(own) });
  };
  const pay = async (seconds: number, among = agents, turnsMax = Infinity): Promise<Paid> => {
    const used = spare ? servers.slice(0, 1) : servers;
    const clients = used.map(({ port }) => new LoadClient(portOf(port), CONNECTIONS));
    const latencies: number[] = [];
    const errors: string[] = [];
    const [before, forwarded, cpuBefore] = await Promise.all([updates(), forwards(), cpu()]);
    const startedAt = performance.now();
    await Promise.all(
      Array.from({ length: CONNECTIONS }, async (_each, number) => {
        const client = clients[number % clients.length];
        for (let turn = number; turn < turnsMax; turn += CONNECTIONS) {
          if (performance.now() >= startedAt + seconds * 1_000) break;
          const sentAt = performance.now();
          const headers = { authorization: `Bearer ${among[turn % among.length]?.apiKey ?? ""}` };
          const error = await client?.send({ path: "/v1/payments", headers, body: ORDER });
          if (typeof error === "string") errors.push(error);
          else latencies.push(performance.now() - sentAt);
        }
      }),
    );
    const tookSeconds = (performance.now() - startedAt) / 1_000;
    const [after, forwardedAfter, cpuAfter] = await Promise.all([updates(), forwards(), cpu()]);
    for (const client of clients) client.close();
    latencies.sort((a, b) => a - b);
    const paid = latencies.length;
    return {
      rate: paid / tookSeconds,
      p50: latencies[paid >> 1] ?? 0,
      perUpdate: paid / (after - before),
      forwards: (forwardedAfter - forwarded) / paid,
      errors,
      cpuMs: cpuOf(cpuUsed(cpuBefore, cpuAfter), paid),
    };
  };
  const measured = async (count: number): Promise<Paid> => {
    await resize(count);
    await pay(WARM_UP_SECONDS);
    return pay(SECONDS);
  };
  await pay(SECONDS);
  const port = portOf(servers[0]?.port ?? null);
  const fresh = await createAgents({ port, owner, teamIds: place.teamIds, count: FRESH_AGENTS });
  const payOnce = () => pay(FIRST_SECONDS_MAX, fresh.agents, FRESH_AGENTS);
  const first = await payOnce();
  say("first", first, null);
  const next = await payOnce();
  say("next", next, next.rate / first.rate);
  let before = await measured(1);
  say("1 server", before, null);
  for (const count of counts) {
    const several = await measured(count);
    const after = await measured(1);
    say(`${String(count)} servers`, several, (2 * several.rate) / (before.rate + after.rate));
    say("1 server", after, null);
    before = after;
  }
}

/** Processor time of a payment by kind of process. */
function cpuOf(used: CpuMs, payments: number): string {
  const { machine: _machine, ...processes } = used;
  const kinds = new Map<string, number>();
  for (const [name, ms] of Object.entries(processes)) {
    const [kind = name] = name.split("-");
    kinds.set(kind, (kinds.get(kind) ?? 0) + (ms ?? 0) / payments);
  }
  return [...kinds].map(([kind, ms]) => `${kind} ${ms.toFixed(1)}`).join(", ");
}

function say(
  title: string,
  { cpuMs, errors, forwards, p50, perUpdate, rate }: Paid,
  ratio: number | null,
): void {
  const line = [
    title.padEnd(10),
    `${rate.toFixed(1)}/s`,
    ...(ratio === null ? [] : [`${ratio.toFixed(2)} of one`]),
    `p50 ${p50.toFixed(0)} ms`,
    `${perUpdate.toFixed(1)} an update`,
    `${forwards.toFixed(2)} forwards a payment`,
    `${String(errors.length)} errors ${errors[0]?.slice(0, 100) ?? ""}`,
    `processor ms a payment: ${cpuMs}`,
  ];
  process.stdout.write(`${line.join("  ")}\n`);
}
