import { once } from "node:events";
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { exportJWK, generateKeyPair, type JWTPayload, SignJWT } from "jose";
import { Provider } from "oidc-provider/lib/provider.js";
import type { GuardOptions } from "../../src/lib/guarded-fetch/guarded-fetch.ts";

/** Claims of the person who signs in at the provider. */
export interface ProviderPerson {
  readonly sub: string;
  readonly email?: string;
  readonly email_verified?: unknown;
  readonly name?: string;
}

/** A real provider of OpenID Connect on the loopback, where the current person signs in by just coming. */
export interface IdentityProvider {
  readonly issuer: string;
  readonly clientId: string;
  readonly clientSecret: string;
  /** The person that everybody is who comes from now on. */
  expects(person: ProviderPerson): void;
  /** Goes there in a new browser as this person; resolves to the address that the browser is sent back to. */
  signIn(url: string, person: ProviderPerson): Promise<URL>;
  /** A logout token, signed by the provider's key. */
  logoutToken(claims: JWTPayload, typ?: string): Promise<string>;
  close(): Promise<void>;
}

/** How a service reaches it. */
export const LOOPBACK: GuardOptions = { allowCidrs: ["127.0.0.0/8"], extraCa: null, allowsHttp: true };

/** The body with which an organization's page finishes a sign-in that returned there. */
export const answerAt = ({ pathname, searchParams }: URL): Record<string, string> => ({
  organizationId: pathname.split("/").at(-1) ?? "",
  ...Object.fromEntries(searchParams),
});

const CLIENT_ID = "spending-control";
const CLIENT_SECRET = "a secret of the client's that only tests know";
const LOGOUT_EVENT = "http://schemas.openid.net/event/backchannel-logout";

/** Key of all providers of this process: making one costs more than a sign-in. */
let keys: ReturnType<typeof generateKeyPair> | null = null;

export async function startIdentityProvider(redirectUri: string): Promise<IdentityProvider> {
  const { privateKey } = await (keys ??= generateKeyPair("RS256", { extractable: true }));
  const key = { ...(await exportJWK(privateKey)), kid: "provider", alg: "RS256", use: "sig" };
  const server = createServer().unref();
  await once(server.listen(0, "127.0.0.1"), "listening");
  const issuer = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
  const people = new Map<string, ProviderPerson>();
  let current = "";
  const provider = new Provider(issuer, {
    clients: [
      {
        client_id: CLIENT_ID,
        client_secret: CLIENT_SECRET,
        redirect_uris: [redirectUri],
        backchannel_logout_uri: "https://example.com/",
        backchannel_logout_session_required: true,
      },
    ],
    jwks: { keys: [key] },
    cookies: { keys: ["the provider's"] },
    claims: { openid: ["sub", "sid"], email: ["email", "email_verified"], profile: ["name"] },
    features: { devInteractions: { enabled: false }, backchannelLogout: { enabled: true } },
    interactions: { url: (_context, { uid }) => `/interaction/${uid}` },
    findAccount: (_context, sub) => ({ accountId: sub, claims: () => ({ ...people.get(sub), sub }) }),
    async loadExistingGrant({ oidc: { client, provider: own, session } }) {
      const grant = new own.Grant({ clientId: client?.clientId ?? "", accountId: session?.accountId ?? "" });
      grant.addOIDCScope("openid email profile");
      await grant.save();
      return grant;
    },
  });
  const serve = provider.callback();
  const expects = (person: ProviderPerson): void => {
    people.set(person.sub, person);
    current = person.sub;
  };
  server.on("request", (request, response) => {
    if (request.url?.startsWith("/interaction/") !== true) return void serve(request, response);
    void provider.interactionFinished(request, response, { login: { accountId: current } });
  });
  return {
    issuer,
    clientId: CLIENT_ID,
    clientSecret: CLIENT_SECRET,
    expects,
    async signIn(url, person) {
      expects(person);
      return await walk(url, redirectUri);
    },
    logoutToken: (claims, typ = "logout+jwt") =>
      new SignJWT({
        iss: issuer,
        aud: CLIENT_ID,
        jti: crypto.randomUUID(),
        events: { [LOGOUT_EVENT]: {} },
        ...claims,
      })
        .setProtectedHeader({ alg: "RS256", kid: "provider", typ })
        .setIssuedAt(claims.iat)
        .sign(privateKey),
    async close() {
      server.closeAllConnections();
      await new Promise((resolve) => server.close(resolve));
    },
  };
}

/** Follows redirects with the provider's cookies, until one leads back to the client. */
async function walk(url: string, redirectUri: string): Promise<URL> {
  const cookies = new Map<string, string>();
  let next = new URL(url);
  for (let step = 0; step < 10; step += 1) {
    const cookie = [...cookies].map(([name, value]) => `${name}=${value}`).join("; ");
    const response = await fetch(next, { redirect: "manual", headers: { cookie } });
    for (const header of response.headers.getSetCookie()) {
      const [pair = ""] = header.split(";");
      const at = pair.indexOf("=");
      cookies.set(pair.slice(0, at), pair.slice(at + 1));
    }
    const location = response.headers.get("location");
    if (location === null) throw new Error(`${next.pathname}: ${response.status} ${await response.text()}`);
    next = new URL(location, next);
    if (next.href.startsWith(redirectUri)) return next;
  }
  throw new Error("the provider sends its visitor in circles");
}
