import { readFileSync } from "node:fs";
import type { RequestListener, ServerResponse } from "node:http";
import type { Socket } from "node:net";
import { Gate } from "../../src/lib/gate.ts";
import { countedAddress } from "../../src/limits/address.ts";

/** Requests that a connection may send ahead of their answers. Each is in memory until then. */
const AHEAD_MAX = 4;

/** Bounds on how slowly a client may read an answer. */
export interface TakingBounds {
  /** Nothing of it is taken for so long, while something waits to go. */
  readonly stalledMs: number;
  /** It was given whole, and has not gone after so long. */
  readonly wholeMs: number;
}
const TAKING: TakingBounds = { stalledMs: 60_000, wholeMs: 300_000 };

/** Assumed limit of open files where the kernel doesn't tell it. */
const OPEN_FILES_ASSUMED = 1_024;

/** More connections than this help no client. */
const CONNECTIONS_MAX = 10_000;

/**
 * Maximum connections of a listener: half of the files that this process may open, since it needs others for its own
 * files and engines.
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

/** The share of a listener's connections that one address may have. */
export interface AddressShare {
  readonly ofAddressMax: number;
  /** Whether an address is a trusted proxy's: its connections are many clients', and have no bound of their own. */
  readonly isProxy: (address: string) => boolean;
  /** Told of a refused address, once a minute at most. */
  readonly onRefused: (address: string) => void;
}

/** The share where no other is set: an address is also all clients behind one NAT. */
export const ofAddressMax = (): number => Math.floor(connectionsMax() / 4);

/** Interval between warnings about addresses that are over their share. */
const WARNING_INTERVAL_MS = 60_000;

/** The connections of a listener, by address. */
export class AddressShares {
  readonly #open = new Gate(Infinity);
  #warnedAtMs = -Infinity;

  /** Whether a connection may stay; one beyond its address's share is closed. */
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
const FIRST_BYTE_MS = 10_000;

/** Ends a connection that says nothing: a listener's timeouts begin with a request's first byte. */
export function endIfSilent(socket: Socket, withinMs = FIRST_BYTE_MS): void {
  const timer = setTimeout(() => {
    if (socket.bytesRead === 0) socket.destroy();
  }, withinMs);
  timer.unref();
  socket.once("close", () => clearTimeout(timer));
}

/** Closes connections whose client does not read: each holds its response and requests in memory. */
function cutWhereUntaken(response: ServerResponse, { stalledMs, wholeMs }: TakingBounds): void {
  response.setTimeout(stalledMs);
  response.on("timeout", () => {
    // Else nothing has been written for a while, which is the service's doing.
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
 * Requests of one connection one after another: the next one begins once the one before it is answered, as its answer must wait for
 * that anyway. A connection that sends far ahead is cut, and one that does not take its answers.
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
