import { ForwardSeals } from "../src/actors/forwarding.ts";
import { LedgerPeers, type LedgerRoute } from "../src/actors/ledger-peers.ts";
import type { Ledgers } from "../src/actors/ledgers.ts";
import { newUuid } from "../src/lib/ids.ts";
import type { Logger } from "../src/lib/logger.ts";
import { packageVersion } from "../src/lib/package-root.ts";
import type { Metrics } from "../src/metrics/metrics.ts";
import { AccessProofs } from "../src/secrets/access-proofs.ts";
import { forgedRecordsLog } from "../src/secrets/forged-records-log.ts";
import type { MasterKey } from "../src/secrets/master-key.ts";
import { Sealer } from "../src/secrets/sealer.ts";
import type { Connections } from "../src/store/connections.ts";
import { MongoServers } from "../src/store/servers.ts";
import { forwardedCommands } from "./http/forwarded-commands.ts";
import { type HttpServer, listen } from "./http/server.ts";
import { type Config, KEEP_ALIVE_DEFAULT_SECONDS } from "./config.ts";

/** A third of the time after which a silent server gets no more forwarded commands. */
const HEARTBEAT_INTERVAL_MS = 2_000;

export interface PeersOptions {
  readonly config: Pick<Config, "host" | "internalUrl">;
  readonly connections: Pick<Connections, "db">;
  readonly masterKey: MasterKey;
  readonly metrics: Metrics;
  readonly clock: () => Date;
  readonly logger: Logger;
}

/** This process's membership among the servers of its database. */
export interface Peers {
  readonly route: LedgerRoute;
  /** Starts accepting commands from other servers, if this process has an internal address. */
  serve(ledgers: Ledgers): Promise<void>;
  /** Asks other servers to stop forwarding. Commands that still arrive are answered. */
  leave(): Promise<void>;
  close(): Promise<void>;
}

export function openPeers(options: PeersOptions): Peers {
  const { clock, config, connections, logger, masterKey, metrics } = options;
  const serverId = newUuid();
  const proofs = new AccessProofs(masterKey.macs("access-proofs"), forgedRecordsLog(logger, metrics));
  const servers = new MongoServers(connections.db, proofs, packageVersion());
  const seals = new ForwardSeals(new Sealer(masterKey.deriveKeys("server-calls")), () => clock().getTime());
  const route = new LedgerPeers({
    ownId: serverId,
    live: () => servers.live(),
    seals,
    monotonicMs: () => performance.now(),
    onForwarded: (result) => metrics.forwarded(result),
    onError: (message, err) => logger.warn({ err }, message),
  });
  let http: HttpServer | null = null;
  let heartbeat: NodeJS.Timeout | undefined;
  let announcing: Promise<void> = Promise.resolve();
  return {
    route,
    async serve(ledgers) {
      if (config.internalUrl === null) return;
      const url = new URL(config.internalUrl);
      http = await listen(config.host, Number(url.port === "" ? 80 : url.port), {
        // Other servers keep their connections, and one closed just as it is used again would count as a failure.
        keepAliveSeconds: KEEP_ALIVE_DEFAULT_SECONDS,
        variable: "INTERNAL_URL",
      });
      http.serve(forwardedCommands({ ledgers, seals, serverId, logger }));
      url.port = String(http.port);
      const announce = async (): Promise<void> => servers.announce({ id: serverId, url: url.origin });
      await announce();
      await route.refresh();
      heartbeat = setInterval(() => {
        announcing = announce().catch((err: unknown) =>
          logger.warn({ err }, "this server could not be announced to the others"),
        );
      }, HEARTBEAT_INTERVAL_MS);
    },
    async leave() {
      clearInterval(heartbeat);
      await announcing;
      if (http === null) return;
      await servers
        .remove(serverId)
        .catch((err: unknown) => logger.warn({ err }, "this server is still listed"));
    },
    async close() {
      await http?.drain();
      route.close();
    },
  };
}
