import { z } from "zod";

/**
 * The JSON forms of WebAuthn Level 3: arguments of `PublicKeyCredential.parseCreationOptionsFromJSON` and
 * `parseRequestOptionsFromJSON`, and results of a credential's `toJSON`.
 */

/** At most `maxBytes` bytes in base64url without padding. */
const bytes = (maxBytes: number) =>
  z
    .string()
    .min(1)
    .max(Math.ceil((maxBytes * 4) / 3))
    .regex(/^[A-Za-z0-9_-]+$/, "must be base64url without padding");

const CREDENTIAL_ID_BYTES_MAX = 1_023;
const CLIENT_DATA_BYTES_MAX = 4_096;
const ATTESTATION_BYTES_MAX = 16_384;
const AUTHENTICATOR_DATA_BYTES_MAX = 4_096;
const SIGNATURE_BYTES_MAX = 1_024;
const USER_HANDLE_BYTES_MAX = 64;
const TRANSPORTS_MAX = 16;

const credentialId = bytes(CREDENTIAL_ID_BYTES_MAX);
const transports = z.array(z.string().regex(/^[a-z0-9-]{1,32}$/)).max(TRANSPORTS_MAX);

/**
 * Browsers create this object, and newer ones add fields. Unknown fields are accepted and ignored, the one exception to
 * the rule that they are refused: the client only forwards the object, so nothing can be misspelt.
 */
const credential = { id: credentialId, rawId: credentialId, type: z.literal("public-key") };

/** Result of `navigator.credentials.create()`. */
export const registrationResponse = z
  .looseObject({
    ...credential,
    response: z.looseObject({
      clientDataJSON: bytes(CLIENT_DATA_BYTES_MAX),
      attestationObject: bytes(ATTESTATION_BYTES_MAX),
      transports: transports.optional(),
    }),
  })
  .meta({ description: "`toJSON()` of what `navigator.credentials.create()` answers." });

/** Result of `navigator.credentials.get()`. */
export const authenticationResponse = z
  .looseObject({
    ...credential,
    response: z.looseObject({
      clientDataJSON: bytes(CLIENT_DATA_BYTES_MAX),
      authenticatorData: bytes(AUTHENTICATOR_DATA_BYTES_MAX),
      signature: bytes(SIGNATURE_BYTES_MAX),
      userHandle: bytes(USER_HANDLE_BYTES_MAX).nullish(),
    }),
  })
  .meta({ description: "`toJSON()` of what `navigator.credentials.get()` answers." });

const descriptor = z.strictObject({
  type: z.literal("public-key"),
  id: z.string(),
  transports: z.array(z.string()).optional(),
});

/** Options of `navigator.credentials.create()`, for `parseCreationOptionsFromJSON`. */
export const creationOptions = z
  .strictObject({
    rp: z.strictObject({ id: z.string(), name: z.string() }),
    user: z.strictObject({ id: z.string(), name: z.string(), displayName: z.string() }),
    challenge: z.string(),
    pubKeyCredParams: z.array(z.strictObject({ type: z.literal("public-key"), alg: z.int() })),
    timeout: z.int().meta({ description: "How long the challenge is valid, in milliseconds." }),
    attestation: z.literal("none"),
    excludeCredentials: z.array(descriptor),
    authenticatorSelection: z.strictObject({
      residentKey: z.literal("required"),
      requireResidentKey: z.literal(true),
      userVerification: z.literal("required"),
    }),
    extensions: z.strictObject({ credProps: z.literal(true) }),
    hints: z.array(z.string()),
  })
  .meta({ id: "PasskeyCreationOptions" });

/** Options of `navigator.credentials.get()`, for `parseRequestOptionsFromJSON`. */
export const requestOptions = z
  .strictObject({
    rpId: z.string(),
    challenge: z.string(),
    timeout: z.int().meta({ description: "How long the challenge is valid, in milliseconds." }),
    userVerification: z.literal("required"),
    allowCredentials: z
      .array(descriptor)
      .meta({ description: "Empty at sign-in: the person picks one of the device's passkeys." }),
  })
  .meta({ id: "PasskeyRequestOptions" });

export type RegistrationResponse = z.output<typeof registrationResponse>;
export type AuthenticationResponse = z.output<typeof authenticationResponse>;
export type CreationOptions = z.output<typeof creationOptions>;
export type RequestOptions = z.output<typeof requestOptions>;
