import { createRemoteJWKSet, customFetch, decodeJwt, jwtVerify, type JWTVerifyGetKey } from "jose";
import { LRUCache } from "lru-cache";
import * as client from "openid-client";
import { z } from "zod";
import { name as personName } from "../../contract/primitives.ts";
import type { GuardedFetch } from "../../lib/guarded-fetch/guarded-fetch.ts";

const REQUEST_TIMEOUT_MS = 2_500;
const ANSWER_MAX_BYTES = 256 * 1_024;
/** Pause between two reads of a provider's keys, which strangers' tokens with unknown keys cause. */
const KEYS_PAUSE_MS = 5_000;
/** Cache of metadata and keys. */
const KNOWN = { max: 200, ttl: 10 * 60_000 } as const;

export interface ProviderClient {
  readonly issuer: string;
  readonly clientId: string;
  readonly clientSecret: string;
  /** Distinct for each organization, so that a response identifies its organization. */
  readonly redirectUri: string;
}

/** Secrets of one authorization, which its browser brings back. */
export interface Flow {
  readonly state: string;
  readonly nonce: string;
  readonly verifier: string;
}

/** The parameters of an authorization's response that are used. */
export interface Answer {
  readonly code?: string | undefined;
  readonly state?: string | undefined;
  readonly iss?: string | undefined;
  readonly error?: string | undefined;
}

/** A person as stated by a provider, identified by `issuer` and `subject` alone. */
export interface Identity {
  readonly issuer: string;
  readonly subject: string;
  /** The provider's session id; null if there is none. */
  readonly sid: string | null;
  readonly email: string | null;
  readonly emailVerified: boolean;
  readonly name: string | null;
}

/** The provider could not be reached, or its answer can't be trusted. */
export class ProviderFailure extends Error {
  override readonly name = "ProviderFailure";
}

const claimed = z.looseObject({
  sub: z.string().min(1).max(255),
  sid: z.string().max(255).optional(),
  // Directories hold what no account here could have: that keeps nobody out.
  email: z.email().max(254).optional().catch(undefined),
  email_verified: z.unknown().optional(),
  hd: z.unknown().optional(),
  name: z.string().trim().pipe(personName).optional().catch(undefined),
});

const GOOGLE = "https://accounts.google.com";

/**
 * Whether an address is the person's now, by their provider's word. Google verifies the address of anybody's account once, and vouches
 * for none but those of its Workspaces, whose domain it names: a person who has left may have made an account of their own.
 */
export const isProvedEmail = (
  issuer: string,
  { email_verified: isVerified, hd }: { readonly email_verified?: unknown; readonly hd?: unknown },
): boolean => isVerified === true && (issuer !== GOOGLE || (typeof hd === "string" && hd !== ""));

const LOGOUT_EVENT = "http://schemas.openid.net/event/backchannel-logout";
const LOGOUT_MAX_AGE = "5 minutes";
const logoutClaims = z
  .looseObject({
    sub: z.string().optional(),
    sid: z.string().optional(),
    events: z.looseObject({ [LOGOUT_EVENT]: z.looseObject({}) }),
    nonce: z.undefined().optional(),
  })
  .refine(({ sid, sub }) => sid !== undefined || sub !== undefined);

/** OpenID Connect identity providers, reached through the guarded fetch. */
export class Providers {
  readonly #guard: GuardedFetch;
  readonly #known = new LRUCache<string, client.Configuration>(KNOWN);
  readonly #keys = new LRUCache<string, JWTVerifyGetKey>(KNOWN);

  constructor(guard: GuardedFetch) {
    this.#guard = guard;
  }

  /** Returns why the issuer can't be used, in words for the owner who names it, or null. */
  async judge(of: Omit<ProviderClient, "redirectUri">): Promise<string | null> {
    const wrong = await this.#guard.judge(of.issuer);
    if (wrong !== null) return wrong;
    try {
      await this.#configuration(of);
      return null;
    } catch {
      return "answers no metadata of OpenID Connect that names it";
    }
  }

  async authorizationUrl(of: ProviderClient, flow: Flow, loginHint: string | null): Promise<string> {
    const configuration = await this.#configuration(of);
    const url = client.buildAuthorizationUrl(configuration, {
      redirect_uri: of.redirectUri,
      scope: "openid email profile",
      state: flow.state,
      nonce: flow.nonce,
      code_challenge: await client.calculatePKCECodeChallenge(flow.verifier),
      code_challenge_method: "S256",
      ...(loginHint === null ? {} : { login_hint: loginHint }),
    });
    // Browsers open this address: another scheme could run a script.
    if (url.protocol !== new URL(of.issuer).protocol)
      throw new ProviderFailure("the address is of another scheme");
    return url.href;
  }

  /** Exchanges the code; verifies state, issuer, signature, audience and nonce. Throws `ProviderFailure`. */
  async identify(of: ProviderClient, flow: Flow, answer: Answer): Promise<Identity> {
    const url = new URL(of.redirectUri);
    for (const [name, value] of Object.entries(answer))
      if (value !== undefined) url.searchParams.set(name, value);
    try {
      const configuration = await this.#configuration(of);
      const tokens = await client.authorizationCodeGrant(configuration, url, {
        pkceCodeVerifier: flow.verifier,
        expectedState: flow.state,
        expectedNonce: flow.nonce,
        idTokenExpected: true,
      });
      const inToken = claimed.parse(tokens.claims());
      // Some providers put only the subject into the token.
      const isAsked =
        inToken.email === undefined && configuration.serverMetadata().userinfo_endpoint !== undefined;
      const told = isAsked ? await client.fetchUserInfo(configuration, tokens.access_token, inToken.sub) : {};
      const claims = claimed.parse({ ...told, ...inToken });
      return {
        issuer: of.issuer,
        subject: claims.sub,
        sid: claims.sid ?? null,
        email: claims.email ?? null,
        emailVerified: isProvedEmail(of.issuer, claims),
        name: claims.name ?? null,
      };
    } catch (error) {
      throw new ProviderFailure(error instanceof Error ? error.message : "unknown", { cause: error });
    }
  }

