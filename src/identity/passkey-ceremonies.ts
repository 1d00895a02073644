import {
  type AuthenticationResponseJSON,
  generateAuthenticationOptions,
  generateRegistrationOptions,
  type RegistrationResponseJSON,
  verifyAuthenticationResponse,
  verifyRegistrationResponse,
} from "@simplewebauthn/server";
import { decodeAttestationObject, isoBase64URL } from "@simplewebauthn/server/helpers";
import { parse as bytesOfUuid } from "uuid";
import { z } from "zod";
import {
  type AuthenticationResponse,
  creationOptions,
  type CreationOptions,
  type RegistrationResponse,
  requestOptions,
  type RequestOptions,
} from "../contract/webauthn.ts";
import type { PasskeyDocument } from "../store/identity-documents.ts";
import { CHALLENGE_MILLISECONDS } from "./passkey-challenges.ts";
import { ALGORITHMS, isUsableKey } from "./passkey-key.ts";
import type { RelyingParty } from "./relying-party.ts";

type Challenge = Uint8Array<ArrayBuffer>;

/** A person as shown by their device. */
export interface PasskeyUser {
  readonly userId: string;
  readonly email: string;
  readonly name: string;
}

/** Facts reported by a passkey's enrolment. */
export type NewPasskey = Pick<
  PasskeyDocument,
  "credentialId" | "publicKey" | "counter" | "backupEligible" | "backedUp"
>;

/** Facts reported by a passkey's signature. */
export type UsedPasskey = Pick<PasskeyDocument, "counter" | "backupEligible" | "backedUp">;

/** Returns a person's handle on their devices. Not the e-mail, which WebAuthn would store there in the clear. */
export const userHandleOf = (userId: string): string =>
  Buffer.from(bytesOfUuid(userId)).toString("base64url");

/**
 * Returns options for creating a passkey. The passkey must verify its user and be discoverable, so that sign-in needs
 * no e-mail and discloses no accounts. No attestation is requested: the service does not decide which makes are
 * trusted.
 */
export async function enrolmentOptions(
  { id, productName }: { readonly id: string; readonly productName: string },
  { email, name, userId }: PasskeyUser,
  challenge: Challenge,
  existing: readonly PasskeyDocument[],
): Promise<CreationOptions> {
  const options = await generateRegistrationOptions({
    rpID: id,
    rpName: productName,
    userID: Uint8Array.from(bytesOfUuid(userId)),
    userName: email,
    userDisplayName: name,
    challenge,
    timeout: CHALLENGE_MILLISECONDS,
    attestationType: "none",
    excludeCredentials: existing.map(descriptorOf),
    authenticatorSelection: { residentKey: "required", userVerification: "required" },
    supportedAlgorithmIDs: ALGORITHMS,
  });
  return creationOptions.parse(options);
}

/** Returns options for signing with one of the allowed passkeys, or with any on the device if none is named. */
export async function assertionOptions(
  { id }: RelyingParty,
  challenge: Challenge,
  allowed: readonly PasskeyDocument[],
): Promise<RequestOptions> {
  const { extensions: _none, ...options } = await generateAuthenticationOptions({
    rpID: id,
    challenge,
    timeout: CHALLENGE_MILLISECONDS,
    allowCredentials: allowed.map(descriptorOf),
    userVerification: "required",
  });
  return requestOptions.parse(options);
}

const descriptorOf = ({ credentialId, transports }: PasskeyDocument) => ({
  id: credentialId,
  transports: [...transports],
});

const clientData = z.looseObject({ challenge: z.string(), crossOrigin: z.boolean().optional() });

const clientDataOf = ({ response }: RegistrationResponse | AuthenticationResponse) =>
  clientData.parse(JSON.parse(isoBase64URL.toUTF8String(response.clientDataJSON)));

/** Returns the challenge that a response claims to answer; null if the response can't be read. */
export const challengeOf = (response: RegistrationResponse | AuthenticationResponse): string | null =>
  orNull(() => clientDataOf(response).challenge);

/**
 * Whether a page in a frame asked. No page of the service is ever framed. The library checks this only if the browser
 * names the top-level site.
 */
