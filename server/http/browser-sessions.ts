import { parseCookie, stringifySetCookie } from "cookie";
import { z } from "zod";
import type { Request, Response } from "express";
import {
  COOKIE_REQUEST_HEADER,
  COOKIE_REQUEST_VALUE,
  connectCookieName,
  cookieNames,
  DEVICE_PATH,
  type CookieNames,
  isSecure,
  REFRESH_PATH,
  SSO_CALLBACK_PATH,
} from "../../src/contract/cookies.ts";
import { answersSession, type OperationId, operations } from "../../src/contract/registry.ts";
import { type Refusal, refusal } from "../../src/domain/errors.ts";
import type { SessionTokensIssued } from "../../src/identity/sessions.ts";
import type { Reply } from "../handlers/types.ts";
import { DEVICE_TOKEN_LIFETIME_SECONDS } from "../../src/identity/device-token.ts";
import type { RequestOrigins } from "./request-origins.ts";
import { authorizationOf } from "./credentials.ts";

/**
 * Format of session, refresh and device tokens: three or four base64url parts. An API key has no dot, so it cannot pass
 * as a cookie.
 */
const TOKEN = /^[\w-]{1,3000}(?:\.[\w-]{1,3000}){2,3}$/;

/** Operations that take the token from a page's link. */
const TAKES_LINK: ReadonlySet<OperationId> = new Set<OperationId>([
  "setUp",
  "checkSetUp",
  "checkInvite",
  "acceptInvite",
  "startSso",
]);

/** Time a browser keeps a sign-in that it has begun at an identity provider. */
const SSO_FLOW_LIFETIME_MS = 10 * 60_000;

const SAFE_METHODS: ReadonlySet<string> = new Set(["GET", "HEAD"]);

const NOT_SAME_ORIGIN =
  "A session in cookies is for the service's own pages, at its BASE_URL: the request must be same-origin.";

/** A request's body as the operation sees it, and whether the response's tokens go into cookies. */
export interface Received {
  readonly body: unknown;
  readonly inCookies: boolean;
}

/**
 * Browser sessions in cookies that scripts cannot read. A cookie is a credential only without an Authorization header.
 * For a change, it must also come from a page of this exact origin: SameSite=Strict excludes other sites, this check
 * excludes other origins of the same site.
 */
export class BrowserSessions {
  readonly #names: CookieNames;
  readonly #secure: boolean;
  readonly #origin: string;

  readonly #requestOrigins: RequestOrigins;

  constructor(baseUrl: string, requestOrigins: RequestOrigins) {
    this.#requestOrigins = requestOrigins;
    this.#names = cookieNames(baseUrl);
    this.#secure = isSecure(baseUrl);
    this.#origin = new URL(baseUrl).origin;
  }

  /**
   * Returns the refusal of a request from a foreign page; null if there is none. A request that sends cookies, requests
   * them or carries a link's secret must name this service as its host and come from its own pages. A request with an
   * Authorization header may use any host name, as API clients behind proxies do. Pages of other sites may not call
   * public operations either: they could not read the response, and would use up their visitor's rate limit.
   */
  foreignRefusalOf(id: OperationId, request: Request): Refusal | null {
    const isOpen = !TAKES_LINK.has(id) && !wantsCookies(request) && !this.#hasCookie(request);
    if (!isOpen) return this.#requestOrigins.refusalOf(request);
    return operations[id].access.kind === "public" ? this.#requestOrigins.foreignPage(request) : null;
  }

