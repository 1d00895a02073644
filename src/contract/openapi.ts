import { z } from "zod";
import { ERRORS, type ErrorCode } from "../domain/errors.ts";
import { COOKIE_REQUEST_HEADER, COOKIE_REQUEST_VALUE, cookieNames } from "./cookies.ts";
import { jsonSchemaOf, type NamedJsonSchema } from "./json-schema.ts";
import { errorBody } from "./records.ts";
import { answersSession, type OperationId, operationList } from "./registry.ts";
import type { Access, HttpBinding, ManagementAccess, ObjectSchema, Operation } from "./types.ts";

/** The parts of an OpenAPI 3.1 document that this service fills; the rest is JSON. */
export interface OpenApiDocument {
  readonly openapi: "3.1.0";
  readonly info: { readonly title: string; readonly version: string; readonly description: string };
  readonly servers: readonly { readonly url: string }[];
  readonly paths: Readonly<Record<string, Readonly<Record<string, OpenApiOperation>>>>;
  readonly components: Readonly<Record<string, unknown>>;
}

export interface OpenApiOperation {
  readonly operationId: string;
  readonly summary: string;
  readonly description: string;
  readonly tags: readonly string[];
  readonly security: readonly Readonly<Record<string, readonly string[]>>[];
  readonly parameters?: readonly object[];
  readonly requestBody?: object;
  readonly responses: Readonly<Record<string, object>>;
}

const COMPONENTS = "#/components/schemas/";

const REQUEST_ID = "x-request-id";

/** Headers of every response. */
const HEADERS = {
  "x-ratelimit-limit":
    "Requests that the caller may make in a minute: by its organization's plan for a key or a person, by address for " +
    "callers without a valid credential.",
  "x-ratelimit-remaining": "How many of them are left in the minute at hand.",
  "x-ratelimit-reset": "When that minute ends, in Unix seconds.",
  [REQUEST_ID]: "The request's id, as the service's log has it, and an error's body.",
} as const;

/** Those of errors that say what to do next. */
const RETRY_AFTER = "retry-after";
const ERROR_HEADERS = {
  [RETRY_AFTER]: "Seconds to wait before trying again: `retry_after_seconds` of the body.",
} as const;

const referTo = (names: readonly string[]) =>
  Object.fromEntries(names.map((name) => [name, { $ref: `#/components/headers/${name}` }]));

const headers = referTo(Object.keys(HEADERS));
const headersWithWait = { ...headers, ...referTo([RETRY_AFTER]) };

/** Codes that come with a time to wait. */
const WAITS: ReadonlySet<ErrorCode> = new Set([
  "RATE_LIMITED",
  "DAILY_CREATE_LIMIT_REACHED",
  "SECOND_FACTOR_LOCKED",
  "CREATE_RETRYABLE",
  "SERVICE_UNAVAILABLE",
] as const);

/** Codes that any operation may answer. */
const COMMON_ERRORS: readonly ErrorCode[] = [
  "VALIDATION_FAILED",
  "RATE_LIMITED",
  "SERVICE_UNAVAILABLE",
  "INTERNAL",
];

/** Codes of a body that cannot be read, whether the operation takes one or not. */
const BODY_ERRORS: readonly ErrorCode[] = ["PAYLOAD_TOO_LARGE", "UNSUPPORTED_MEDIA_TYPE"];

/** The OpenAPI document of every REST operation, derived from the registry: it cannot disagree with the routes. */
export function openApiDocument(baseUrl: string): OpenApiDocument {
  const paths: Record<string, Record<string, OpenApiOperation>> = {};
  for (const [id, operation] of operationList) {
    if (operation.http === null) continue;
    const path = operation.http.path.replaceAll(/:(\w+)/g, "{$1}");
    paths[path] = { ...paths[path], [operation.http.method]: describe(id, operation, operation.http) };
  }
  return {
    openapi: "3.1.0",
    info: {
      title: "Agent Spending Control Service",
      version: "1",
      description:
        "AI agents that spend real money, under control. Amounts are integer cents; timestamps ISO 8601 in UTC; lists " +
        "are newest first, paged by an opaque cursor.",
    },
    servers: [{ url: baseUrl }],
    paths,
    components: {
      schemas: { ...namedRecords(), Error: schemaOf(errorBody) },
      headers: Object.fromEntries(
        Object.entries({ ...HEADERS, ...ERROR_HEADERS }).map(([name, description]) => [
          name,
          {
            description,
            required: name in HEADERS,
            schema: name === REQUEST_ID ? { type: "string" } : { type: "integer", minimum: 0 },
          },
        ]),
      ),
      securitySchemes: {
        session: { type: "http", scheme: "bearer", bearerFormat: "JWT", description: "A person's session." },
        sessionCookie: {
          type: "apiKey",
          in: "cookie",
          name: cookieNames(baseUrl).session,
          description:
            "A browser's session, asked for with `svc-session: cookie` where it begins. It counts only without an " +
            "Authorization header, and for anything but GET only from a page of the same origin (Sec-Fetch-Site or Origin).",
        },
        organizationKey: { type: "http", scheme: "bearer", description: "An organization's API key." },
        agentKey: { type: "http", scheme: "bearer", description: "An agent's API key." },
      },
    },
  };
}

