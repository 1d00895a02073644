/** Relying party of passkeys in WebAuthn's terms: they are bound to `id`, and count from pages of `origins` alone. */
export interface RelyingParty {
  /** A domain name; browsers take no address. */
  readonly id: string;
  readonly origins: readonly string[];
}

/** Settings from the environment; null: the value follows from the service's own address. */
export interface RelyingPartySettings {
  readonly rpId: string | null;
  readonly origins: readonly string[] | null;
}

export const BY_BASE_URL: RelyingPartySettings = { rpId: null, origins: null };

const LOCALHOST = "localhost";
const LOOPBACK = /^(127\.\d{1,3}\.\d{1,3}\.\d{1,3}|\[::1\])$/;

/**
 * The relying party of a service at this address, unless settings say otherwise. A browser makes no passkey for an
 * address, but it does for localhost: so a service on loopback, the default, has its passkeys at http://localhost.
 */
export function relyingPartyOf(baseUrl: string, settings: RelyingPartySettings = BY_BASE_URL): RelyingParty {
  const url = new URL(baseUrl);
  if (LOOPBACK.test(url.hostname)) url.hostname = LOCALHOST;
  return { id: settings.rpId ?? url.hostname, origins: settings.origins ?? [url.origin] };
}

/** Origins whose pages no browser lets use the relying party's passkeys: neither its domain nor below it. */
export const foreignOrigins = ({ id, origins }: RelyingParty): readonly string[] =>
  origins.filter((origin) => {
    const { hostname } = new URL(origin);
    return hostname !== id && !hostname.endsWith(`.${id}`);
  });
