import { writeFile } from "node:fs/promises";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { childEnvironment } from "../../src/engines/environment.ts";
import { accepts, LOOPBACK } from "../../src/engines/ports.ts";
import { Member } from "./member.ts";

const POLL_MS = 50;
const STOP_GRACE_MS = 1_000;

export interface ProxyOptions {
  readonly binary: string;
  readonly dataDir: string;
  readonly env: NodeJS.ProcessEnv;
  /** Ports for clients and for the service. */
  readonly ports: { readonly http: number; readonly temporal: number };
  readonly servers: readonly number[];
  /** Addresses of Temporal's frontends. */
  readonly frontends: readonly string[];
}

/** haproxy before the servers and before Temporal's frontends. */
export async function startProxy(options: ProxyOptions): Promise<Member> {
  const { binary, dataDir, env, ports } = options;
  const file = join(dataDir, "haproxy.cfg");
  await writeFile(file, configurationOf(options));
  const member = new Member({
    name: "haproxy",
    binary,
    args: ["-f", file, "-db"],
    env: childEnvironment(env),
    logFile: join(dataDir, "logs", "haproxy.log"),
    stopGraceMs: STOP_GRACE_MS,
    remedy: "See its log.",
    ready: async (signal) => {
      while (!signal.aborted && !(await accepts(ports.http))) await sleep(POLL_MS);
    },
  });
  return member.start();
}

/** Connections of gRPC are long: each is passed through to one frontend. */
const configurationOf = ({ frontends, ports, servers }: ProxyOptions): string => `global
  maxconn 4000
defaults
  timeout connect 2s
  timeout client 65s
  timeout server 65s
  option redispatch
  retries 2
listen temporal
  mode tcp
  timeout client 1h
  timeout server 1h
  bind ${LOOPBACK}:${String(ports.temporal)}
  balance leastconn
${frontends.map((address, index) => `  server t${String(index)} ${address} check inter 1s fall 2 rise 1 on-marked-down shutdown-sessions`).join("\n")}
listen http
  mode http
  bind ${LOOPBACK}:${String(ports.http)}
  balance roundrobin
  option httpchk GET /readyz
  http-check expect status 200
  timeout check 3s
  option forwardfor
  http-request deny if { path /metrics }
${servers.map((port, index) => `  server s${String(index)} ${LOOPBACK}:${String(port)} check inter 1s fall 3 rise 1`).join("\n")}
`;
