import { createPrivateKey } from "node:crypto";
import type Provider from "oidc-provider";
import type { Configuration, JWK, KoaContextWithOIDC } from "oidc-provider";
import { InvalidGrant, InvalidTarget } from "oidc-provider/lib/helpers/errors.js";
import { Provider as OidcProvider } from "oidc-provider/lib/provider.js";
import { CONNECT_COOKIE_PATH, isSecure } from "../../src/contract/cookies.ts";
import type { Connected } from "../../src/identity/authenticator.ts";
import { countedAddress, networkAround } from "../../src/limits/address.ts";
import type { MasterKey } from "../../src/secrets/master-key.ts";
import { connectedOf } from "./account.ts";
import { AUTH_METHODS, isLoopback } from "./client-metadata.ts";
import { errorPage } from "./error-page.ts";
import { type OAuthRecords, RecordsAdapter } from "./records.ts";

const DAY_SECONDS = 86_400;

/** Lifetimes. A refresh token's restarts with each use; a connection needs new consent after a year. */
const LIFETIME_SECONDS = {
  AccessToken: 3_600,
  AuthorizationCode: 60,
  RefreshToken: 30 * DAY_SECONDS,
  Grant: 365 * DAY_SECONDS,
  /** Time for a person to sign in, find a second-factor code, and decide. */
  Interaction: 900,
  Session: 900,
  IdToken: 60,
} as const;

export const CONNECTION_LIFETIME_MS = LIFETIME_SECONDS.Grant * 1_000;

/** The only scope. A connection's own record says which tools it has. */
export const SCOPE = "agent";

export interface ProviderDependencies {
  readonly baseUrl: string;
  /** The only resource that tokens are for. */
  readonly resource: string;
  readonly masterKey: MasterKey;
  readonly records: OAuthRecords;
  readonly clock: () => Date;
  readonly fetchDocument: (url: string | URL | Request, network: string | null) => Promise<Response>;
  /** Whether a connection's key is its agent's active one. */
  readonly isConnected: (connected: Connected) => Promise<boolean>;
  /** Ends a grant whose client revoked a token, or whose code or refresh token was replayed. */
  readonly endGrant: (grantId: string) => Promise<void>;
  /** Cookie that identifies the requesting browser when a person decides. */
  readonly browserCookie: (uid: string) => { readonly name: string; readonly value: string };
}

/** Returns the network of the request that is being answered; null if there is none. */
function networkOf(request: object | undefined): string | null {
  // Express adds the address behind trusted proxies.
  const address = request !== undefined && "ip" in request ? countedAddress(String(request.ip)) : null;
  return address === null ? null : (networkAround(address) ?? address);
}

/** Opens the OAuth 2.1 authorization server: codes with PKCE, opaque tokens for one resource, no OpenID Connect. */
export function openProvider(dependencies: ProviderDependencies): Provider {
  const provider = new OidcProvider(dependencies.baseUrl, configurationOf(dependencies));
  // The provider's addresses follow headers that `routes.ts` sets on every request, not those of the sender.
  provider.proxy = true;
  provider.use(withoutOpenRedirect(dependencies.baseUrl));
  return provider;
}

/**
 * Shows errors that no person has consented to be sent away with: anybody can register a client, and would have links on
 * this origin lead to pages of theirs. A program on the browser's own machine is told at once.
 */
const withoutOpenRedirect =
  (baseUrl: string) =>
  async (ctx: KoaContextWithOIDC, next: () => Promise<void>): Promise<void> => {
    await next();
    const to = ctx.response.get("location");
    if (ctx.path !== "/authorize" || !/^https?:/.test(to)) return;
    const { host, origin, searchParams } = new URL(to);
    if (origin === new URL(baseUrl).origin || isLoopback(to)) return;
    ctx.status = 400;
    ctx.remove("location");
    ctx.type = "html";
    const description = searchParams.get("error_description") ?? "";
    ctx.body = errorPage(searchParams.get("error") ?? "invalid_request", description, { host, url: to });
  };

const onReplay = (): never => {
  throw new InvalidGrant("authorization code already consumed");
};

const OFF = { enabled: false } as const;

