/**
 * The closed table of error codes: every refusal that can
 * leave the service has its code, HTTP status and default public message here and nowhere else.
 */
export const ERRORS = {
  VALIDATION_FAILED: {
    status: 400,
    message: "The request is not valid; `issues` says what is wrong, and where.",
  },
  IDEMPOTENCY_KEY_REQUIRED: { status: 400, message: "Send an idempotencyKey, kept before the call." },
  BAD_CURSOR: { status: 400, message: "The cursor is malformed or belongs to another list." },
  UNAUTHORIZED: { status: 401, message: "The credential is missing, invalid, expired or revoked." },
  SECOND_FACTOR_REQUIRED: {
    status: 401,
    message: "Send `code` with e-mail and password: the six digits of your authenticator app.",
  },
  AGENT_PAUSED: {
    status: 403,
    message: "Paused by your organization: a person must resume this agent. Do not retry.",
  },
  INSUFFICIENT_SCOPE: {
    status: 403,
    message: "The key lacks the scope for this action; `requiredScope` names it.",
  },
  OUTSIDE_BINDING: { status: 403, message: "It lies outside the project or team that this key is bound to." },
  SESSION_REQUIRED: { status: 403, message: "Only a person's session may do this." },
  ROLE_REQUIRED: { status: 403, message: "The member's role does not allow this." },
  STEP_UP_REQUIRED: {
    status: 403,
    message:
      "Verify a second factor first: POST /v1/auth/step-up. Enrol one, if there is none: POST /v1/auth/totp or " +
      "/v1/auth/passkeys/options.",
  },
  TOOL_NOT_ALLOWED: { status: 403, message: "The agent's key is not scoped to this tool." },
  WRONG_CREDENTIAL: { status: 403, message: "This kind of credential does not belong on this route." },
  ORIGIN_NOT_ALLOWED: { status: 403, message: "Web pages of other origins may not speak to this endpoint." },
  HOST_NOT_ALLOWED: {
    status: 403,
    message:
      "The request names another host than this service's: use the address in BASE_URL or MCP_URL, or have the operator " +
      "add the name to ALLOWED_HOSTS.",
  },
  MACHINE_ARCHIVE_DENIED: {
    status: 403,
    message: "An organization's key may not archive this agent; a person must: DELETE /v1/agents/{id}.",
  },
  SECOND_FACTOR_INVALID: { status: 403, message: "The code is wrong or was used already." },
  SECOND_FACTOR_ENROLMENT_REQUIRED: {
    status: 403,
    message:
      "The organization requires a second factor. Enrol one first: POST /v1/auth/totp or /v1/auth/passkeys/options, within 5 " +
      "minutes of a sign-in.",
  },
  PASSWORD_INVALID: { status: 403, message: "The current password is wrong." },
  SECOND_FACTOR_LOCKED: { status: 403, message: "Too many wrong codes; the factor is locked for a while." },
  NOT_FOUND: { status: 404, message: "There is no such resource." },
  METHOD_NOT_ALLOWED: {
    status: 405,
    message: "The path has no such method; `Allow` names those that it has.",
  },
  VERSION_CONFLICT: { status: 409, message: "The version is stale; read again, then retry." },
  STALE_APPROVAL_RULES: { status: 409, message: "The version is stale; read the rules again, then retry." },
  ORGANIZATION_REQUIRED: {
    status: 409,
    message: "You have accounts in several organizations: send `organizationId`, one of `organizations`.",
  },
  REQUEST_IN_PROGRESS: { status: 409, message: "The same request is still in progress; replay it." },
  ORG_NOT_READY: {
    status: 409,
    message: "The organization is still being set up; retry in some seconds with the same idempotencyKey.",
  },
  AGENT_ARCHIVED: { status: 409, message: "The agent is archived." },
  KEY_ALREADY_EXISTS: { status: 409, message: "The agent has an active key; revoke it first." },
  KEY_STILL_DELIVERABLE: {
    status: 409,
    message: "The agent's key can still be delivered: replay the create to recover it and keep the agent.",
  },
  KEY_DELIVERY_UNPROVEN: {
    status: 409,
    message: "It is not proven that the key was never delivered: replay the create, then archive again.",
  },
  BALANCE_UNVERIFIABLE: {
    status: 409,
    message: "The balance of the agent's wallet could not be read; retry later.",
  },
  CONTAINER_ARCHIVED: { status: 409, message: "The project or team is archived." },
  CONTAINER_NOT_EMPTY: { status: 409, message: "The project or team has live children; archive them first." },
  TOO_MANY_TEAMS: {
    status: 409,
    message: "There are as many live teams as a project may have; archive one first.",
  },
  PROJECT_FULL: {
    status: 409,
    message:
      "The project holds as many live agents, or has had as many teams, as it may; archive agents, or use another project.",
  },
  LAST_OWNER: { status: 409, message: "An organization keeps at least one owner." },
  LAST_FACTOR: { status: 409, message: "It is the last second factor; enrol another one first." },
  TOO_MANY_PASSKEYS: {
    status: 409,
    message: "There are as many passkeys as a person may have; remove one first.",
  },
  APPROVAL_ALREADY_RESOLVED: { status: 409, message: "The approval request is resolved already." },
  APPROVAL_EXPIRED: { status: 409, message: "The approval request expired without a decision." },
  WEBHOOK_DISABLED: {
    status: 409,
    message: "The endpoint is disabled: enable it first, by PUT with isActive true.",
  },
  TOO_MANY_WEBHOOKS: {
    status: 409,
    message: "There are as many webhook endpoints as an organization may have; remove one first.",
  },
  REPLAY_IN_PROGRESS: { status: 409, message: "A replay of this endpoint is still running." },
  STALE_BUDGET: { status: 409, message: "The budget's version is stale; read it again, then retry." },
  PAYMENT_NOT_CANCELLABLE: { status: 409, message: "Only a payment on hold can be cancelled." },
  PAYLOAD_TOO_LARGE: { status: 413, message: "The body is larger than 256 KiB." },
  UNSUPPORTED_MEDIA_TYPE: { status: 415, message: "The body must be application/json, in UTF-8." },
  IDEMPOTENCY_KEY_REUSED: { status: 422, message: "The idempotencyKey was used with another payload." },
  BUDGET_CHILDREN_INCOMPLETE: {
    status: 422,
    message: "A budget is replaced whole: name every live child; `missing` has those that are not named.",
  },
  BUDGET_CHILD_UNKNOWN: {
    status: 422,
    message: "Each live child is named once, and nothing else; `unknown` has what does not belong there.",
  },
  RATE_LIMITED: { status: 429, message: "Too many requests; retry after `retry_after_seconds`." },
  DAILY_CREATE_LIMIT_REACHED: {
    status: 429,
    message: "The key's creates of this UTC day are used up; they start anew at midnight UTC.",
  },
  INTERNAL: { status: 500, message: "Something went wrong on our side; report it with its requestId." },
  CREATE_RETRYABLE: { status: 503, message: "The create failed for now; replay the same key and payload." },
  SERVICE_UNAVAILABLE: { status: 503, message: "A part of the service is not reachable; retry shortly." },
} as const satisfies Record<string, { readonly status: number; readonly message: string }>;

