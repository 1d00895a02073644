import type { Request, Response } from "express";
import { refusal } from "../../src/domain/errors.ts";
import type { Result } from "../../src/domain/result.ts";
import { ok, refused } from "../../src/domain/result.ts";
import type { AuthenticationOptions, Authenticator } from "../../src/identity/authenticator.ts";
import { countedAddress } from "../../src/limits/address.ts";
import type { Limits, Requester } from "../../src/limits/limits.ts";
import { rateLimited, type RateLimitStatus } from "../../src/limits/fixed-window-limiter.ts";
import type { Surface } from "../../src/limits/plans.ts";
import type { BrowserSessions } from "./browser-sessions.ts";
import { authorizationOf } from "./credentials.ts";
import { isUnavailable } from "../../src/lib/unavailable.ts";

export interface AdmissionDependencies {
  readonly browsers: BrowserSessions;
  readonly authenticator: Authenticator;
  readonly limits: Limits;
}

/**
 * Runs the first two checks of every request under /v1 and /mcp: the credential and the limit per minute. Sets the rate
 * limit headers. Callers are authenticated only here.
 */
export class Admission {
  readonly #browsers: BrowserSessions;
  readonly #authenticator: Authenticator;
  readonly #limits: Limits;

  constructor({ authenticator, browsers, limits }: AdmissionDependencies) {
    this.#browsers = browsers;
    this.#authenticator = authenticator;
    this.#limits = limits;
  }

  /** Admits every caller without checking a credential. The request counts against its address. */
  async anyone(request: Request, response: Response): Promise<Result<Requester>> {
    const address = addressOf(request);
    const status = await this.#limits.ofAddress(address);
    setRateLimitHeaders(response, status);
    if (status.exceeded) return refused(rateLimited(status));
    return ok({ principal: null, caller: null, address });
  }

  /** Admits a look-up of a logo. It has a limit per address of its own, because a page shows many logos. */
  async logo(request: Request): Promise<Result<null>> {
    const status = await this.#limits.ofLogos(addressOf(request));
    return status.exceeded ? refused(rateLimited(status)) : ok(null);
  }

  /** Admits a client that registers itself, under a separate limit per address. */
  async registration(request: Request): Promise<Result<null>> {
    const status = await this.#limits.ofRegistrations(addressOf(request));
    return status.exceeded ? refused(rateLimited(status)) : ok(null);
  }

  /**
   * Admits a caller with a valid credential and counts the request against that credential. An invalid credential
   * counts against the address; once the address is over its limit, the caller is told only of the limit. A valid
   * credential passes even from such an address.
   */
  known(
    request: Request,
    response: Response,
    surface: Surface,
    options: AuthenticationOptions = {},
  ): Promise<Result<Requester>> {
    const authorization = this.#authorizationOf(request, surface);
    return this.#known(request, response, surface, authorization, { ...options, ...takenOn(surface) });
  }

  /** Same as `known`, and also accepts the session cookie from a page of one of `origins`. */
  ofUi(request: Request, response: Response, origins: readonly string[]): Promise<Result<Requester>> {
    const authorization = this.#browsers.authorizationFrom(origins, request);
    return this.#known(request, response, "rest", authorization, {});
  }

