import { z } from "zod";
import { anyone, ownAccount, person, reads } from "../access.ts";
import { define } from "../define.ts";
import { name, paging } from "../primitives.ts";
import { listOf, passkey, session } from "../records.ts";
import {
  authenticationResponse,
  creationOptions,
  registrationResponse,
  requestOptions,
} from "../webauthn.ts";

const params = z.strictObject({ id: z.string().regex(/^pky_[0-9A-HJKMNP-TV-Z]{26}$/) });
const tag = "Authentication";

export const passkeyOptions = define({
  summary: "Begin to enrol a passkey",
  description:
    "The options for `navigator.credentials.create()`. The challenge can be used once, within 5 minutes, and only to " +
    "enrol in this session. With a factor already enrolled this needs step-up, otherwise a sign-in within the last 5 " +
    "minutes.",
  tag,
  access: ownAccount,
  rate: "standard",
  http: { method: "post", path: "/v1/auth/passkeys/options", successStatus: 200 },
  output: creationOptions,
  errors: ["STEP_UP_REQUIRED", "TOO_MANY_PASSKEYS"],
});

export const enrollPasskey = define({
  summary: "Enrol a passkey",
  description:
    "Registers the passkey that the browser created with the options. This does not step up; other sessions " +
    "continue. An invalid response uses up its challenge.",
  tag,
  access: ownAccount,
  rate: "standard",
  http: { method: "post", path: "/v1/auth/passkeys", successStatus: 201 },
  body: z.strictObject({ name, response: registrationResponse }),
  output: z.strictObject({ passkey }),
  errors: ["STEP_UP_REQUIRED", "SECOND_FACTOR_INVALID", "TOO_MANY_PASSKEYS"],
});

export const listPasskeys = define({
  summary: "List your passkeys",
  description: "Your own passkeys, newest first.",
  tag,
  access: ownAccount,
  rate: "standard",
  http: { method: "get", path: "/v1/auth/passkeys", successStatus: 200 },
  query: z.strictObject({ ...paging }),
  output: listOf("passkeys", passkey),
  errors: ["BAD_CURSOR"],
});

export const updatePasskey = define({
  summary: "Rename a passkey",
  description: "Renames one of your own passkeys.",
  tag,
  access: person({ role: "auditor", stepUp: true }),
  rate: "standard",
  http: { method: "patch", path: "/v1/auth/passkeys/:id", successStatus: 200 },
  params,
  body: z.strictObject({ name }),
  output: z.strictObject({ passkey }),
  errors: ["NOT_FOUND"],
});

export const removePasskey = define({
  summary: "Remove a passkey",
  description:
    "The passkey can no longer be used to sign in or step up. The last second factor of an owner or admin, and of " +
    "everybody if the organization requires one, cannot be removed until another is enrolled.",
  tag,
  access: person({ role: "auditor", stepUp: true }),
  rate: "standard",
  http: { method: "delete", path: "/v1/auth/passkeys/:id", successStatus: 204 },
  params,
  output: z.undefined(),
  errors: ["NOT_FOUND", "LAST_FACTOR"],
});

export const passkeySignInOptions = define({
  summary: "Begin to sign in by passkey",
  description:
    "The options for `navigator.credentials.get()`; no e-mail is needed. The challenge can be used once, within 5 " +
    "minutes, and only to sign in.",
  tag,
  access: anyone,
  rate: "signIn",
  http: { method: "post", path: "/v1/auth/sign-in/passkey/options", successStatus: 200 },
  output: requestOptions,
  errors: [],
});

export const signInWithPasskey = define({
  summary: "Sign in by passkey",
  description:
    "Like signing in, without password and code: a passkey with user verification counts as two factors. This does " +
    "not step up. An invalid response uses up its challenge.",
  tag,
  access: anyone,
  rate: "signIn",
  http: { method: "post", path: "/v1/auth/sign-in/passkey", successStatus: 200 },
  body: z.strictObject({ response: authenticationResponse }),
  output: session,
  errors: ["SSO_REQUIRED", "UNAUTHORIZED", "SECOND_FACTOR_INVALID", "PASSKEY_POSSIBLY_COPIED"],
});

export const stepUpOptions = define({
  summary: "Begin to step up by passkey",
  description:
    "The options for `navigator.credentials.get()`, with your own passkeys. The challenge can be used once, within 5 " +
    "minutes, and only for the step-up of this session.",
  tag,
  access: reads("never", "none"),
  rate: "stepUp",
  http: { method: "post", path: "/v1/auth/step-up/options", successStatus: 200 },
  output: requestOptions,
  errors: ["SECOND_FACTOR_INVALID"],
});
