import { z } from "zod";
import { anyone, ownAccount, reads } from "../access.ts";
import { define } from "../define.ts";
import { email, name, newPassword, secretToken, text, timestamp, uuid } from "../primitives.ts";
import { organization, secondFactorEnrolment, session, user } from "../records.ts";
import { authenticationResponse } from "../webauthn.ts";

/** Digits in the form shown by authenticator apps, possibly in groups. */
const code = z
  .string()
  .max(32)
  .regex(/^[ -]*(?:[0-9][ -]*){6}$/, "must be six digits")
  .overwrite((value) => value.replaceAll(/[ -]/g, ""));

export const signIn = define({
  summary: "Sign in",
  description:
    "Starts a session and answers a JWT, valid for 15 minutes, and a refresh token; a browser that sends " +
    "`svc-session: cookie` receives them in cookies. A user with TOTP also sends its `code`; passkeys have an " +
    "operation of their own. Signing in does not step up. One e-mail may have accounts in several organizations: if " +
    "the password matches several of them, the answer is 409 `ORGANIZATION_REQUIRED` with these organizations. An " +
    "e-mail with more than 5 accounts needs `organizationId`.",
  tag: "Authentication",
  access: anyone,
  rate: "signIn",
  http: { method: "post", path: "/v1/auth/sign-in", successStatus: 200 },
  body: z.strictObject({
    email: text(1, 254),
    password: text(1, 1_024),
    code: code.optional(),
    organizationId: uuid.optional(),
    deviceToken: text(1, 512).optional(),
  }),
  output: session,
  errors: [
    "UNAUTHORIZED",
    "SSO_REQUIRED",
    "SECOND_FACTOR_REQUIRED",
    "SECOND_FACTOR_INVALID",
    "SECOND_FACTOR_LOCKED",
    "ORGANIZATION_REQUIRED",
  ],
});

export const setUp = define({
  summary: "Set the service up",
  description:
    "Creates the first organization and its owner with the token of the link that the first start prints, and signs " +
    "the owner in. The token can be used once; after the set-up the answer is 404.",
  tag: "Authentication",
  access: anyone,
  rate: "password",
  http: { method: "post", path: "/v1/setup", successStatus: 201 },
  body: z.strictObject({ token: secretToken, organizationName: name, name, email, password: newPassword }),
  output: session,
  errors: ["NOT_FOUND", "UNAUTHORIZED"],
});

export const checkSetUp = define({
  summary: "Check a set-up link",
  description:
    "Answers 204 if the token of a set-up link is valid, without using it. A wrong token, and any token after the " +
    "set-up, is 404.",
  tag: "Authentication",
  access: anyone,
  rate: "standard",
  http: { method: "post", path: "/v1/setup/check", successStatus: 204 },
  body: z.strictObject({ token: secretToken }),
  output: z.undefined(),
  errors: ["NOT_FOUND"],
});

export const refreshSession = define({
  summary: "Refresh a session",
  description:
    "Exchanges a refresh token for a new pair of tokens. A refresh token can be used once. For 30 seconds it is " +
    "answered again, with the same successor, in case the answer was lost; using it later ends the session. If the body has none, the refresh cookie is used, and the answer sets cookies.",
  tag: "Authentication",
  access: anyone,
  rate: "standard",
  http: { method: "post", path: "/v1/auth/refresh", successStatus: 200 },
  body: z.strictObject({ refreshToken: text(1, 512).optional() }).optional(),
  output: session,
  errors: ["UNAUTHORIZED"],
});

export const signOut = define({
  summary: "Sign out",
  description: "Ends the session: its token is refused from now on, and a browser's cookies are cleared.",
  tag: "Authentication",
  access: ownAccount,
  rate: "standard",
  http: { method: "post", path: "/v1/auth/sign-out", successStatus: 204 },
  output: z.undefined(),
  errors: [],
});

export const getMe = define({
  summary: "Read the signed-in user",
  description:
    "The signed-in user, the organization, when this session's step-up expires (null: it is not stepped up), and " +
    "whether a second factor must still be enrolled.",
  tag: "Authentication",
  access: ownAccount,
  rate: "standard",
  http: { method: "get", path: "/v1/auth/me", successStatus: 200 },
  output: z.strictObject({
    user,
    organization,
    secondFactorEnrolment,
    stepUpExpiresAt: timestamp.nullable(),
  }),
  errors: [],
});

export const enrollTotp = define({
  summary: "Enrol a TOTP factor",
  description:
    "Answers a new secret, once. The factor becomes active when it is confirmed with a code in this session within " +
    "10 minutes. With a factor already enrolled this needs step-up, otherwise a sign-in within the last 5 minutes; " +
    "refreshing the session does not count as one.",
  tag: "Authentication",
  access: ownAccount,
  rate: "standard",
  http: { method: "post", path: "/v1/auth/totp", successStatus: 201 },
  output: z.strictObject({ secret: z.string(), otpauthUrl: z.string() }),
  errors: ["STEP_UP_REQUIRED"],
});

export const confirmTotp = define({
  summary: "Confirm a TOTP factor",
  description:
    "Activates the factor. The code is used up: signing in and stepping up need the next one, which follows within " +
    "30 s.",
  tag: "Authentication",
  access: ownAccount,
  rate: "standard",
  http: { method: "post", path: "/v1/auth/totp/confirm", successStatus: 200 },
  body: z.strictObject({ code }),
  output: z.strictObject({ user }),
  errors: ["STEP_UP_REQUIRED", "SECOND_FACTOR_INVALID", "SECOND_FACTOR_LOCKED"],
});

export const stepUp = define({
  summary: "Step up",
  description:
    "Verifies a second factor, a TOTP code or a passkey's response to `step-up/options`, and elevates this session " +
    "for 5 minutes.",
  tag: "Authentication",
  access: reads("never", "none"),
  rate: "stepUp",
  http: { method: "post", path: "/v1/auth/step-up", successStatus: 200 },
  body: z.discriminatedUnion("method", [
    z.strictObject({ method: z.literal("totp"), code }).meta({ title: "TotpStepUp" }),
    z
      .strictObject({ method: z.literal("passkey"), response: authenticationResponse })
      .meta({ title: "PasskeyStepUp" }),
  ]),
  output: z.strictObject({ stepUpExpiresAt: timestamp }),
  errors: ["SECOND_FACTOR_INVALID", "PASSKEY_POSSIBLY_COPIED", "SECOND_FACTOR_LOCKED"],
});

export const changePassword = define({
  summary: "Change your password",
  description:
    "Ends your other sessions; this one continues. A wrong `currentPassword` is 403 `PASSWORD_INVALID`. Attempts " +
    "count towards the account's limit of sign-ins per minute.",
  tag: "Authentication",
  access: ownAccount,
  rate: "password",
  http: { method: "post", path: "/v1/auth/password", successStatus: 204 },
  body: z.strictObject({ currentPassword: text(1, 1_024), newPassword }),
  output: z.undefined(),
  errors: ["PASSWORD_INVALID"],
});
