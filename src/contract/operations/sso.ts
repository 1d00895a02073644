import { z } from "zod";
import { anyone, person } from "../access.ts";
import { define } from "../define.ts";
import { session } from "../records.ts";
import { email, secretToken, text, uuid } from "../primitives.ts";

const common = { tag: "Organization", rate: "standard" } as const;
const owner = person({ role: "owner", stepUp: true });
const path = "/v1/organization/sso";

const domain = z
  .string()
  .max(253)
  .regex(/^(?:[a-z0-9](?:[a-z0-9-]*[a-z0-9])?\.)+[a-z][a-z0-9-]*[a-z0-9]$/, "must be a domain in lower case");

const provider = {
  issuer: text(1, 500),
  clientId: text(1, 255),
  domains: z.array(domain).min(1).max(20),
  required: z.boolean(),
  jit: z.strictObject({ role: z.enum(["member", "auditor"]) }).nullable(),
};

const settings = z.strictObject({
  sso: z.strictObject(provider).nullable().meta({ description: "Null: people sign in here alone." }),
  callbackUrl: z
    .string()
    .meta({ description: "Register this as the client's redirect URI at the provider." }),
  logoutUrl: z.string().meta({ description: "Register this as the client's back-channel logout URI." }),
});

export const getSso = define({
  ...common,
  summary: "Read the identity provider",
  description:
    "The organization's identity provider, without its secret, and the addresses to register there.",
  access: person({ role: "owner" }),
  http: { method: "get", path, successStatus: 200 },
  output: settings,
  errors: [],
});

export const setSso = define({
  ...common,
  summary: "Set the identity provider",
  description:
    "People with an address in `domains` sign in by this provider, which speaks OpenID Connect. Its metadata is read before " +
    "anything is stored. A `clientSecret` that is left out stays, for the same client. With `required`, from their next " +
    "request on, people other than owners sign in there alone, and every session lasts 12 hours. `jit` makes a person with a " +
    "verified address in `domains` a member of that role; null: people are invited.",
  access: owner,
  http: { method: "put", path, successStatus: 200 },
  body: z.strictObject({ ...provider, clientSecret: text(1, 1_000).optional() }),
  output: settings,
  errors: [],
});

export const removeSso = define({
  ...common,
  summary: "Remove the identity provider",
  description: "Nobody signs in by it any more; people without a password need one from the operator.",
  access: owner,
  http: { method: "delete", path, successStatus: 204 },
  output: z.undefined(),
  errors: ["NOT_FOUND"],
});

export const startSso = define({
  ...common,
  tag: "Authentication",
  summary: "Begin a sign-in by the identity provider",
  description:
    "Answers the address at the identity provider that the browser goes to; the provider sends it back to the organization's page, `callbackUrl`, with a " +
    "code for `POST /v1/auth/sso/callback`. Send an `email`, of which the domain alone counts, or the `token` of an invite. A domain or " +
    "organization without a provider is 404. Sets a cookie that the callback needs.",
  access: anyone,
  http: { method: "post", path: "/v1/auth/sso/start", successStatus: 200 },
  body: z
    .union([
      z.strictObject({ email }).meta({ title: "SsoByEmail" }),
      z.strictObject({ token: secretToken }).meta({ title: "SsoByInvite" }),
    ])
    .meta({ title: "SsoBeginning" }),
  output: z.strictObject({ url: z.string() }),
  errors: ["NOT_FOUND", "SSO_FAILED", "UNAUTHORIZED"],
});

export const finishSso = define({
  ...common,
  tag: "Authentication",
  summary: "Sign in by the identity provider",
  description:
    "Verifies the provider's answer to the sign-in that this browser has begun, and starts a session as `POST /v1/auth/sign-in` does. " +
    "A person is known by issuer and subject, and linked the first time by an invite or a verified e-mail address. " +
    "`organizationId` is that of the page, by which an answer of another organization's provider is refused. `flow` is the " +
    "cookie's value; browsers leave it out.",
  access: anyone,
  http: { method: "post", path: "/v1/auth/sso/callback", successStatus: 200 },
  body: z.strictObject({
    code: text(1, 4_000).optional(),
    state: text(1, 200),
    organizationId: uuid,
    iss: text(1, 500).optional(),
    error: text(1, 200).optional(),
    flow: text(1, 4_000).optional(),
  }),
  output: session,
  errors: ["SSO_FAILED", "SSO_NO_ACCOUNT", "UNAUTHORIZED"],
});

export const endSsoSessions = define({
  ...common,
  tag: "Authentication",
  summary: "End sessions for the identity provider",
  description:
    "Back-channel logout of OpenID Connect: a `logout_token` of a provider, also as a form, ends the sessions that it names.",
  access: anyone,
  http: { method: "post", path: "/v1/auth/sso/logout", successStatus: 204 },
  body: z.strictObject({ logout_token: text(1, 8_000) }),
  output: z.undefined(),
  errors: ["SSO_FAILED"],
});
