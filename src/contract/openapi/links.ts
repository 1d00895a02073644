import { z } from "zod";
import { type OperationId, operationList } from "../registry.ts";
import type { HttpBinding, Operation } from "../types.ts";

/**
 * Links from an answer to the operations that can follow it: from a created agent to the operations on it, from a
 * version to the change that names it.
 */

/** A link in OpenAPI's form: runtime expressions name the next call's parameters. */
export interface Link {
  readonly operationId: OperationId;
  readonly description: string;
  readonly parameters: Readonly<Record<string, string>>;
}

/** A record in answers: its name when alone, its name in lists, and the paths of its operations. */
interface Linked {
  readonly one: string;
  readonly many: string;
  readonly paths: readonly string[];
}

const RECORDS: readonly Linked[] = [
  { one: "agent", many: "agents", paths: ["/v1/agents/:id", "/v1/sandbox/agents/:id"] },
  { one: "project", many: "projects", paths: ["/v1/projects/:id"] },
  { one: "team", many: "teams", paths: ["/v1/teams/:id"] },
  { one: "transaction", many: "transactions", paths: ["/v1/transactions/:id"] },
  { one: "transaction", many: "payments", paths: ["/v1/payments/:id"] },
  { one: "approval", many: "approvals", paths: ["/v1/approvals/:id"] },
  { one: "organizationKey", many: "organizationKeys", paths: ["/v1/organization-keys/:id"] },
  { one: "endpoint", many: "webhooks", paths: ["/v1/webhooks/:id"] },
  { one: "invite", many: "invites", paths: ["/v1/invites/:id"] },
  { one: "passkey", many: "passkeys", paths: ["/v1/auth/passkeys/:id"] },
  { one: "member", many: "members", paths: ["/v1/members/:id"] },
];

type Bound = readonly [OperationId, Operation, HttpBinding];

const bound: readonly Bound[] = operationList.flatMap(([id, operation]) =>
  operation.http === null ? [] : [[id, operation, operation.http] as const],
);

/** Returns a link's key: operation and parameters. Links with equal keys are equal. */
export const keyOf = ({ operationId, parameters: { deliveryId, id } }: Link): string =>
  `${operationId}-by-${(deliveryId ?? id ?? "").replaceAll(/[^A-Za-z0-9]+/g, ".").replace(/^\./, "")}`;

export const keyed = (link: Link): readonly [string, Link] => [keyOf(link), link];

export function linksOf(id: OperationId, operation: Operation): readonly Link[] {
  const { http, output } = operation;
  if (http === null || !(output instanceof z.ZodObject)) return [];
  const fields = Object.keys(output.shape);
  return [
    ...RECORDS.flatMap((record) => recordLinks(id, record, fields)),
    ...deliveryLinks(fields),
    ...writeBackLinks(http, fields),
  ];
}

/** Returns links from one record, or the first of a list, to each operation that needs only its id. */
function recordLinks(from: OperationId, { many, one, paths }: Linked, fields: readonly string[]): Link[] {
  const place = fields.includes(one) ? `${one}/id` : fields.includes(many) ? `${many}/0/id` : null;
  if (place === null) return [];
  return bound
    .filter(([id, { params }, { path }]) => {
      const isAbout = paths.some((each) => path === each || path.startsWith(`${each}/`));
      return id !== from && isAbout && Object.keys(params.shape).length === 1;
    })
    .map(([operationId, { summary }]) => ({
      operationId,
      description: `${summary}, by the id in this answer.`,
      parameters: { id: `$response.body#/${place}` },
    }));
}

/** Returns links to a delivery, which is under the endpoint named by the request. */
function deliveryLinks(fields: readonly string[]): Link[] {
  const place = fields.includes("deliveries")
    ? "deliveries/0/id"
    : fields.includes("deliveryId")
      ? "deliveryId"
      : null;
  if (place === null) return [];
  return bound
    .filter(([, { params }]) => "deliveryId" in params.shape)
    .map(([operationId, { summary }]) => ({
      operationId,
      description: `${summary}, by the ids of the endpoint and of the delivery.`,
      parameters: { id: "$request.path.id", deliveryId: `$response.body#/${place}` },
    }));
}

/** Returns links from a record with a `version` to the change that must name it. */
function writeBackLinks({ method, path }: HttpBinding, fields: readonly string[]): Link[] {
  if (method !== "get" || !fields.includes("version")) return [];
  return bound
    .filter(([, , target]) => target.path === path && ["put", "patch"].includes(target.method))
    .map(([operationId, { body, summary }]) => ({
      operationId,
      description: `${summary}; ${requiredOf(body).join(", ")} as in this answer where they stay as they are.`,
      parameters: { id: "$request.path.id" },
    }));
}

const requiredOf = (body: z.ZodType): string[] =>
  body instanceof z.ZodObject
    ? Object.entries(body.shape).flatMap(([name, field]) =>
        field instanceof z.ZodType && !field.isOptional() ? [name] : [],
      )
    : [];