function describe(id: OperationId, operation: Operation, http: HttpBinding): OpenApiOperation {
  const { summary, description, tag } = operation;
  const parameters = [
    ...parametersOf(operation.params, "path"),
    ...parametersOf(operation.query, "query"),
    ...(answersSession(id) ? [COOKIE_PARAMETER] : []),
  ];
  return {
    operationId: id,
    summary,
    description: description + peopleNeed(operation.access),
    tags: [tag],
    security: securityOf(operation.access),
    ...(parameters.length === 0 ? {} : { parameters }),
    ...requestBodyOf(operation),
    responses: responsesOf(operation, http),
  };
}

const ROLES = { member: null, admin: "the role admin or owner", owner: "the role owner" } as const;

/** What OpenAPI's security can't say: the role and the step-up that a person needs whatever is asked for. */
function peopleNeed(access: Access): string {
  if (access.kind !== "management") return "";
  const needs = [ROLES[access.role], access.stepUp ? "a step-up within 5 minutes" : null];
  const named = needs.filter((need) => need !== null);
  return named.length === 0 ? "" : ` A person needs ${named.join(" and ")}.`;
}

const COOKIE_PARAMETER = {
  name: COOKIE_REQUEST_HEADER,
  in: "header",
  required: false,
  schema: { const: COOKIE_REQUEST_VALUE },
  description: "A page of the service asks for the two tokens in HttpOnly cookies instead of in the body.",
};

const schemaOf = (schema: z.ZodType): NamedJsonSchema["schema"] => jsonSchemaOf(schema, COMPONENTS).schema;

/** Every record that an operation names, and the error body. */
function namedRecords(): Record<string, unknown> {
  const schemas = operationList.flatMap(([, operation]) => [operation.body, operation.output]);
  return Object.assign(
    {},
    ...[errorBody, ...schemas].map((schema) => jsonSchemaOf(schema, COMPONENTS).named),
  );
}

function parametersOf(schema: ObjectSchema, place: "path" | "query"): object[] {
  return Object.entries(schema.shape).map(([name, field]) => {
    const type = field instanceof z.ZodType ? field : z.unknown();
    return { name, in: place, required: place === "path" || !type.isOptional(), schema: schemaOf(type) };
  });
}

function requestBodyOf(operation: Operation): { requestBody?: object } {
  const schema = schemaOf(operation.body);
  const takesNone = JSON.stringify(schema["properties"]) === "{}";
  if (takesNone) return {};
  const required = !operation.body.isOptional();
  return { requestBody: { required, content: { "application/json": { schema } } } };
}

function responsesOf(operation: Operation, http: HttpBinding): Record<string, object> {
  const body = schemaOf(operation.output);
  const { contentType = "application/json", successStatus: success } = http;
  const responses: Record<string, object> = {
    [success]:
      success === 204
        ? { description: "Done.", headers }
        : { description: "Success.", headers, content: { [contentType]: { schema: body } } },
  };
  if (success === 201 && replays(operation)) {
    responses["200"] = {
      description: "A replay.",
      headers,
      content: { "application/json": { schema: body } },
    };
  }
  for (const [status, codes] of errorsByStatus(operation)) {
    responses[status] = {
      description: codes.join(", "),
      headers: codes.some((code) => WAITS.has(code)) ? headersWithWait : headers,
      content: { "application/json": { schema: { $ref: "#/components/schemas/Error" } } },
    };
  }
  return responses;
}

const replays = (operation: Operation): boolean => operation.errors.includes("IDEMPOTENCY_KEY_REUSED");

function errorsByStatus(operation: Operation): Map<string, ErrorCode[]> {
  const byStatus = new Map<string, ErrorCode[]>();
  const bodyErrors = operation.http?.method === "get" ? [] : BODY_ERRORS;
  const codes = [...accessErrors(operation.access), ...COMMON_ERRORS, ...bodyErrors, ...operation.errors];
  for (const code of new Set(codes)) {
    const status = String(statusOf(operation, code));
    byStatus.set(status, [...(byStatus.get(status) ?? []), code]);
  }
  return byStatus;
}

/** One code has two statuses: it is 401 where it keeps a person from signing in. */
const statusOf = ({ access }: Operation, code: ErrorCode): number =>
  code === "SECOND_FACTOR_INVALID" && access.kind === "public" ? 401 : ERRORS[code].status;

function accessErrors(access: Access): ErrorCode[] {
  if (access.kind === "public") return [];
  if (access.kind === "agent")
    return ["UNAUTHORIZED", "AGENT_PAUSED", "WRONG_CREDENTIAL", "TOOL_NOT_ALLOWED"];
  const mayNeedMore = access.needsOf !== undefined;
  return [
    "UNAUTHORIZED",
    "WRONG_CREDENTIAL",
    access.organizationKey === "never" ? "SESSION_REQUIRED" : "INSUFFICIENT_SCOPE",
    ...(access.organizationKey !== "never" && lies(access) ? (["OUTSIDE_BINDING"] as const) : []),
    ...(access.role === "member" && !mayNeedMore ? [] : (["ROLE_REQUIRED"] as const)),
    ...(access.stepUp || mayNeedMore ? (["STEP_UP_REQUIRED"] as const) : []),
  ];
}

/** Whether what it acts on lies in a container, so that a key's binding can leave it outside. */
const lies = ({ subject }: ManagementAccess): boolean => subject !== "none" && subject !== "list";

function securityOf(access: Access): OpenApiOperation["security"] {
  if (access.kind === "public") return [];
  if (access.kind === "agent") return [{ agentKey: [] }];
  const people = [{ session: [] }, { sessionCookie: [] }];
  return access.organizationKey === "never"
    ? people
    : [...people, { organizationKey: [access.organizationKey] }];
}
