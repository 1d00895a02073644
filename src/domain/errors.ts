/**
 * All error codes, with HTTP status and default public message. Every refusal that leaves the service has one of them.
 */
export const ERRORS = {
  VALIDATION_FAILED: {
    status: 400,
    message: "The request is invalid; see `issues`.",
  },
  IDEMPOTENCY_KEY_REQUIRED: {
    status: 400,
    message: "The request requires an `idempotencyKey` in its body; generate and store it before the call.",
  },
  BAD_CURSOR: { status: 400, message: "The cursor is malformed or belongs to another list." },
  UNAUTHORIZED: { status: 401, message: "The credential is missing, invalid, expired or revoked." },
  SECOND_FACTOR_REQUIRED: {
    status: 401,
    message: "Send `code` with e-mail and password: the six digits of your authenticator app.",
  },
  AGENT_PAUSED: {
    status: 403,
    message: "The agent is paused by its organization and must be resumed by a person. Do not retry.",
  },
  INSUFFICIENT_SCOPE: {
    status: 403,
    message: "The key lacks a required scope; see `requiredScope`.",
  },
  OUTSIDE_BINDING: {
    status: 403,
    message: "The resource is outside the project or team that this key is bound to.",
  },
  SESSION_REQUIRED: { status: 403, message: "This operation requires a person's session." },
  ROLE_REQUIRED: { status: 403, message: "Your role does not permit this operation." },
  STEP_UP_REQUIRED: {
    status: 403,
    message:
      "Verify a second factor first: POST /v1/auth/step-up. Enrol one, if there is none: POST /v1/auth/totp or " +
      "/v1/auth/passkeys/options.",
  },
  TOOL_NOT_ALLOWED: { status: 403, message: "The agent's key does not include this tool." },
  WRONG_CREDENTIAL: { status: 403, message: "This kind of credential is not accepted for this operation." },
  ORIGIN_NOT_ALLOWED: { status: 403, message: "Requests from web pages of other origins are not accepted." },
  HOST_NOT_ALLOWED: {
    status: 403,
    message:
      "The `Host` header is not a name of this service: use the address in BASE_URL or MCP_URL, or have the operator " +
      "add the name to ALLOWED_HOSTS.",
  },
  MACHINE_ARCHIVE_DENIED: {
    status: 403,
    message:
      "An organization key is not permitted to archive this agent; a person must do it: DELETE /v1/agents/{id}.",
  },
  SSO_REQUIRED: {
    status: 403,
    message: "This organization signs in by its identity provider: POST /v1/auth/sso/start.",
  },
  SSO_NO_ACCOUNT: {
    status: 403,
    message:
      "You have no account here: an admin must invite you. An invite, or a verified e-mail address, makes the link " +
      "between the identity provider and an account.",
  },
  SSO_FAILED: { status: 401, message: "The identity provider did not sign you in. Start again." },
  SECOND_FACTOR_INVALID: {
    status: 403,
    message: "The code is wrong, or was used already: wait for the next one.",
  },
  PASSKEY_POSSIBLY_COPIED: {
    status: 403,
    message:
      "This passkey signed with an older counter than before, as a copy of it would, and is not accepted. Sign in " +
      "another way, remove it in Settings → Security and enrol it again. Without another factor, ask an owner to " +
      "reset yours.",
  },
  SECOND_FACTOR_ENROLMENT_REQUIRED: {
    status: 403,
    message:
      "The organization requires a second factor. Enrol one first: POST /v1/auth/totp or /v1/auth/passkeys/options, within 5 " +
      "minutes of a sign-in.",
  },
  PASSWORD_INVALID: { status: 403, message: "The current password is wrong." },
  SECOND_FACTOR_LOCKED: { status: 403, message: "Too many wrong codes; the factor is temporarily locked." },
  NOT_FOUND: { status: 404, message: "The resource does not exist." },
  METHOD_NOT_ALLOWED: {
    status: 405,
    message: "The path does not support this method; see the `Allow` header.",
  },
  VERSION_CONFLICT: { status: 409, message: "The version is outdated; read the resource again and retry." },
  STALE_APPROVAL_RULES: { status: 409, message: "The version is outdated; read the rules again and retry." },
  STALE_RESTRICTIONS: {
    status: 409,
    message: "The version is outdated; read the restrictions again and retry.",
  },
  ORGANIZATION_REQUIRED: {
    status: 409,
    message: "You have accounts in several organizations: send `organizationId`, one of `organizations`.",
  },
  REQUEST_IN_PROGRESS: {
    status: 409,
    message: "The same request is still in progress; repeat it to get its result.",
  },
  ORG_NOT_READY: {
    status: 409,
    message: "The organization is still being set up; retry in a few seconds with the same idempotencyKey.",
  },
  AGENT_ARCHIVED: { status: 409, message: "The agent is archived." },
  KEY_ALREADY_EXISTS: { status: 409, message: "The agent has an active key; revoke it first." },
  KEY_STILL_DELIVERABLE: {
    status: 409,
    message: "The agent's key can still be delivered: repeat the create to receive it and keep the agent.",
  },
  KEY_DELIVERY_UNPROVEN: {
    status: 409,
    message: "It is not certain that the key was never delivered: repeat the create, then archive again.",
  },
  BALANCE_UNVERIFIABLE: {
    status: 409,
    message: "The balance of the agent's wallet could not be read; retry later.",
  },
  CONTAINER_ARCHIVED: { status: 409, message: "The project or team is archived." },
  CONTAINER_NOT_EMPTY: {
    status: 409,
    message: "The project or team has active children; archive them first.",
  },
  TOO_MANY_TEAMS: {
    status: 409,
    message: "The project has the maximum number of active teams; archive one first.",
  },
  PROJECT_FULL: {
    status: 409,
    message:
      "The project has the maximum number of active agents, or of teams ever created; archive agents, or use another project.",
  },
  LAST_OWNER: { status: 409, message: "An organization must have at least one owner." },
  LAST_FACTOR: { status: 409, message: "This is the last second factor; enrol another one first." },
  TOO_MANY_PASSKEYS: {
    status: 409,
    message: "The maximum number of passkeys is reached; remove one first.",
  },
  TOO_MANY_MAILED_PEOPLE: {
    status: 409,
    message:
      "As many people of the organization are mailed about approvals as can be; one of them has to switch it off first.",
  },
  APPROVAL_ALREADY_RESOLVED: { status: 409, message: "The approval request is already resolved." },
  APPROVAL_EXPIRED: { status: 409, message: "The approval request expired without a decision." },
  WEBHOOK_DISABLED: {
    status: 409,
    message: "The endpoint is disabled; enable it first, by PUT with `isActive: true`.",
  },
  TOO_MANY_WEBHOOKS: {
    status: 409,
    message: "The maximum number of webhook endpoints is reached; delete one first.",
  },
  REPLAY_IN_PROGRESS: { status: 409, message: "A replay of this endpoint is still running." },
  STALE_BUDGET: { status: 409, message: "The version is outdated; read the budget again and retry." },
  STALE_CALENDAR: { status: 409, message: "The version is outdated; read the calendar again and retry." },
  PAYMENT_NOT_CANCELLABLE: {
    status: 409,
    message: "Only a payment on hold, or one whose card was not used yet, can be cancelled.",
  },
  RAIL_IN_USE: {
    status: 409,
    message: "Cards of this connection wait, or more may be captured on them; cancel their payments first.",
  },
  RAISE_PENDING: {
    status: 409,
    message: "You have asked for a raise that nobody has decided yet; only one is open at a time.",
  },
  RAISE_NOT_NEEDED: { status: 409, message: "Every limit has room for this amount; pay." },
  RAISE_ALREADY_RESOLVED: { status: 409, message: "The raise request is already resolved." },
  RAISE_IMPOSSIBLE: {
    status: 409,
    message:
      "A limit would be above the highest amount or have more than 8 increases at once, or `endsAt` has passed.",
  },
  PAYLOAD_TOO_LARGE: {
    status: 413,
    message: "The body is larger than the route takes: 256 KiB, for a team's budget 2 MiB.",
  },
  UNSUPPORTED_MEDIA_TYPE: { status: 415, message: "The body must be application/json, in UTF-8." },
  IDEMPOTENCY_KEY_REUSED: {
    status: 422,
    message: "The idempotencyKey was already used with a different payload.",
  },
  PRICE_ABOVE_MAX: {
    status: 422,
    message: "The shop asks for more than `maxAmountCents`; nothing was paid.",
  },
  NO_PAYABLE_OFFER: {
    status: 422,
    message: "The shop asks for payment in no way that this wallet can pay; nothing was paid.",
  },
  SHOP_UNREACHABLE: {
    status: 422,
    message: "The shop gave no answer, so nothing was paid by this request; repeat it later.",
  },
  ISSUER_REFUSED: { status: 422, message: "The card issuer refused; see `message`." },
  BUDGET_CHILDREN_INCOMPLETE: {
    status: 422,
    message: "A budget is replaced as a whole and must name every active child; see `missing`.",
  },
  BUDGET_CHILD_UNKNOWN: {
    status: 422,
    message: "A budget must name each active child once and nothing else; see `unknown`.",
  },
  WALLET_OWNER_UNPROVEN: {
    status: 422,
    message:
      "The owner must prove its key: sign `challenge` with it (EIP-191) and send the signature as `walletOwnerSignature`.",
  },
  RATE_LIMITED: { status: 429, message: "Too many requests; retry after `retry_after_seconds`." },
  RAISE_LIMIT_REACHED: { status: 429, message: "You have asked for 5 raises in the last 24 hours." },
  TOO_MANY_STREAMS: {
    status: 429,
    message: "The session has the maximum number of open streams; close one first.",
  },
  SIMULATION_RUNNING: {
    status: 429,
    message: "A simulation of your organization is under way; try again once it has answered.",
  },
  DAILY_CREATE_LIMIT_REACHED: {
    status: 429,
    message: "The key's daily create limit is reached; it resets at midnight UTC.",
  },
  INTERNAL: { status: 500, message: "An internal error occurred; report it with its requestId." },
  CREATE_RETRYABLE: {
    status: 503,
    message: "The create could not be completed; retry with the same idempotencyKey and payload.",
  },
  SERVICE_UNAVAILABLE: { status: 503, message: "The service is temporarily unavailable; retry shortly." },
} as const satisfies Record<string, { readonly status: number; readonly message: string }>;

