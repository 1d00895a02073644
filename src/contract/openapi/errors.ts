import { ERRORS, type ErrorCode } from "../../domain/errors.ts";
import type { Access, ManagementAccess, Operation } from "../types.ts";

/** Errors of an operation by status: its own, and those that follow from its access. */

/** Error codes of every operation. */
const COMMON_ERRORS: readonly ErrorCode[] = [
  "VALIDATION_FAILED",
  "RATE_LIMITED",
  "SERVICE_UNAVAILABLE",
  "INTERNAL",
];

/** Error codes of operations with cookies or a link's secret: another host is named, or another site's page asks. */
const BROWSER_ERRORS: readonly ErrorCode[] = ["ORIGIN_NOT_ALLOWED", "HOST_NOT_ALLOWED"];

/** Error codes of an unreadable body, whether or not the operation has one. */
const BODY_ERRORS: readonly ErrorCode[] = ["PAYLOAD_TOO_LARGE", "UNSUPPORTED_MEDIA_TYPE"];

/** Error codes that come with a time to wait. */
export const WAITS: ReadonlySet<ErrorCode> = new Set([
  "RATE_LIMITED",
  "DAILY_CREATE_LIMIT_REACHED",
  "TOO_MANY_STREAMS",
  "RAISE_LIMIT_REACHED",
  "SIMULATION_RUNNING",
  "SECOND_FACTOR_LOCKED",
  "CREATE_RETRYABLE",
  "SERVICE_UNAVAILABLE",
] as const);

export function errorCodesOf(operation: Operation): ReadonlyMap<string, readonly ErrorCode[]> {
  const byStatus = new Map<string, ErrorCode[]>();
  const bodyErrors = operation.http?.method === "get" ? [] : BODY_ERRORS;
  const codes = [...accessErrors(operation.access), ...COMMON_ERRORS, ...bodyErrors, ...operation.errors];
  for (const code of new Set(codes)) {
    const status = String(statusOf(operation, code));
    byStatus.set(status, [...(byStatus.get(status) ?? []), code]);
  }
  return byStatus;
}

/** Error codes with two statuses: 401 if they prevent a sign-in. */
const REFUSED_FACTORS: readonly ErrorCode[] = ["SECOND_FACTOR_INVALID", "PASSKEY_POSSIBLY_COPIED"];

const statusOf = ({ access }: Operation, code: ErrorCode): number =>
  REFUSED_FACTORS.includes(code) && access.kind === "public" ? 401 : ERRORS[code].status;

function accessErrors(access: Access): ErrorCode[] {
  if (access.kind === "public") return [...BROWSER_ERRORS];
  if (access.kind === "agent")
    return ["UNAUTHORIZED", "AGENT_PAUSED", "WRONG_CREDENTIAL", "TOOL_NOT_ALLOWED", ...BROWSER_ERRORS];
  const mayNeedMore = access.requirementsOf !== undefined;
  return [
    "UNAUTHORIZED",
    ...BROWSER_ERRORS,
    // Possible for any call with a paused agent's key.
    "AGENT_PAUSED",
    "WRONG_CREDENTIAL",
    ...(access.beforeEnrolment === true ? [] : (["SECOND_FACTOR_ENROLMENT_REQUIRED"] as const)),
    ...(access.organizationKey === "never" ? [] : (["INSUFFICIENT_SCOPE"] as const)),
    ...(access.organizationKey === "never" || mayNeedMore ? (["SESSION_REQUIRED"] as const) : []),
    ...(lies(access) ? (["OUTSIDE_BINDING"] as const) : []),
    ...(access.role === "auditor" && !mayNeedMore ? [] : (["ROLE_REQUIRED"] as const)),
    ...(access.stepUp || mayNeedMore ? (["STEP_UP_REQUIRED"] as const) : []),
  ];
}

/** Whether the subject is in a container, and so can be outside the caller's binding. */
const lies = ({ subject }: ManagementAccess): boolean => subject !== "none" && subject !== "list";
