/** Names of a browser's session cookies, and how it asks for them. */

/** `svc-session: cookie` on whatever begins or refreshes a session: its tokens come in cookies, not in the body. */
export const COOKIE_REQUEST_HEADER = "svc-session";
export const COOKIE_REQUEST_VALUE = "cookie";

/** The only path that the refresh cookie is sent to. */
export const REFRESH_PATH = "/v1/auth/refresh";

/** The only path that a known device's cookie is sent to. */
export const DEVICE_PATH = "/v1/auth/sign-in";

/** The path that the cookie of an authorization request is sent to, which tells the browser that it came from. */
export const CONNECT_COOKIE_PATH = "/v1";

/** The page that an organization's identity provider, and no other, sends people back to. */
export const ssoPageOf = (organizationId: string): string => `/sso/${organizationId}`;

/** The only path that the cookie of a begun sign-in is sent to. */
export const SSO_CALLBACK_PATH = "/v1/auth/sso/callback";

export const connectCookieName = (uid: string): string => `svc_connect_${uid}`;

export interface CookieNames {
  readonly session: string;
  readonly refresh: string;
  readonly device: string;
  readonly sso: string;
}

/**
 * Over https with the prefixes that keep other hosts and plain http from setting them; they can't be had without. Browsers send a
 * host's cookies to all of its ports, so the names carry the port: installations on one host keep each other's sessions.
 */
export function cookieNames(baseUrl: string): CookieNames {
  const { port } = new URL(baseUrl);
  const of = port === "" ? "" : `_${port}`;
  const [host, secure] = isSecure(baseUrl) ? ["__Host-", "__Secure-"] : ["", ""];
  return {
    session: `${host}svc_session${of}`,
    refresh: `${secure}svc_refresh${of}`,
    device: `${secure}svc_device${of}`,
    sso: `${secure}svc_sso${of}`,
  };
}

export const isSecure = (baseUrl: string): boolean => baseUrl.startsWith("https:");
