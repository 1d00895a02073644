import { creationOptions, requestOptions } from "../../src/contract/webauthn.ts";
import { type Ceremony, SoftwareAuthenticator } from "./authenticator.ts";
import type { Success } from "./contract-api.ts";
import type { World } from "./world.ts";

export type Passkey = Success<"enrollPasskey">["passkey"];

/** Where a browser would have the service's pages: at localhost, since no passkey is made for an address. */
export function pageOrigin({ service }: Pick<World, "service">): string {
  const url = new URL(service.baseUrl);
  url.hostname = "localhost";
  return url.origin;
}

export const authenticatorFor = (world: Pick<World, "service">): SoftwareAuthenticator =>
  new SoftwareAuthenticator(pageOrigin(world));

interface EnrolmentOptions {
  readonly name?: string;
  readonly token?: string;
  readonly told?: Partial<Ceremony>;
}

/** Enrols a passkey for the token's user. */
export async function enrolPasskey(
  world: World,
  authenticator: SoftwareAuthenticator,
  { name = "Laptop", token = world.token, told = {} }: EnrolmentOptions = {},
): Promise<Passkey> {
  const options = creationOptions.parse(await world.api.ok("passkeyOptions", 200, { token }));
  const body = { name, response: authenticator.create(options, told) };
  return (await world.api.ok("enrollPasskey", 201, { token, body })).passkey;
}

/** What signs in by one of the authenticator's passkeys, once. */
export async function signInBody(world: World, authenticator: SoftwareAuthenticator) {
  const options = requestOptions.parse(await world.api.ok("passkeySignInOptions", 200));
  return { response: authenticator.get(options) };
}

/** What steps a session up by one of them, once. */
export async function stepUpBody(world: World, authenticator: SoftwareAuthenticator, token = world.token) {
  const options = requestOptions.parse(await world.api.ok("stepUpOptions", 200, { token }));
  return { method: "passkey", response: authenticator.get(options) };
}

const clientDataJSON = Buffer.from('{"challenge":"AAAA"}').toString("base64url");
const made = { id: "AAAA", rawId: "AAAA", type: "public-key" } as const;

/** Of the right shape and nothing else. */
export const madeUpRegistration = () => ({
  ...made,
  response: { clientDataJSON, attestationObject: "AAAA" },
});
export const madeUpAssertion = () => ({
  ...made,
  response: { clientDataJSON, authenticatorData: "AAAA", signature: "AAAA", userHandle: "AAAA" },
});
