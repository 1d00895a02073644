import type { Socket } from "node:net";
import type { SecureContext } from "node:tls";
import { AddressRules } from "./addresses.ts";
import {
  CLOSED_NAME,
  type Destination,
  destinationOf,
  isClosedName,
  isUrlProblem,
  NOT_HTTPS,
  type UrlProblem,
} from "./destination.ts";
import { dial, trustOf } from "./dial.ts";
import { type AnswerBounds, exchange, type WholeAnswer, wholeExchange } from "./exchange.ts";
import { ExchangeFailure, REASONS, reasonOf } from "./reasons.ts";
import { resolveHost } from "./resolve.ts";

const JUDGE_LOOKUP_TIMEOUT_MS = 3_000;
const PUBLIC_PORTS: readonly number[] = [443, 8443];
/** Time to deliver a body that is cut at the timeout. */
const BODY_END_MS = 100;

export interface GuardOptions {
  /** Networks allowed beyond the public internet, for development and tests: CIDRs. Any port is allowed there. */
  readonly allowCidrs: readonly string[];
  /** PEM of certificate authorities trusted in addition to the usual ones; null for none. */
  readonly extraCa: string | null;
  /** Ports allowed on public addresses in addition to 443 and 8443. */
  readonly allowPorts?: readonly number[];
  /** Whether plain HTTP is allowed within `allowCidrs`. */
  readonly allowsHttp?: boolean;
  /** Resolver of names; `resolveHost` by default. */
  readonly resolve?: (host: string) => Promise<readonly string[]>;
}

export interface GuardedRequest {
  readonly url: string;
  readonly method: string;
  readonly headers: Readonly<Record<string, string>>;
  readonly body: string | null;
  /** Timeout of the whole exchange, including look-up and handshake. */
  readonly timeoutMs: number;
}

export type GuardedOutcome =
  | {
      readonly kind: "answered";
      readonly httpStatus: number;
      readonly bodyExcerpt: string;
      readonly elapsedMs: number;
    }
  | { readonly kind: "failed"; readonly reason: string; readonly elapsedMs: number };

/** The unmodified answer, or why there is none. `urlProblem`: nothing was sent, since the URL is not allowed. */
export type FetchOutcome =
  | ({ readonly kind: "answered" } & WholeAnswer)
  | { readonly kind: "failed"; readonly reason: string; readonly urlProblem: string | null };

/** Sends HTTPS requests to URLs given by strangers, which must lead to the public internet and nowhere else. */
export class GuardedFetch {
  readonly #rules: AddressRules;
  readonly #trust: SecureContext;
  readonly #ports: ReadonlySet<number>;
  readonly #allowsHttp: boolean;
  readonly #resolve: (host: string) => Promise<readonly string[]>;
  readonly #running = new Set<AbortController>();
  #closed = false;

  /** Throws a `PlainError` if a network or a certificate in the options cannot be read. */
  constructor(options: GuardOptions) {
    this.#rules = new AddressRules(options.allowCidrs);
    this.#trust = trustOf(options.extraCa);
    this.#ports = new Set([...PUBLIC_PORTS, ...(options.allowPorts ?? [])]);
    this.#allowsHttp = options.allowsHttp ?? false;
    this.#resolve = options.resolve ?? resolveHost;
  }

