import { z } from "zod";
import { anyone, ownAccount, person } from "../access.ts";
import { define } from "../define.ts";
import { email, name, newPassword, secretToken, text, timestamp, uuid } from "../primitives.ts";
import { organization, secondFactorEnrolment, session, user } from "../records.ts";
import { authenticationResponse } from "../webauthn.ts";

const code = z.string().regex(/^[0-9]{6}$/, "must be six digits");

export const signIn = define({
  summary: "Sign in",
  description:
    "Answers a session: a JWT of 15 minutes and a refresh token; to a browser that asks for them with `svc-session: " +
    "cookie`, in cookies. A user with TOTP sends its `code` too; passkeys have an operation of their own. Does not step up. " +
    "An e-mail may have accounts in several organizations: where the password fits several of them, 409 " +
    "`ORGANIZATION_REQUIRED` names these. Beyond 5 accounts of an e-mail, `organizationId` is needed.",
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
    "SECOND_FACTOR_REQUIRED",
    "SECOND_FACTOR_INVALID",
    "SECOND_FACTOR_LOCKED",
    "ORGANIZATION_REQUIRED",
  ],
});

export const setUp = define({
  summary: "Set the service up",
  description:
    "Makes the first organization and its owner with the token of the link that the first start prints, and signs the " +
    "owner in. The token can be used once; after the service is set up it is 404.",
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
    "Answers 204 if the token of a set-up link is valid, without using it up. A wrong token, and any token after the service is set up, is 404.",
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
    "Exchanges a refresh token for a new pair of tokens. A refresh token can be used once; using it again ends the session. Without one in " +
    "the body the refresh cookie counts, and the answer is in cookies.",
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
  description: "Ends the session; its token is refused from now on, and a browser's cookies are cleared.",
  tag: "Authentication",
  access: ownAccount,
  rate: "standard",
  http: { method: "post", path: "/v1/auth/sign-out", successStatus: 204 },
  output: z.undefined(),
  errors: [],
});

export const getMe = define({
  summary: "Who am I",
  description:
    "The signed-in user, the organization, until when this session is stepped up (null: it is not), and whether a second " +
    "factor is still to be enrolled.",
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
    "Answers a new secret, once; the factor becomes active when it is confirmed with a code, in this session and within 10 minutes. With a factor enrolled already it needs " +
    "step-up, and else a sign-in within the last 5 minutes, which a refresh does not renew.",
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
    "Activates the factor. The code is used up: signing in and stepping up need the next one, which follows within 30 s.",
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
    "Verifies a second factor, a code or a passkey's response to `step-up/options`, and elevates this session for 5 minutes, on the server.",
  tag: "Authentication",
  access: person(),
  rate: "stepUp",
  http: { method: "post", path: "/v1/auth/step-up", successStatus: 200 },
  body: z.discriminatedUnion("method", [
    z.strictObject({ method: z.literal("totp"), code }),
    z.strictObject({ method: z.literal("passkey"), response: authenticationResponse }),
  ]),
  output: z.strictObject({ stepUpExpiresAt: timestamp }),
  errors: ["SECOND_FACTOR_INVALID", "SECOND_FACTOR_LOCKED"],
});

export const changePassword = define({
  summary: "Change one's password",
  description:
    "Ends the person's other sessions; this one continues. A wrong `currentPassword` is 403 `PASSWORD_INVALID` and counts with " +
    "the account's sign-ins, whose cap per minute holds for both together.",
  tag: "Authentication",
  access: ownAccount,
  rate: "password",
  http: { method: "post", path: "/v1/auth/password", successStatus: 204 },
  body: z.strictObject({ currentPassword: text(1, 1_024), newPassword }),
  output: z.undefined(),
  errors: ["PASSWORD_INVALID"],
});
