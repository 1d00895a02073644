import { z } from "zod";
import { COOKIE_REQUEST_HEADER, COOKIE_REQUEST_VALUE, cookieNames } from "./cookies.ts";
import { jsonSchemaOf } from "./json-schema.ts";
import { errorExamples } from "./openapi/error-examples.ts";
import { errorCodesOf } from "./openapi/errors.ts";
import { examplesOf } from "./openapi/examples.ts";
import { asAnswered, asSent } from "./openapi/bodies.ts";
import { COMPONENTS, Components } from "./openapi/components.ts";
import { annotated, annotatedParameter, type Schema } from "./openapi/fields.ts";
import { HEADERS, headersOfErrors, headersWith } from "./openapi/headers.ts";
import { keyed, keyOf, linksOf } from "./openapi/links.ts";
import { INTRODUCTION, TAGS } from "./openapi/prose.ts";
import { errorBody } from "./records.ts";
import type { ErrorCode } from "../domain/errors.ts";
import { isShown } from "./reference.ts";
import { answersSession, type OperationId, operationList } from "./registry.ts";
import type { Access, HttpBinding, ObjectSchema, Operation } from "./types.ts";

/** The parts of an OpenAPI 3.1 document that this service fills in; the rest is JSON. */
export interface OpenApiDocument {
  readonly openapi: "3.1.0";
  readonly info: { readonly title: string; readonly version: string; readonly description: string };
  readonly servers: readonly { readonly url: string }[];
  readonly tags: readonly { readonly name: string; readonly description: string }[];
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

/** Returns the OpenAPI document of all REST operations, derived from the registry, so it agrees with the routes. */
export function openApiDocument(baseUrl: string, version: string): OpenApiDocument {
  const components = namedSchemas();
  const paths: Record<string, Record<string, OpenApiOperation>> = {};
  for (const [id, operation] of operationList) {
    if (operation.http === null) continue;
    const path = operation.http.path.replaceAll(/:(\w+)/g, "{$1}");
    paths[path] = {
      ...paths[path],
      [operation.http.method]: describe(id, operation, operation.http, components),
    };
  }
  return {
    openapi: "3.1.0",
    info: { title: "Agent Spending Control Service", version, description: INTRODUCTION },
    servers: [{ url: baseUrl }],
    tags: Object.entries(TAGS).map(([name, description]) => ({ name, description })),
    paths,
    components: {
      schemas: components.all(),
      responses: errorResponses(),
      headers: HEADERS,
      examples: errorExamples(),
      links: Object.fromEntries(
        operationList.flatMap(([id, operation]) => linksOf(id, operation).map(keyed)),
      ),
      securitySchemes: securitySchemes(baseUrl),
    },
  };
}

const securitySchemes = (baseUrl: string) => ({
  session: {
    type: "http",
    scheme: "bearer",
    bearerFormat: "JWT",
    description: "A person's session: the `token` that signing in answers.",
  },
  sessionCookie: {
    type: "apiKey",
    in: "cookie",
    name: cookieNames(baseUrl).session,
    description:
      "A browser's session, requested with `svc-session: cookie` at sign-in. It counts only without an " +
      "Authorization header, and for anything but GET only from a page of the same origin (Sec-Fetch-Site or Origin).",
  },
  organizationKey: {
    type: "http",
    scheme: "bearer",
    bearerFormat: "svc_org_live_…",
    description: "An organization's API key. The listed scope is the one that it needs.",
  },
  agentKey: {
    type: "http",
    scheme: "bearer",
    bearerFormat: "sk_svc_live_…",
    description: "An agent's API key.",
  },
});

function describe(
  id: OperationId,
  operation: Operation,
  http: HttpBinding,
  components: Components,
): OpenApiOperation {
  const { summary, description, tag } = operation;
  const parameters = [
    ...parametersOf(operation.params, "path", http),
    ...parametersOf(operation.query, "query", http),
    ...(answersSession(id) ? [COOKIE_PARAMETER] : []),
    ...(http.contentType === "text/event-stream" ? [LAST_EVENT_PARAMETER] : []),
  ];
  return {
    operationId: id,
    summary,
    description: description + peopleNeed(operation.access),
    tags: [tag],
    security: securityOf(operation.access),
    ...(parameters.length === 0 ? {} : { parameters }),
    ...requestBodyOf(id, operation, components),
    responses: responsesOf(id, operation, http, components),
  };
}

const ROLES = {
  auditor: null,
  member: "the role member, admin or owner",
  admin: "the role admin or owner",
  owner: "the role owner",
} as const;

/** Describes the role and step-up that a person needs, which OpenAPI's security cannot express. */
function peopleNeed(access: Access): string {
  if (access.kind !== "management") return "";
  const role = access.orAuditor === true ? "the role auditor, admin or owner" : ROLES[access.role];
  const needs = [role, access.stepUp ? "a step-up within 5 minutes" : null];
  const named = needs.filter((need) => need !== null);
  return named.length === 0 ? "" : ` A person needs ${named.join(" and ")}.`;
}

const COOKIE_PARAMETER = {
  name: COOKIE_REQUEST_HEADER,
  in: "header",
  required: false,
  schema: { type: "string", examples: [COOKIE_REQUEST_VALUE] },
  description:
    "`cookie`, from a page of the service: the tokens come in HttpOnly cookies instead of in the body. Other values are ignored.",
};

const LAST_EVENT_PARAMETER = {
  name: "Last-Event-ID",
  in: "header",
  required: false,
  schema: { type: "string", maxLength: 100 },
  description: "The `id` of the last event that was read; browsers send it by themselves.",
};

const schemaOf = (schema: z.ZodType, owner: string): Schema =>
  annotated(jsonSchemaOf(schema, COMPONENTS, "reference").schema, owner);

/** Adds the component name that a schema gets. */
const titled = (schema: Schema, name: string): Schema =>
  schema["type"] === "object" || "oneOf" in schema
    ? { title: name.replace(/^./, (letter) => letter.toUpperCase()), ...schema }
    : schema;

/** Returns all records that operations reference, and the error body. */
function namedSchemas(): Components {
  const errors = z.array(errorBody);
  const schemas = [errors, ...operationList.flatMap(([, operation]) => [operation.body, operation.output])];
  const named = schemas.map((schema) => jsonSchemaOf(schema, COMPONENTS, "reference").named);
  const records = Object.entries(Object.assign({}, ...named) as Record<string, Schema>);
  const components = new Components();
  for (const [name, schema] of records)
    components.add(name, components.named(asAnswered(annotated(schema, name))));
  return components;
}

function parametersOf(schema: ObjectSchema, place: "path" | "query", { path }: HttpBinding): object[] {
  return Object.entries(schema.shape).flatMap(([name, field]) => {
    const type = field instanceof z.ZodType ? field : z.unknown();
    if (!isShown(type, "reference")) return [];
    const required = place === "path" || !type.isOptional();
    const json = jsonSchemaOf(type, COMPONENTS, "reference").schema;
    return [{ name, in: place, required, ...annotatedParameter(json, name, path) }];
  });
}

function requestBodyOf(
  id: OperationId,
  operation: Operation,
  components: Components,
): { requestBody?: object } {
  const schema = titled(asSent(schemaOf(operation.body, id)), `${id}Request`);
  const takesNone = JSON.stringify(schema["properties"]) === "{}";
  if (takesNone) return {};
  // An absent body is read as an empty object.
  const required = [undefined, {}].every((nothing) => !operation.body.safeParse(nothing).success);
  const content = { "application/json": bodyOf(schema, components) };
  return { requestBody: { required, content } };
}

const bodyOf = (schema: Schema, components: Components): object => ({
  schema: components.named(schema),
  examples: examplesOf(schema, components.resolve),
});

function responsesOf(
  id: OperationId,
  operation: Operation,
  http: HttpBinding,
  components: Components,
): Record<string, object> {
  const { contentType = "application/json", successStatus } = http;
  const schema = titled(asAnswered(schemaOf(operation.output, id)), `${id}Result`);
  const content = { [contentType]: bodyOf(schema, components) };
  const links = linksOf(id, operation).map((link) => [
    link.operationId,
    { $ref: `#/components/links/${keyOf(link)}` },
  ]);
  const success = {
    headers: successHeaders(id, http),
    ...(successStatus === 204 ? {} : { content }),
    ...(links.length === 0 ? {} : { links: Object.fromEntries(links) }),
  };
  const isReplayed = successStatus === 201 && operation.errors.includes("IDEMPOTENCY_KEY_REUSED");
  const errors = [...errorCodesOf(operation)].map(([status, codes]) => [
    status,
    errorResponse(status, codes),
  ]);
  return {
    ...(isReplayed ? { "200": replayOf(success) } : {}),
    [successStatus]: { description: successStatus === 204 ? "Done." : "Success.", ...success },
    ...Object.fromEntries(errors),
  };
}

const replayOf = (success: { readonly headers: object }): object => ({
  description: "A replay: the result of the first call.",
  ...success,
  headers: { ...success.headers, ...headersWith("idempotency-replayed") },
});

/** Returns an error's response. A status with one code refers to the shared description of that code. */
function errorResponse(status: string, codes: readonly ErrorCode[]): object {
  const [only, ...others] = codes;
  return others.length === 0
    ? { $ref: `#/components/responses/${only ?? ""}` }
    : describedError(status, codes);
}

const describedError = (status: string, codes: readonly ErrorCode[]): object => ({
  description: codes.join(", "),
  headers: headersOfErrors(status, codes),
  content: {
    "application/json": {
      schema: { $ref: `${COMPONENTS}ErrorBody`, properties: { error: { enum: codes } } },
      examples: Object.fromEntries(codes.map((code) => [code, { $ref: `#/components/examples/${code}` }])),
    },
  },
});

/** Responses that operations reference, and 405, which belongs to no operation. */
function errorResponses(): Readonly<Record<string, object>> {
  const alone = operationList.flatMap(([, operation]) =>
    [...errorCodesOf(operation)].flatMap(([status, [code, ...others]]) =>
      code === undefined || others.length > 0 ? [] : [[code, describedError(status, [code])] as const],
    ),
  );
  return { ...Object.fromEntries(alone), METHOD_NOT_ALLOWED: describedError("405", ["METHOD_NOT_ALLOWED"]) };
}

const successHeaders = (id: OperationId, { contentType }: HttpBinding): object =>
  headersWith(
    ...(answersSession(id) ? (["set-cookie"] as const) : []),
    ...(contentType === undefined || contentType === "text/event-stream"
      ? []
      : (["content-disposition"] as const)),
  );

function securityOf(access: Access): OpenApiOperation["security"] {
  if (access.kind === "public") return [];
  if (access.kind === "agent") return [{ agentKey: [] }];
  const people = [{ session: [] }, { sessionCookie: [] }];
  return access.organizationKey === "never"
    ? people
    : [...people, { organizationKey: [access.organizationKey] }];
}