export type ErrorCode = keyof typeof ERRORS;

export interface ValidationIssue {
  /** Dotted path in the body, the query or a tool's arguments, such as `binding.id`. */
  readonly path: string;
  readonly message: string;
}

/** A refusal as a value. `message` is public and never contains unescaped text from outside. */
export interface Refusal {
  readonly code: ErrorCode;
  readonly message: string;
  /** The part of `message` specific to this refusal, as a sentence. */
  readonly detail?: string;
  /** Overrides the table's status if a code has two (a refused factor: 401 at sign-in). */
  readonly status?: number;
  readonly issues?: readonly ValidationIssue[];
  readonly requiredScope?: string;
  readonly retryAfterSeconds?: number;
  /** Children that a full replacement omits; `unknown` are those it names that don't exist. */
  readonly missing?: readonly string[];
  readonly unknown?: readonly string[];
  /** Message that the owner of wallets has to sign. */
  readonly challenge?: string;
  readonly organizations?: readonly { readonly id: string; readonly name: string }[];
}

/** Builds a refusal, by default with the table's message. */
export function refusal(
  code: ErrorCode,
  message?: string,
  more: Omit<Refusal, "code" | "message"> = {},
): Refusal {
  return { code, message: message ?? ERRORS[code].message, ...more };
}

export const statusOf = (value: Refusal): number => value.status ?? ERRORS[value.code].status;
