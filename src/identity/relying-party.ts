/**
 * Relying party of passkeys in WebAuthn's terms: passkeys are bound to `id`, and count only from pages of `origins`.
 */
export interface RelyingParty {
  /** A domain name; browsers accept no IP address. */
  readonly id: string;
  readonly origins: readonly string[];
}

/** Settings from the environment; null derives the value from the service's own address. */
export interface RelyingPartySettings {
  readonly rpId: string | null;
  readonly origins: readonly string[] | null;
}

export const BY_BASE_URL: RelyingPartySettings = { rpId: null, origins: null };

const LOCALHOST = "localhost";
const LOOPBACK = /^(127\.\d{1,3}\.\d{1,3}\.\d{1,3}|\[::1\])$/;

/**
 * Returns the relying party of a service at this address, unless settings override it. Browsers make no passkey for an
 * IP address, but they do for localhost: a service on loopback, the default, has its passkeys at http://localhost.
 */
export function relyingPartyOf(baseUrl: string, settings: RelyingPartySettings = BY_BASE_URL): RelyingParty {
  const url = new URL(baseUrl);
  if (LOOPBACK.test(url.hostname)) url.hostname = LOCALHOST;
  return { id: settings.rpId ?? url.hostname, origins: settings.origins ?? [url.origin] };
}

/** Returns the origins whose pages cannot use the relying party's passkeys: neither its domain nor a subdomain. */
export const foreignOrigins = ({ id, origins }: RelyingParty): readonly string[] =>
  origins.filter((origin) => {
    const { hostname } = new URL(origin);
    return hostname !== id && !hostname.endsWith(`.${id}`);
  });
