import type { Input, Output } from "../../src/client/types.ts";

/** Passkey ceremonies of the browser. Responses of password managers' extensions are accepted too. */

type Registration = Input<"enrollPasskey">["body"]["response"];
type Authentication = Input<"signInWithPasskey">["body"]["response"];

/** IPv4 address, or IPv6 address in brackets. */
const ADDRESS = /^([\d.]+|\[.*\])$/;

/** Whether this page can use passkeys: browsers require https or localhost, and no IP address. */
export const hasPasskeys = (): boolean =>
  typeof PublicKeyCredential !== "undefined" && !ADDRESS.test(location.hostname);

export const NO_PASSKEYS = "Passkeys work only over https or at localhost, and not at an IP address.";

export class PasskeyError extends Error {
  override readonly name = "PasskeyError";
}

/** Returns an error that says why the browser created nothing. */
function explained(error: unknown): PasskeyError {
  const name = error instanceof Error ? error.name : "";
  if (name === "NotAllowedError") return new PasskeyError("The passkey was not confirmed. Try again.");
  if (name === "InvalidStateError") return new PasskeyError("This device has a passkey here already.");
  if (name === "SecurityError") {
    return new PasskeyError(
      "Passkeys do not work at this address: open the service by its own name, over https or at localhost.",
    );
  }
  return new PasskeyError("The browser could not use a passkey.");
}

/** Creates a passkey. Throws `PasskeyError` if the browser creates none. */
export async function createPasskey(options: Output<"passkeyOptions">): Promise<Registration> {
  const { challenge, excludeCredentials, pubKeyCredParams, user, ...rest } = options;
  try {
    const made = await navigator.credentials.create({
      publicKey: {
        ...rest,
        challenge: bytesOf(challenge),
        excludeCredentials: excludeCredentials.map(descriptorOf),
        pubKeyCredParams: [...pubKeyCredParams],
        user: { ...user, id: bytesOf(user.id) },
      },
    });
    const credential = credentialOf(made);
    const response = credential.response as AuthenticatorAttestationResponse;
    return {
      ...identityOf(credential),
      response: {
        clientDataJSON: textOf(response.clientDataJSON),
        attestationObject: textOf(response.attestationObject),
        ...("getTransports" in response ? { transports: response.getTransports() } : {}),
      },
    };
  } catch (error) {
    throw explained(error);
  }
}

/** Signs with one of this device's passkeys. Throws `PasskeyError` if that fails. */
export async function signByPasskey(options: Output<"stepUpOptions">): Promise<Authentication> {
  const { allowCredentials, challenge, ...rest } = options;
  try {
    const made = await navigator.credentials.get({
      publicKey: {
        ...rest,
        challenge: bytesOf(challenge),
        allowCredentials: allowCredentials.map(descriptorOf),
      },
    });
    const credential = credentialOf(made);
    const response = credential.response as AuthenticatorAssertionResponse;
    return {
      ...identityOf(credential),
      response: {
        clientDataJSON: textOf(response.clientDataJSON),
        authenticatorData: textOf(response.authenticatorData),
        signature: textOf(response.signature),
        userHandle: response.userHandle === null ? null : textOf(response.userHandle),
      },
    };
  } catch (error) {
    throw explained(error);
  }
}

type Made = Pick<PublicKeyCredential, "rawId" | "response">;

/** Checks a credential by its fields, because credentials of extensions have neither the prototype nor `toJSON`. */
function credentialOf(made: Credential | null): Made {
  if (made === null || !("rawId" in made && "response" in made))
    throw new PasskeyError("The browser has made no passkey.");
  return made as Credential & Made;
}

function identityOf({ rawId }: Made) {
  const id = textOf(rawId);
  return { id, rawId: id, type: "public-key" as const, clientExtensionResults: {} };
}

type Descriptor = Output<"stepUpOptions">["allowCredentials"][number];

const descriptorOf = ({ id, transports, type }: Descriptor): PublicKeyCredentialDescriptor => ({
  type,
  id: bytesOf(id),
  ...(transports === undefined ? {} : { transports: transports as AuthenticatorTransport[] }),
});

/** Decodes base64url. */
const bytesOf = (text: string): Uint8Array<ArrayBuffer> =>
  Uint8Array.from(atob(text.replaceAll("-", "+").replaceAll("_", "/")), (character) =>
    character.charCodeAt(0),
  );

/** Encodes bytes in base64url without padding. */
function textOf(bytes: BufferSource): string {
  const view = ArrayBuffer.isView(bytes)
    ? new Uint8Array(bytes.buffer, bytes.byteOffset, bytes.byteLength)
    : new Uint8Array(bytes);
  const binary = Array.from(view, (byte) => String.fromCharCode(byte)).join("");
  return btoa(binary).replaceAll("+", "-").replaceAll("/", "_").replaceAll("=", "");
}