  /** Whether the request has a cookie of this service that may count, valid or not. */
  #hasCookie({ headers }: Request): boolean {
    if (headers.authorization !== undefined) return false;
    const { refresh, session } = this.#names;
    return pairsOf(headers.cookie).some((pair) => [refresh, session].includes(nameOf(pair)));
  }

  /** Returns the Authorization header, even an invalid one, in preference to the cookie. */
  authorizationOf(request: Request): string | undefined {
    const header = authorizationOf(request);
    if (header !== undefined) return header;
    const token = this.#credential(request, this.#names.session);
    return token === null ? undefined : `Bearer ${token}`;
  }

  /** Same as `authorizationOf`, and also accepts the cookie from a page of one of `origins`. */
  authorizationFrom(origins: readonly string[], request: Request): string | undefined {
    const header = authorizationOf(request);
    const { cookie, origin } = request.headers;
    if (header !== undefined || origin === undefined || !origins.includes(origin)) return header;
    const token = soleToken(cookie, this.#names.session);
    return token === null ? undefined : `Bearer ${token}`;
  }

  /**
   * Only this service's pages may request cookies; otherwise another site could sign its visitors in to a foreign
   * account.
   */
  refusalOf(id: OperationId, request: Request): Refusal | null {
    const refusedHere = answersSession(id) && wantsCookies(request) && !this.#isSameOrigin(request);
    return refusedHere ? refusal("UNAUTHORIZED", NOT_SAME_ORIGIN) : null;
  }

  /**
   * Completes the body from the cookies. A refresh without a token in its body uses the cookie, and is always answered
   * in cookies: a script must not see what was hidden from it. A sign-in carries the device of its cookie.
   */
  receive(id: OperationId, request: Request, body: unknown): Received {
    const inCookies = answersSession(id) && wantsCookies(request);
    if (id === "signIn") return { body: this.#fromItsDevice(request, body), inCookies };
    if (id === "finishSso") return { body: this.#withItsFlow(request, body), inCookies };
    if (id === "connectClient" || id === "denyConnection")
      return { body: fromItsBrowser(request, body), inCookies };
    if (id !== "refreshSession" || !isEmpty(body)) return { body, inCookies };
    const refreshToken = this.#credential(request, this.#names.refresh);
    return refreshToken === null ? { body, inCookies } : { body: { refreshToken }, inCookies: true };
  }

  #fromItsDevice(request: Request, body: unknown): unknown {
    if (typeof body !== "object" || body === null || Array.isArray(body) || "deviceToken" in body)
      return body;
    const deviceToken = this.#credential(request, this.#names.device);
    return deviceToken === null ? body : { ...body, deviceToken };
  }

  /** Returns the response body and sets the cookies that belong to it. */
  answer(
    id: OperationId,
    response: Response,
    { inCookies }: Pick<Received, "inCookies">,
    reply: Reply<unknown>,
  ): unknown {
    const { body, session, ssoFlow } = reply;
    if (ssoFlow !== undefined) this.#keepFlow(response, ssoFlow);
    if (id === "signOut") this.#clear(response);
    if (session === undefined) return body;
    if (inCookies) this.#set(response, session);
    const { deviceToken, refreshToken, token } = session;
    const device = deviceToken === null ? {} : { deviceToken };
    return inCookies ? body : Object.assign({ token, refreshToken, ...device }, body);
  }

  /** Adds to the identity provider's answer what the browser kept of the sign-in. */
  #withItsFlow({ headers }: Request, body: unknown): unknown {
    const given = z.looseObject({}).safeParse(body).data;
    const flow = soleValue(headers.cookie, this.#names.sso);
    return given === undefined || "flow" in given || flow === null ? body : { ...given, flow };
  }

  #keepFlow(response: Response, flow: string | null): void {
    const expires = new Date(flow === null ? 0 : Date.now() + SSO_FLOW_LIFETIME_MS);
    const attributes = {
      path: SSO_CALLBACK_PATH,
      httpOnly: true,
      sameSite: "strict",
      secure: this.#secure,
    } as const;
    const cookie = { name: this.#names.sso, value: flow ?? "", expires, ...attributes };
    response.append("Set-Cookie", stringifySetCookie(cookie));
  }

  #set(response: Response, issued: SessionTokensIssued): void {
    const { deviceToken, expiresAt, refreshToken, sessionEndsAt, token } = issued;
    this.#append(response, this.#names.session, "/", token, new Date(expiresAt));
    this.#append(response, this.#names.refresh, REFRESH_PATH, refreshToken, sessionEndsAt);
    if (deviceToken === null) return;
    const known = new Date(Date.now() + DEVICE_TOKEN_LIFETIME_SECONDS * 1_000);
    this.#append(response, this.#names.device, DEVICE_PATH, deviceToken, known);
  }

  /** Keeps the device cookie, so that the device stays known at the next sign-in. */
  #clear(response: Response): void {
    const past = new Date(0);
    this.#append(response, this.#names.session, "/", "", past);
    this.#append(response, this.#names.refresh, REFRESH_PATH, "", past);
  }

  #append(response: Response, name: string, path: string, value: string, expires: Date): void {
    const attributes = { httpOnly: true, sameSite: "strict", secure: this.#secure } as const;
    response.append("Set-Cookie", stringifySetCookie({ name, value, path, expires, ...attributes }));
  }

  #credential(request: Request, name: string): string | null {
    if (request.headers.authorization !== undefined) return null;
    if (!SAFE_METHODS.has(request.method) && !this.#isSameOrigin(request)) return null;
    return soleToken(request.headers.cookie, name);
  }

  /** Judges by Sec-Fetch-Site, or by Origin for an older browser without it. A repeated header matches neither. */
  #isSameOrigin({ headers }: Request): boolean {
    const site = headers["sec-fetch-site"];
    return site === undefined ? headers.origin === this.#origin : site === "same-origin";
  }
}

/** Adds the cookie of the browser in which a client's request began. The cookie is not a credential. */
function fromItsBrowser({ headers }: Request, body: unknown): unknown {
  const given = z.looseObject({ connectionId: z.string() }).safeParse(body).data;
  if (given === undefined || "browserToken" in given) return body;
  const browserToken = soleValue(headers.cookie, connectCookieName(given.connectionId));
  return browserToken === null ? body : { ...given, browserToken };
}

const wantsCookies = (request: Request): boolean =>
  request.headers[COOKIE_REQUEST_HEADER] === COOKIE_REQUEST_VALUE;

const isEmpty = (body: unknown): boolean =>
  body === undefined || (typeof body === "object" && body !== null && Object.keys(body).length === 0);

const pairsOf = (header: string | undefined): readonly string[] => (header ?? "").split(";");
const nameOf = (pair: string): string => pair.split("=", 1)[0]?.trim() ?? "";

/** Returns the cookie's token. Two cookies of the same name are rejected, since one may have been planted. */
function soleToken(header: string | undefined, name: string): string | null {
  const value = soleValue(header, name);
  return value !== null && TOKEN.test(value) ? value : null;
}

function soleValue(header: string | undefined, name: string): string | null {
  const [pair, second] = pairsOf(header).filter((each) => nameOf(each) === name);
  if (pair === undefined || second !== undefined) return null;
  return parseCookie(pair, { decode: (text) => text })[name] ?? null;
}
