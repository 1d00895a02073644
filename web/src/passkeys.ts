import type { Input, Output } from "../../src/client/types.ts";

/** The browser's own ceremonies: options go in as they come, and its answer goes out as it is. */

type Registration = Input<"enrollPasskey">["body"]["response"];
type Authentication = Input<"signInWithPasskey">["body"]["response"];

/** Browsers have passkeys only over https or at localhost. */
export const hasPasskeys = (): boolean =>
  typeof PublicKeyCredential !== "undefined" &&
  typeof PublicKeyCredential.parseCreationOptionsFromJSON === "function";

export class PasskeyError extends Error {
  override readonly name = "PasskeyError";
}

/** Why the browser made nothing, in words. */
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

/** Throws `PasskeyError` where the browser makes none. */
export async function createPasskey(options: Output<"passkeyOptions">): Promise<Registration> {
  try {
    const publicKey = PublicKeyCredential.parseCreationOptionsFromJSON(
      structuredClone(options) as PublicKeyCredentialCreationOptionsJSON,
    );
    return jsonOf(await navigator.credentials.create({ publicKey })) as Registration;
  } catch (error) {
    throw explained(error);
  }
}

/** Has one of the passkeys on this device sign. Throws `PasskeyError` where it does not. */
export async function signByPasskey(options: Output<"stepUpOptions">): Promise<Authentication> {
  try {
    const publicKey = PublicKeyCredential.parseRequestOptionsFromJSON(
      structuredClone(options) as PublicKeyCredentialRequestOptionsJSON,
    );
    return jsonOf(await navigator.credentials.get({ publicKey })) as Authentication;
  } catch (error) {
    throw explained(error);
  }
}

/** What the browser has made goes to the service as it is, which looks at all of it. */
function jsonOf(credential: Credential | null): unknown {
  if (!(credential instanceof PublicKeyCredential))
    throw new PasskeyError("The browser has made no passkey.");
  return credential.toJSON();
}