function configurationOf(dependencies: ProviderDependencies): Configuration {
  const {
    baseUrl,
    browserCookie,
    clock,
    endGrant,
    fetchDocument,
    isConnected,
    masterKey,
    records,
    resource,
  } = dependencies;
  const secure = isSecure(baseUrl);
  const port = new URL(baseUrl).port || "443";
  return {
    adapter: (kind: string) => new RecordsAdapter(kind, records, clock, onReplay, endGrant),
    clientAuthMethods: [...AUTH_METHODS],
    clientBasedCORS: () => true,
    clientDefaults: { id_token_signed_response_alg: "EdDSA" },
    cookies: {
      keys: masterKey.deriveKeys("oauth-cookies").map(({ key }) => key.export().toString("base64url")),
      names: {
        session: `svc_oauth_${port}`,
        interaction: `svc_oauth_asked_${port}`,
        resume: `svc_oauth_resume_${port}`,
      },
      long: { httpOnly: true, sameSite: "lax", secure, path: "/authorize", signed: true },
      short: { httpOnly: true, sameSite: "lax", secure, signed: true },
    },
    expiresWithSession: () => false,
    features: {
      clientIdMetadataDocument: { enabled: true, ack: "draft-02" },
      devInteractions: OFF,
      dPoP: OFF,
      pushedAuthorizationRequests: OFF,
      resourceIndicators: {
        enabled: true,
        defaultResource: () => resource,
        useGrantedResource: () => true,
        getResourceServerInfo: (_ctx, indicator) => {
          if (indicator !== resource) throw new InvalidTarget();
          return {
            scope: SCOPE,
            accessTokenFormat: "opaque",
            accessTokenTTL: LIFETIME_SECONDS.AccessToken,
          };
        },
      },
      revocation: {
        enabled: true,
        // A token of another client is left alone, and the response does not tell (RFC 7009).
        allowedPolicy: (_ctx, { clientId }, token) => token.clientId === clientId,
      },
      rpInitiatedLogout: OFF,
      userinfo: OFF,
    },
    fetch: (url) => fetchDocument(url, networkOf(OidcProvider.ctx?.req)),
    async findAccount(_ctx, sub) {
      const connected = connectedOf(sub);
      if (connected === null) return undefined;
      if (!(await isConnected(connected))) {
        // The key was revoked other than through its grant, for example with its agent.
        await records.removeOfKey(connected.keyId);
        return undefined;
      }
      return { accountId: sub, claims: () => ({ sub }) };
    },
    interactions: {
      url: (ctx, { uid }) => {
        const { name, value } = browserCookie(uid);
        const maxAge = LIFETIME_SECONDS.Interaction * 1_000;
        const options = { httpOnly: true, sameSite: "lax", secure, signed: false } as const;
        ctx.cookies.set(name, value, { ...options, path: CONNECT_COOKIE_PATH, maxAge });
        return `/connect/${uid}`;
      },
    },
    issueRefreshToken: () => true,
    jwks: { keys: [signingKey(masterKey)] },
    async loadExistingGrant({ oidc }) {
      // Each authorization needs new consent: no earlier grant counts.
      const grantId = oidc.result?.consent?.grantId;
      return grantId === undefined ? undefined : oidc.provider.Grant.find(grantId);
    },
    pkce: { required: () => true },
    renderError: (ctx, { error, error_description: description }) => {
      ctx.type = "html";
      ctx.body = errorPage(error, description);
    },
    responseTypes: ["code"],
    // `endGrant` removes the grant, whose record says which key to revoke.
    revokeGrantPolicy: () => false,
    rotateRefreshToken: () => true,
    routes: { authorization: "/authorize", token: "/token", revocation: "/revoke" },
    // None of the provider's own scopes; the only scope is the resource's.
    scopes: [],
    ttl: LIFETIME_SECONDS,
  };
}

/** DER prefix of an Ed25519 private key, followed by its 32 bytes. */
const ED25519_PREFIX = Buffer.from("302e020100300506032b657004220420", "hex");

/** Returns a signing key. The provider does not start without one, although nothing is signed: no token is a JWT. */
function signingKey(masterKey: MasterKey): JWK {
  const der = Buffer.concat([ED25519_PREFIX, masterKey.deriveKey("oauth-signing").export()]);
  const { d = "", x = "" } = createPrivateKey({ key: der, format: "der", type: "pkcs8" }).export({
    format: "jwk",
  });
  return { kty: "OKP", crv: "Ed25519", alg: "EdDSA", use: "sig", d, x };
}
