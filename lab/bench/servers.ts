import { join } from "node:path";
import type { Roles } from "../../server/roles.ts";
import { Child } from "./child.ts";
import { LoadClient } from "./load/client.ts";
import type { ServiceConfig } from "./processes/service.ts";
import { prepareSite, Undo } from "./run.ts";
import { createOrganizationWithAgents } from "./systems/payments.ts";
import { ORDER, portOf, serviceEnvironment } from "./systems/system.ts";

/**
 * One project's payments through 1, 2, 4 and 8 servers, and through 1 again: `node dist/bench/servers.js`; with `apart`, servers that do
 * not know of each other. All share the machine with the engines, so the ratios are lower bounds.
 */
const COUNTS = [1, 2, 4, 8, 1];
const CONNECTIONS = 32;
const SECONDS = 8;

const apart = process.argv.includes("apart");
const undo = new Undo();
try {
  await measure();
} finally {
  await undo.all();
}
process.exit(0);

async function measure(): Promise<void> {
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
  const { agents } = await createOrganizationWithAgents(env, portOf(servers[0]?.port ?? null), 1);
  const pay = async (seconds: number) => {
    const clients = servers.map(({ port }) => new LoadClient(portOf(port), CONNECTIONS));
    const latencies: number[] = [];
    const errors: string[] = [];
    const startedAt = performance.now();
    await Promise.all(
      Array.from({ length: CONNECTIONS }, async (_each, number) => {
        const client = clients[number % clients.length];
        for (let turn = number; performance.now() < startedAt + seconds * 1_000; turn += CONNECTIONS) {
          const sentAt = performance.now();
          const headers = { authorization: `Bearer ${agents[turn % agents.length]?.apiKey ?? ""}` };
          const error = await client?.send({ path: "/v1/payments", headers, body: ORDER });
          if (typeof error === "string") errors.push(error);
          else latencies.push(performance.now() - sentAt);
        }
      }),
    );
    const tookSeconds = (performance.now() - startedAt) / 1_000;
    for (const client of clients) client.close();
    latencies.sort((a, b) => a - b);
    return { rate: latencies.length / tookSeconds, p50: latencies[latencies.length >> 1] ?? 0, errors };
  };
  await pay(SECONDS);
  let ofOne: number | null = null;
  for (const count of COUNTS) {
    await resize(count);
    await pay(SECONDS / 2);
    const { errors, p50, rate } = await pay(SECONDS);
    ofOne ??= rate;
    const line = [
      `${String(count)} servers`,
      `${rate.toFixed(1)}/s`,
      `${(rate / ofOne).toFixed(2)} of one`,
      `p50 ${p50.toFixed(0)} ms`,
      `${String(errors.length)} errors`,
      errors[0]?.slice(0, 100) ?? "",
    ];
    process.stdout.write(`${line.join("  ")}\n`);
  }
}
