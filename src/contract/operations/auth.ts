import { z } from "zod";
import { define } from "../define.ts";
import { text, timestamp, uuid } from "../primitives.ts";
import type { ManagementAccess } from "../types.ts";

const self: ManagementAccess = {
  kind: "management",
  organizationKey: "never",
  role: "member",
  stepUp: false,
};
const code = z.string().regex(/^\d{6}$/, "must be six digits");

const user = z
  .strictObject({
    id: uuid,
    name: z.string(),
    email: z.string(),
    role: z.enum(["owner", "admin", "member"]),
    secondFactors: z.array(z.string()),
    createdAt: timestamp,
  })
  .meta({ id: "User" });
const organization = z
  .strictObject({
    id: uuid,
    name: z.string(),
    plan: z.enum(["free", "pro", "enterprise"]),
    status: z.enum(["provisioning", "ready"]),
  })
  .meta({ id: "Organization" });

const session = z.strictObject({
  token: z.string(),
  refreshToken: z.string(),
  expiresAt: timestamp,
  user,
  organization,
});

export const signIn = define({
  summary: "Sign in",
  description:
    "Answers a session: a JWT of 15 minutes and a refresh token. A user with a second factor sends its `code` too. " +
    "Does not step up. Decisions 2.",
  tag: "Authentication",
  access: { kind: "public" },
  http: { method: "post", path: "/v1/auth/sign-in", successStatus: 200 },
  body: z.strictObject({ email: text(1, 254), password: text(1, 1_024), code: code.optional() }),
  output: session,
  errors: ["UNAUTHORIZED", "SECOND_FACTOR_REQUIRED", "SECOND_FACTOR_INVALID", "SECOND_FACTOR_LOCKED"],
});

export const refreshSession = define({
  summary: "Refresh a session",
  description:
    "Gives a new token for a refresh token, which is used up. Using an old one again ends the session. Decisions 2.",
  tag: "Authentication",
  access: { kind: "public" },
  http: { method: "post", path: "/v1/auth/refresh", successStatus: 200 },
  body: z.strictObject({ refreshToken: text(1, 512) }),
  output: session,
  errors: ["UNAUTHORIZED"],
});

export const signOut = define({
  summary: "Sign out",
  description: "Ends the session; its token is refused from now on. Decisions 2.",
  tag: "Authentication",
  access: self,
  http: { method: "post", path: "/v1/auth/sign-out", successStatus: 204 },
  output: z.undefined(),
  errors: [],
});

export const getMe = define({
  summary: "Who am I",
  description: "The signed-in user, the organization and the session. Decisions 2.",
  tag: "Authentication",
  access: self,
  http: { method: "get", path: "/v1/auth/me", successStatus: 200 },
  output: z.strictObject({ user, organization, stepUpExpiresAt: timestamp.nullable() }),
  errors: [],
});

export const enrollTotp = define({
  summary: "Enrol a TOTP factor",
  description:
    "Answers a new secret, once; it counts after it was confirmed with a code. With a factor enrolled already it needs step-up. Decisions 2.",
  tag: "Authentication",
  access: self,
  http: { method: "post", path: "/v1/auth/totp", successStatus: 201 },
  output: z.strictObject({ secret: z.string(), otpauthUrl: z.string() }),
  errors: ["STEP_UP_REQUIRED"],
});

export const confirmTotp = define({
  summary: "Confirm a TOTP factor",
  description: "Uses the code up; does not step up. Decisions 2.",
  tag: "Authentication",
  access: self,
  http: { method: "post", path: "/v1/auth/totp/confirm", successStatus: 200 },
  body: z.strictObject({ code }),
  output: z.strictObject({ user }),
  errors: ["STEP_UP_REQUIRED", "SECOND_FACTOR_INVALID", "SECOND_FACTOR_LOCKED"],
});

export const stepUp = define({
  summary: "Step up",
  description:
    "Verifies a second factor and elevates this session for 5 minutes, on the server. Decisions 2.",
  tag: "Authentication",
  access: self,
  http: { method: "post", path: "/v1/auth/step-up", successStatus: 200 },
  body: z.strictObject({ method: z.literal("totp"), code }),
  output: z.strictObject({ stepUpExpiresAt: timestamp }),
  errors: ["SECOND_FACTOR_INVALID", "SECOND_FACTOR_LOCKED"],
});