  /**
   * Returns what is wrong with a URL, in words for the caller who gave it ("must be https"), or null. A URL that is
   * fine now may not be when something is sent, so sending checks again.
   */
  async judge(url: string): Promise<string | null> {
    const found = await this.#bounded(JUDGE_LOOKUP_TIMEOUT_MS, (signal) => this.#find(url, signal)).catch(
      () => UNRESOLVED,
    );
    return isUrlProblem(found) ? found.message : null;
  }

  /** Sends a request. Never throws, never follows a redirect, never uses a proxy of the environment. */
  async send(request: GuardedRequest): Promise<GuardedOutcome> {
    const began = performance.now();
    const elapsedMs = (): number => Math.round(performance.now() - began);
    try {
      const answer = await this.#bounded(request.timeoutMs, async (signal) => {
        const { destination, socket } = await this.#dial(request.url, signal);
        return exchange(socket, destination, request);
      });
      return { kind: "answered", ...answer, elapsedMs: elapsedMs() };
    } catch (error) {
      return { kind: "failed", reason: reasonOf(error), elapsedMs: elapsedMs() };
    }
  }

  /** Like `send`, but returns headers and body unmodified. A body is cut at its limits or at the timeout. */
  async fetch(
    request: GuardedRequest,
    bounds: Pick<AnswerBounds, "bodyMaxBytes" | "headersMaxBytes">,
  ): Promise<FetchOutcome> {
    const until = performance.now() + request.timeoutMs;
    try {
      const answer = await this.#bounded(request.timeoutMs + BODY_END_MS, async (signal) => {
        const { destination, socket } = await this.#dial(request.url, signal);
        const bodyMaxMs = Math.max(0, until - performance.now());
        return wholeExchange(socket, destination, request, { ...bounds, bodyMaxMs });
      });
      return { kind: "answered", ...answer };
    } catch (error) {
      const urlProblem = error instanceof UrlRefused ? error.problem.message : null;
      return { kind: "failed", reason: reasonOf(error), urlProblem };
    }
  }

  /** Aborts the requests in flight; later ones fail. */
  close(): void {
    this.#closed = true;
    for (const controller of this.#running) controller.abort(new ExchangeFailure(REASONS.closed));
  }

  /** Runs work until its timeout or the guard's end, whichever comes first; then it fails with that reason. */
  async #bounded<T>(timeoutMs: number, work: (signal: AbortSignal) => Promise<T>): Promise<T> {
    if (this.#closed) throw new ExchangeFailure(REASONS.closed);
    const controller = new AbortController();
    const { signal } = controller;
    const timer = setTimeout(() => controller.abort(new ExchangeFailure(REASONS.timedOut)), timeoutMs);
    this.#running.add(controller);
    try {
      return await work(signal);
    } catch (error) {
      throw signal.aborted ? signal.reason : error;
    } finally {
      clearTimeout(timer);
      this.#running.delete(controller);
    }
  }

  async #dial(url: string, signal: AbortSignal): Promise<{ destination: Destination; socket: Socket }> {
    const found = await this.#find(url, signal);
    if (isUrlProblem(found)) throw new UrlRefused(found);
    const { destination, addresses } = found;
    const mayTalkTo = (address: string): boolean => {
      const reach = this.#rules.reachOf(address);
      return destination.isTls ? reach !== "refused" : reach === "allowed";
    };
    const socket = await dial({ destination, addresses, trust: this.#trust, mayTalkTo, signal });
    return { destination, socket };
  }

  /** Resolves a URL and checks all its addresses. */
  async #find(url: string, signal: AbortSignal): Promise<Found | UrlProblem> {
    const destination = destinationOf(url, this.#allowsHttp);
    if (isUrlProblem(destination)) return destination;
    const { host, isAddress } = destination;
    // A closed name is not resolved if no network is allowed that it could resolve to.
    if (!isAddress && isClosedName(host) && !this.#rules.allowsMore) return CLOSED_NAME;
    const addresses = isAddress ? [host] : await this.#addressesOf(host, signal);
    if (addresses.length === 0) return UNRESOLVED;
    return this.#judged(destination, addresses) ?? { destination, addresses };
  }

  async #addressesOf(host: string, signal: AbortSignal): Promise<readonly string[]> {
    const looking = this.#resolve(host).catch(() => []);
    return Promise.race([looking, aborted(signal)]);
  }

  /**
   * Returns what is wrong with the addresses. One address that is not allowed suffices to refuse, since the caller does
   * not choose which one is connected to.
   */
  #judged({ host, isAddress, isTls, port }: Destination, addresses: readonly string[]): UrlProblem | null {
    const reaches = addresses.map((address) => this.#rules.reachOf(address));
    const allAllowed = reaches.every((reach) => reach === "allowed");
    if (!isAddress && !allAllowed && isClosedName(host)) return CLOSED_NAME;
    if (reaches.includes("refused")) return isAddress ? CLOSED_LITERAL : CLOSED_ADDRESS;
    if (!isTls && !allAllowed) return NOT_HTTPS;
    return port > 0 && (allAllowed || this.#ports.has(port)) ? null : this.#closedPort();
  }

  #closedPort(): UrlProblem {
    const ports = [...this.#ports].toSorted((a, b) => a - b).join(" or ");
    return { message: `must have the port ${ports}`, reason: REASONS.closedPort };
  }
}

/** A URL that is not allowed, with the message for its giver. */
class UrlRefused extends ExchangeFailure {
  readonly problem: UrlProblem;
  constructor(problem: UrlProblem) {
    super(problem.reason);
    this.problem = problem;
  }
}

interface Found {
  readonly destination: Destination;
  readonly addresses: readonly string[];
}

const UNRESOLVED: UrlProblem = {
  message: "names a host that could not be resolved",
  reason: REASONS.unresolved,
};
const CLOSED_ADDRESS: UrlProblem = {
  message: "resolves to an address that is not public",
  reason: REASONS.closedAddress,
};
const CLOSED_LITERAL: UrlProblem = {
  message: "has an address that is not public",
  reason: REASONS.closedAddress,
};

/** Rejects when the signal is aborted, with the signal's reason. */
const aborted = (signal: AbortSignal): Promise<never> =>
  new Promise((_resolve, reject) => {
    if (signal.aborted) reject(signal.reason);
    signal.addEventListener("abort", () => reject(signal.reason), { once: true });
  });