  /** Returns the session or person that a logout token ends. Throws `ProviderFailure`. */
  async loggedOut(
    of: ProviderClient,
    token: string,
  ): Promise<{ readonly sub?: string | undefined; readonly sid?: string | undefined }> {
    try {
      const { payload } = await jwtVerify(token, await this.#keysOf(of), {
        issuer: of.issuer,
        audience: of.clientId,
        maxTokenAge: LOGOUT_MAX_AGE,
        clockTolerance: 30,
      });
      return logoutClaims.parse(payload);
    } catch (error) {
      throw new ProviderFailure(error instanceof Error ? error.message : "unknown", { cause: error });
    }
  }

  async #configuration(of: Omit<ProviderClient, "redirectUri">): Promise<client.Configuration> {
    const key = JSON.stringify([of.issuer, of.clientId, of.clientSecret]);
    const known = this.#known.get(key);
    if (known !== undefined) return known;
    const issuer = new URL(of.issuer);
    const insecure = issuer.protocol === "http:" ? [client.allowInsecureRequests] : [];
    try {
      // The method is chosen once the metadata is known: the protocol's default, unless it is not offered.
      const found = await client.discovery(issuer, of.clientId, of.clientSecret, this.#authentication(of), {
        execute: [client.enableNonRepudiationChecks, ...insecure],
        [client.customFetch]: this.#fetch,
        timeout: REQUEST_TIMEOUT_MS / 1_000,
      });
      if (found.serverMetadata().issuer !== of.issuer) throw new Error("another issuer answers");
      this.#known.set(key, found);
      return found;
    } catch (error) {
      throw new ProviderFailure(error instanceof Error ? error.message : "unknown", { cause: error });
    }
  }

  #authentication({ clientSecret }: Pick<ProviderClient, "clientSecret">): client.ClientAuth {
    const [basic, post] = [client.ClientSecretBasic(clientSecret), client.ClientSecretPost(clientSecret)];
    return (server, metadata, body, headers) => {
      const offered = server.token_endpoint_auth_methods_supported ?? ["client_secret_basic"];
      const chosen = offered.includes("client_secret_basic") ? basic : post;
      chosen(server, metadata, body, headers);
    };
  }

  /** Returns the provider's published keys. A key that is not known is looked for anew, after a pause. */
  async #keysOf(of: ProviderClient): Promise<JWTVerifyGetKey> {
    const known = this.#keys.get(of.issuer);
    if (known !== undefined) return known;
    const { jwks_uri: uri } = (await this.#configuration(of)).serverMetadata();
    if (uri === undefined) throw new Error("the provider's metadata names no keys");
    const keys = createRemoteJWKSet(new URL(uri), {
      cooldownDuration: KEYS_PAUSE_MS,
      cacheMaxAge: KNOWN.ttl,
      timeoutDuration: REQUEST_TIMEOUT_MS,
      [customFetch]: (url) => this.#fetch(url, { method: "GET", headers: { accept: "application/json" } }),
    });
    this.#keys.set(of.issuer, keys);
    return keys;
  }

  readonly #fetch = async (url: string, { body, headers, method }: FetchOptions): Promise<Response> => {
    const bounds = { bodyMaxBytes: ANSWER_MAX_BYTES, headersMaxBytes: ANSWER_MAX_BYTES };
    const request = {
      url,
      method,
      headers: { ...headers },
      body: textOf(body),
      timeoutMs: REQUEST_TIMEOUT_MS,
    };
    const outcome = await this.#guard.fetch(request, bounds);
    if (outcome.kind === "failed") throw new ProviderFailure(outcome.reason);
    if (outcome.isCut) throw new ProviderFailure("the answer is too large or too slow");
    const type = outcome.headers["content-type"] ?? "application/octet-stream";
    return new Response(outcome.body, { status: outcome.httpStatus, headers: { "content-type": type } });
  };
}

interface FetchOptions {
  readonly body?: client.FetchBody;
  readonly headers: Readonly<Record<string, string>>;
  readonly method: string;
}

/** Returns a request's body as text; requests to providers are forms. */
const textOf = (body: FetchOptions["body"]): string | null =>
  body instanceof URLSearchParams || typeof body === "string" ? body.toString() : null;

/** Strings only: MongoDB would read a stranger's object as a condition. */
const addressed = z.looseObject({ iss: z.string(), aud: z.union([z.string(), z.array(z.string())]) });

/** Returns the issuer and audiences named by a token, unverified. */
export function namedIn(
  token: string,
): { readonly issuer: string; readonly audiences: readonly string[] } | null {
  try {
    const { aud, iss } = addressed.parse(decodeJwt(token));
    return { issuer: iss, audiences: [aud].flat() };
  } catch {
    return null;
  }
}

export const newFlow = (): Flow => ({
  state: client.randomState(),
  nonce: client.randomNonce(),
  verifier: client.randomPKCECodeVerifier(),
});