const isFramed = (response: RegistrationResponse | AuthenticationResponse): boolean =>
  clientDataOf(response).crossOrigin === true;

/** Returns the passkey enrolled by a response, after all checks of the response passed; null if one failed. */
export function verifyEnrolment(
  { id: expectedRPID, origins }: RelyingParty,
  response: RegistrationResponse,
  expectedChallenge: string,
): Promise<NewPasskey | null> {
  return orNull(async () => {
    if (isFramed(response) || !hasPlainAttestation(response)) return null;
    const { registrationInfo: info, verified } = await verifyRegistrationResponse({
      response: registrationOf(response),
      expectedChallenge,
      expectedOrigin: [...origins],
      expectedRPID,
      requireUserVerification: true,
      supportedAlgorithmIDs: ALGORITHMS,
    });
    if (!verified || info.credential.id !== response.id || !isUsableKey(info.credential.publicKey))
      return null;
    return {
      credentialId: info.credential.id,
      publicKey: isoBase64URL.fromBuffer(info.credential.publicKey),
      counter: info.credential.counter,
      backupEligible: info.credentialDeviceType === "multiDevice",
      backedUp: info.credentialBackedUp,
    };
  });
}

/**
 * Reads the passkey's counter and backup flags from a response to a challenge, after all other checks passed; null if
 * one failed. The values count only under a valid signature, and the library compares the counter before it verifies
 * one, so the caller judges them.
 */
export function verifyAssertion(
  { id: expectedRPID, origins }: RelyingParty,
  response: AuthenticationResponse,
  expectedChallenge: string,
  { credentialId: id, publicKey, userId }: PasskeyDocument,
): Promise<UsedPasskey | null> {
  return orNull(async () => {
    const { userHandle } = response.response;
    if (isFramed(response)) return null;
    // Missing or empty for authenticators and password managers without user handles.
    if (![undefined, null, "", userHandleOf(userId)].includes(userHandle)) return null;
    const { authenticationInfo: info, verified } = await verifyAuthenticationResponse({
      response: authenticationOf(response),
      expectedChallenge,
      expectedOrigin: [...origins],
      expectedRPID,
      credential: { id, publicKey: isoBase64URL.toBuffer(publicKey), counter: 0 },
      requireUserVerification: true,
    });
    const backupEligible = info.credentialDeviceType === "multiDevice";
    return verified ? { counter: info.newCounter, backupEligible, backedUp: info.credentialBackedUp } : null;
  });
}

/**
 * Whether there is no attestation, as requested, or only the passkey's own ("self"). A certificate's attestation would
 * be checked against no authority that the service trusts, so it is not worth parsing foreign certificates and fetching
 * the URLs in them.
 */
function hasPlainAttestation({ response }: RegistrationResponse): boolean {
  const attestation = decodeAttestationObject(isoBase64URL.toBuffer(response.attestationObject));
  const format = attestation.get("fmt");
  return format === "none" || (format === "packed" && attestation.get("attStmt").get("x5c") === undefined);
}

/** Copies only the fields that the library verifies. */
const registrationOf = ({ id, rawId, response, type }: RegistrationResponse): RegistrationResponseJSON => {
  const { attestationObject, clientDataJSON } = response;
  return { id, rawId, type, clientExtensionResults: {}, response: { attestationObject, clientDataJSON } };
};

const authenticationOf = ({
  id,
  rawId,
  response,
  type,
}: AuthenticationResponse): AuthenticationResponseJSON => {
  const { authenticatorData, clientDataJSON, signature } = response;
  const signed = { authenticatorData, clientDataJSON, signature };
  return { id, rawId, type, clientExtensionResults: {}, response: signed };
};

/**
 * Returns null instead of throwing: the library throws for anything invalid, and decoding throws for nonsense. No
 * engine is called in here, so no outage is hidden.
 */
function orNull<T>(read: () => Promise<T>): Promise<T | null>;
function orNull<T>(read: () => T): T | null;
function orNull(read: () => unknown): unknown {
  try {
    const value = read();
    return value instanceof Promise ? value.catch(() => null) : value;
  } catch {
    return null;
  }
}
