import { readFileSync } from "node:fs";
import type { RequestListener, ServerResponse } from "node:http";
import type { Socket } from "node:net";
import { Gate } from "../../src/lib/gate.ts";
import { countedAddress } from "../../src/limits/address.ts";

/** Maximum requests that a connection may send ahead of their responses. Each is kept in memory until then. */
const AHEAD_MAX = 4;

/** Timeouts for a client that reads a response slowly. */
export interface TakingBounds {
  /** Timeout without progress while data waits to be sent. */
  readonly stalledMs: number;
  /** Timeout for sending the rest of a response that the service has written completely. */
  readonly wholeMs: number;
}
const TAKING: TakingBounds = { stalledMs: 60_000, wholeMs: 300_000 };

/** Limit of open files assumed if the kernel reports none. */
const OPEN_FILES_ASSUMED = 1_024;

/** Upper bound on connections: more help no client. */
const CONNECTIONS_MAX = 10_000;

/**
 * Maximum connections of a listener: half of the process's open files, since it also needs descriptors for its own
 * files and its engines.
 */
export function connectionsMax(): number {
  return Math.min(CONNECTIONS_MAX, Math.floor(openFilesMax() / 2));
}

function openFilesMax(): number {
  try {
    const [, soft = ""] = /^Max open files\s+(\d+)/m.exec(readFileSync("/proc/self/limits", "utf8")) ?? [];
    return Number(soft) || OPEN_FILES_ASSUMED;
  } catch {
    return OPEN_FILES_ASSUMED;
  }
}

/** Maximum share of a listener's connections for one address. */
export interface AddressShare {
  readonly ofAddressMax: number;
  /** Whether an address is a trusted proxy's. A proxy's connections belong to many clients and are not limited. */
  readonly isProxy: (address: string) => boolean;
  /** Called for a refused address, at most once a minute. */
  readonly onRefused: (address: string) => void;
}

/** Default share of one address, which may be that of all clients behind one NAT. */
export const ofAddressMax = (): number => Math.floor(connectionsMax() / 4);

/** Interval between warnings about addresses over their share. */
const WARNING_INTERVAL_MS = 60_000;

export class AddressShares {
  readonly #open = new Gate(Infinity);
  #warnedAtMs = -Infinity;

  /** Returns whether a connection may stay. Closes one beyond its address's share. */
  admit(socket: Socket, { isProxy, ofAddressMax: max, onRefused }: AddressShare): boolean {
    const { remoteAddress } = socket;
    if (remoteAddress === undefined || isProxy(remoteAddress)) return true;
    const name = countedAddress(remoteAddress) ?? remoteAddress;
    const permit = this.#open.enter({ name, max });
    if (permit === null) {
      socket.destroy();
      if (performance.now() - this.#warnedAtMs > WARNING_INTERVAL_MS) {
        this.#warnedAtMs = performance.now();
        onRefused(name);
      }
      return false;
    }
    socket.once("close", () => permit.release());
    return true;
  }
}

/** Maximum time until a connection's first byte. */
const FIRST_BYTE_TIMEOUT_MS = 10_000;

/** Ends a connection that sends nothing: a listener's timeouts begin only with a request's first byte. */
export function endIfSilent(socket: Socket, withinMs = FIRST_BYTE_TIMEOUT_MS): void {
  const timer = setTimeout(() => {
    if (socket.bytesRead === 0) socket.destroy();
  }, withinMs);
  timer.unref();
  socket.once("close", () => clearTimeout(timer));
}

/** Closes connections whose client does not read, because each holds its response and requests in memory. */
function cutWhereUntaken(response: ServerResponse, { stalledMs, wholeMs }: TakingBounds): void {
  response.setTimeout(stalledMs);
  response.on("timeout", () => {
    // Without pending data the service itself has been idle.
    if (response.writableLength > 0) response.destroy();
    else response.setTimeout(stalledMs);
  });
  response.once("prefinish", () => {
    const timer = setTimeout(() => response.destroy(), wholeMs);
    timer.unref();
    response.once("close", () => clearTimeout(timer));
  });
}

/**
 * Handles the requests of one connection in sequence: responses must go out in order, so a request starts only once the
 * one before it is answered. Cuts a connection that sends too far ahead or does not read its responses.
 */
export function oneAtATime(application: RequestListener, taking = TAKING): RequestListener {
  const waiting = new WeakMap<Socket, (() => void)[]>();
  return (request, response) => {
    const { socket } = request;
    const begin = (): void => {
      response.once("close", () => {
        const next = waiting.get(socket)?.shift();
        if (next === undefined || socket.destroyed) waiting.delete(socket);
        else next();
      });
      cutWhereUntaken(response, taking);
      application(request, response);
    };
    const queue = waiting.get(socket);
    if (queue === undefined) {
      waiting.set(socket, []);
      begin();
    } else if (queue.length < AHEAD_MAX) queue.push(begin);
    else socket.destroy();
  };
}