  async #known(
    request: Request,
    response: Response,
    surface: Surface,
    authorization: string | undefined,
    options: AuthenticationOptions,
  ): Promise<Result<Requester>> {
    const { caller, result } = await this.#authenticator.authenticate(authorization, options);
    if (caller === null) {
      if (result.ok) throw new Error("a principal without a caller");
      if (result.refusal.code === "SERVICE_UNAVAILABLE") {
        await this.showAddress(request, response);
        return result;
      }
      const admitted = await this.anyone(request, response);
      return admitted.ok ? result : admitted;
    }
    const principal = result.ok ? result.value : null;
    const requester = { principal, caller, address: addressOf(request) };
    const counted = await this.#count(request, response, surface, requester, 1);
    // A refusal of the credential (a paused agent's) takes precedence over the rate limit.
    if (!result.ok) return result;
    if (counted.ok || !isFromCache(requester)) return counted;
    const still = await this.still(request, surface, requester);
    return still.ok ? counted : still;
  }

  /**
   * Authenticates the caller again once the body has arrived. The sender decides how long the body takes, and a
   * revocation in between must hold for this request too. Does not count the request again.
   */
  async still(request: Request, surface: Surface, requester: Requester): Promise<Result<Requester>> {
    if (requester.principal === null) return ok(requester);
    const authorization = this.#authorizationOf(request, surface);
    const { result } = await this.#authenticator.authenticate(authorization, takenOn(surface));
    return result.ok ? ok({ ...requester, principal: result.value }) : result;
  }

  /** Counts the further messages of a JSON-RPC batch. */
  async more(
    request: Request,
    response: Response,
    surface: Surface,
    requester: Requester,
    requests: number,
  ): Promise<Result<Requester>> {
    return requests < 1 ? ok(requester) : this.#count(request, response, surface, requester, requests);
  }

  /** Admits a caller of a public operation: a credential is optional, but must be valid if present. */
  optionalCaller(request: Request, response: Response, surface: Surface): Promise<Result<Requester>> {
    const isAnonymous = this.#authorizationOf(request, surface) === undefined;
    return isAnonymous ? this.anyone(request, response) : this.known(request, response, surface);
  }

  /** Sets the address's rate limit headers without counting, for a response sent before authentication. */
  async showAddress(request: Request, response: Response): Promise<void> {
    setRateLimitHeaders(response, await this.#limits.statusOfAddress(addressOf(request)));
  }

  /** Sets rate limit headers for a request that is rejected at once: nothing is counted or looked up. */
  showUncounted(response: Response): void {
    setRateLimitHeaders(response, this.#limits.uncounted());
  }

  /** Returns the request's credential. MCP accepts no cookies. */
  #authorizationOf(request: Request, surface: Surface): string | undefined {
    return surface === "rest" ? this.#browsers.authorizationOf(request) : authorizationOf(request);
  }

  async #count(
    request: Request,
    response: Response,
    surface: Surface,
    requester: Requester,
    requests: number,
  ): Promise<Result<Requester>> {
    const { caller, principal } = requester;
    if (caller === null) throw new Error("an anonymous caller is counted by address only");
    try {
      // A known caller without an Authorization header is a browser with the session's cookie.
      const isDashboard = surface === "rest" && authorizationOf(request) === undefined;
      const status = isDashboard
        ? await this.#limits.ofDashboard(caller)
        : await this.#limits.ofCaller(surface, caller, principal, requests);
      setRateLimitHeaders(response, status);
      return status.exceeded ? refused(rateLimited(status)) : ok(requester);
    } catch (error) {
      if (!isUnavailable(error)) throw error;
      await this.showAddress(request, response);
      return refused(refusal("SERVICE_UNAVAILABLE", undefined, { retryAfterSeconds: 1 }));
    }
  }
}

/** Tokens of connections are valid for MCP only. */
const takenOn = (surface: Surface): AuthenticationOptions => ({ takesConnections: surface === "mcp" });

export const isFromCache = ({ principal }: Requester): boolean =>
  principal?.type === "agent" && principal.cached !== undefined;

/**
 * Returns the client's address as the socket or a trusted proxy reports it. Falls back to the proxy's own address if
 * the reported one is malformed.
 */
export const addressOf = ({ ip, socket }: Request): string =>
  countedAddress(ip) ?? countedAddress(socket.remoteAddress) ?? "unknown";

/** Rate limit headers of every response under /v1 and /mcp. */
export const rateLimitHeaders = ({ limit, remaining, resetSeconds }: RateLimitStatus) => ({
  "X-RateLimit-Limit": String(limit),
  "X-RateLimit-Remaining": String(remaining),
  "X-RateLimit-Reset": String(resetSeconds),
});

function setRateLimitHeaders(response: Response, status: RateLimitStatus): void {
  for (const [name, value] of Object.entries(rateLimitHeaders(status))) response.setHeader(name, value);
}

export const hasRateLimitHeaders = (response: Response): boolean => response.hasHeader("X-RateLimit-Limit");

/** Returns the surface whose limits apply to a path; null outside the API. */
export function surfaceOf(path: string): Surface | null {
  if (path === "/v1" || path.startsWith("/v1/")) return "rest";
  return path === "/mcp" || path.startsWith("/mcp/") ? "mcp" : null;
}
