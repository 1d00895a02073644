/** Names of a browser's session cookies, and the header that requests them. */

/** `svc-session: cookie` on beginning or refreshing a session: its tokens come in cookies, not in the body. */
export const COOKIE_REQUEST_HEADER = "svc-session";
export const COOKIE_REQUEST_VALUE = "cookie";

/** The only path to which browsers send the refresh cookie. */
export const REFRESH_PATH = "/v1/auth/refresh";

/** The only path to which browsers send a known device's cookie. */
export const DEVICE_PATH = "/v1/auth/sign-in";

/**
 * Path to which browsers send an authorization request's cookie, which identifies the browser that began the request.
 */
export const CONNECT_COOKIE_PATH = "/v1";

/** Page to which an organization's identity provider, and no other, sends people back. */
export const ssoPageOf = (organizationId: string): string => `/sso/${organizationId}`;

/** The only path to which browsers send the cookie of a sign-in in progress. */
export const SSO_CALLBACK_PATH = "/v1/auth/sso/callback";

export const connectCookieName = (uid: string): string => `svc_connect_${uid}`;

export interface CookieNames {
  readonly session: string;
  readonly refresh: string;
  readonly device: string;
  readonly sso: string;
}

/**
 * Returns the cookies' names. Over https they have the prefixes that keep other hosts and plain http from setting them;
 * these prefixes require https. Browsers send a host's cookies to all its ports, so the names include the port:
 * installations on one host keep their sessions apart.
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
