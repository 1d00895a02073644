import { connect, createServer, type Server } from "node:net";
import { z } from "zod";
import { EngineError, reasonOf } from "./errors.ts";
import { hasErrorCode } from "../lib/error-code.ts";
import type { TemporalDevConfig } from "./temporal-config.ts";

export const LOOPBACK = "127.0.0.1";
const MONGODB_PORT_DEFAULT = 27_017;
const CHAIN_PORT_DEFAULT = 8_545;
const CARD_NETWORK_PORT_DEFAULT = 12_120;

function listen(port: number): Promise<Server> {
  return new Promise((resolve, reject) => {
    const server = createServer();
    server.once("error", reject);
    server.listen({ port, host: LOOPBACK, exclusive: true }, () => {
      resolve(server);
    });
  });
}

function portOf(server: Server): number {
  const address = server.address();
  if (address === null || typeof address === "string") throw new Error("a TCP server has a port");
  return address.port;
}

const close = (server: Server): Promise<void> =>
  new Promise((resolve) => {
    server.close(() => {
      resolve();
    });
  });

/** A requested port: 0 for any free one, and the variable that changes it. */
export interface PortRequest {
  readonly port: number;
  readonly variable: string;
}

async function hold({ port, variable }: PortRequest): Promise<Server> {
  try {
    return await listen(port);
  } catch (error) {
    const cause = hasErrorCode(error, "EADDRINUSE") ? "another program listens on it" : reasonOf(error);
    throw new EngineError(
      "PORT_TAKEN",
      `Port ${String(port)} of ${LOOPBACK} is taken (${cause}): end that program, or set ${variable} to another port (0: any free one).`,
      { cause: error },
    );
  }
}

/**
 * Chooses free port numbers for the requests. All are held open while they are chosen, so no two are equal. Throws
 * EngineError PORT_TAKEN, which names the port and the variable.
 */
export async function choosePorts<K extends string>(
  wishes: Readonly<Record<K, PortRequest>>,
): Promise<Record<K, number>>;
export async function choosePorts(
  wishes: Readonly<Record<string, PortRequest>>,
): Promise<Record<string, number>> {
  const held: Server[] = [];
  const ports: Record<string, number> = {};
  try {
    for (const [name, request] of Object.entries(wishes)) {
      const server = await hold(request);
      held.push(server);
      ports[name] = portOf(server);
    }
    return ports;
  } finally {
    await Promise.all(held.map(close));
  }
}

/** Whether something on the loopback interface accepts connections on the port. */
export function accepts(port: number, host: string = LOOPBACK): Promise<boolean> {
  return new Promise((resolve) => {
    const socket = connect({ port, host });
    const answer = (open: boolean) => (): void => {
      socket.destroy();
      resolve(open);
    };
    socket.once("connect", answer(true));
    socket.once("error", answer(false));
  });
}

const portSchema = z.coerce.number().int().min(0).max(65_535);

function portFrom(env: NodeJS.ProcessEnv, variable: string, fallback: number): number {
  const value = env[variable];
  if (value === undefined || value === "") return fallback;
  const parsed = portSchema.safeParse(value);
  if (parsed.success) return parsed.data;
  throw new EngineError("CONFIG", `${variable} is not a port: it must be a whole number from 0 to 65535.`);
}

export interface EnginePorts {
  readonly mongodb: number;
  readonly temporal: number;
  readonly temporalUi: number;
  readonly chain: number;
  /** Any free port if omitted. */
  readonly cardNetwork?: number;
}

/** Returns the engines' ports from the environment and temporal-dev.yaml. Throws EngineError CONFIG. */
export const enginePorts = (env: NodeJS.ProcessEnv, config: TemporalDevConfig): EnginePorts => ({
  mongodb: portFrom(env, "MONGODB_PORT", MONGODB_PORT_DEFAULT),
  temporal: portFrom(env, "TEMPORAL_PORT", config.ports.frontend),
  temporalUi: portFrom(env, "TEMPORAL_UI_PORT", config.ports.ui),
  chain: portFrom(env, "CHAIN_PORT", CHAIN_PORT_DEFAULT),
  cardNetwork: portFrom(env, "CARD_NETWORK_PORT", CARD_NETWORK_PORT_DEFAULT),
});
