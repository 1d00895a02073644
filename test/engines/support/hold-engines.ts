import { enginePorts } from "../../../src/engines/ports.ts";
import { startEngines } from "../../../src/engines/start.ts";
import { loadTemporalDevConfig } from "../../../src/engines/temporal-config.ts";

/** A service in miniature: starts the engines on DATA_DIR, says on one line what runs, and lives until it is ended. */
const env = process.env;
const engines = await startEngines({
  dataDir: env["DATA_DIR"] ?? "",
  env,
  ports: enginePorts(env, await loadTemporalDevConfig()),
  onProgress: () => undefined,
  onUnexpectedExit: () => undefined,
});
const { chain, mongodb, temporal } = engines;
process.stdout.write(
  `${JSON.stringify({ uri: mongodb.uri, rpcUrl: chain.rpcUrl, pids: [mongodb.pid, temporal.pid, chain.pid] })}\n`,
);
setInterval(() => undefined, 60_000);
