/** Names of a browser's session cookies, and how it asks for them. */

/** `svc-session: cookie` on whatever begins or refreshes a session: its tokens come in cookies, not in the body. */
export const COOKIE_REQUEST_HEADER = "svc-session";
export const COOKIE_REQUEST_VALUE = "cookie";

/** Where the refresh cookie goes, and nowhere else. */
export const REFRESH_PATH = "/v1/auth/refresh";

/** The same for the cookie of a known device. */
export const DEVICE_PATH = "/v1/auth/sign-in";

export interface CookieNames {
  readonly session: string;
  readonly refresh: string;
  readonly device: string;
}

/** Over https with the prefixes that keep other hosts and plain http from setting them; they can't be had without. */
export const cookieNames = (baseUrl: string): CookieNames =>
  isSecure(baseUrl)
    ? { session: "__Host-svc_session", refresh: "__Secure-svc_refresh", device: "__Secure-svc_device" }
    : { session: "svc_session", refresh: "svc_refresh", device: "svc_device" };

export const isSecure = (baseUrl: string): boolean => baseUrl.startsWith("https:");