export type ErrorCode = keyof typeof ERRORS;

export interface ValidationIssue {
  /** Where in the body, the query or a tool's arguments, dotted: `binding.id`. */
  readonly path: string;
  readonly message: string;
}

/** A refusal as a value. `message` is for the public; it never carries text from outside unescaped. */
export interface Refusal {
  readonly code: ErrorCode;
  readonly message: string;
  /** What is particular about this one, a sentence that `message` says too; for whoever says the rest in other words. */
  readonly detail?: string;
  /** Overrides the table's status where one code has two (SECOND_FACTOR_INVALID: 401 at sign-in). */
  readonly status?: number;
  readonly issues?: readonly ValidationIssue[];
  readonly requiredScope?: string;
  readonly retryAfterSeconds?: number;
  /** Children that a full replacement does not name, and what it names and has not. */
  readonly missing?: readonly string[];
  readonly unknown?: readonly string[];
  /** Those to choose from. */
  readonly organizations?: readonly { readonly id: string; readonly name: string }[];
}

/** Builds a refusal with the table's message unless a better one is given. */
export function refusal(
  code: ErrorCode,
  message?: string,
  more: Omit<Refusal, "code" | "message"> = {},
): Refusal {
  return { code, message: message ?? ERRORS[code].message, ...more };
}

export const statusOf = (value: Refusal): number => value.status ?? ERRORS[value.code].status;
