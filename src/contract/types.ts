import type { z } from "zod";
import type { ErrorCode } from "../domain/errors.ts";
import type { Role } from "../domain/roles.ts";
import type { AgentTool, ManagementTool } from "./tool-names.ts";
import type { BodySize } from "./body-size.ts";
import type { RateClass } from "./rate-classes.ts";

/** Names of organization key scopes. */
export const ORGANIZATION_SCOPES = [
  "agents:read",
  "agents:write",
  "projects:read",
  "projects:write",
  "teams:read",
  "teams:write",
] as const;
export type OrganizationScope = (typeof ORGANIZATION_SCOPES)[number];

export type { Role };

/**
 * Access to an operation. Only the pipeline enforces it, so an operation can't be reached in any other way; one
 * without access does not compile.
 */
export type Access = PublicAccess | AgentAccess | ManagementAccess;

/** Needs no credential. */
export interface PublicAccess {
  readonly kind: "public";
}

/** An agent's key that is scoped to one of these tools. */
export interface AgentAccess {
  readonly kind: "agent";
  readonly tools: readonly [AgentTool, ...AgentTool[]];
  /** Returns the tool that the body selects (POST by rail); null if it selects none. */
  readonly toolOf?: (body: unknown) => AgentTool | null;
}

/**
 * Subject of a management operation. It must be in the caller's organization (else 404) and within the
 * caller's binding (else `OUTSIDE_BINDING`); the pipeline checks both and passes the record to the handler.
 */
export type ResourceKind =
  /** No subject in a container: sessions, keys. */
  | "none"
  /** The whole organization: nothing for a caller who is bound to a part of it. */
  | "organization"
  /** Everything of a kind that the caller may see; the handler narrows its list by the reach that it is given. */
  | "list"
  /** The record that the path's `:id` names. */
  | "agent"
  | "project"
  | "team"
  | "transaction"
  | "approval"
  | "raiseRequest"
  /** A new agent in the body's `teamId`. */
  | "newAgent"
  | "newProject"
  /** A new team in the body's `projectId`, or else in the caller's default project. */
  | "newTeam";

/** Requirements for a person. */
export interface PersonRequirements {
  /** The least role. */
  readonly role: Role;
  /** Whether a second factor must have been verified within the last 5 minutes. */
  readonly stepUp: boolean;
}

/** A person's session or an organization's key. */
export interface ManagementAccess<
  K extends OrganizationScope | "never" = OrganizationScope | "never",
  S extends ResourceKind = ResourceKind,
> extends PersonRequirements {
  readonly kind: "management";
  /** The scope an organization key needs; `never`: only people may do this. */
  readonly organizationKey: K;
  readonly subject: S;
  /** Also for auditors, whose role is otherwise too low. */
  readonly orAuditor?: true;
  /**
   * Allowed for people without the second factor that their organization requires: to enrol it, and for their own
   * account.
   */
  readonly beforeEnrolment?: true;
  /**
   * Returns stricter requirements of a body (such as inviting an owner), which no key meets; checked before its
   * shape.
   */
  readonly requirementsOf?: (body: unknown) => PersonRequirements | null;
}

export type Method = "get" | "post" | "put" | "patch" | "delete";

export interface HttpBinding {
  readonly method: Method;
  /** Express notation: `/v1/agents/:id`. */
  readonly path: `/v1/${string}`;
  /** Answered unless the handler says otherwise (a replay is 200). */
  readonly successStatus: 200 | 201 | 202 | 204;
  /** Media type of a success that is a file or a stream of events; JSON by default. */
  readonly contentType?: "application/x-ndjson" | "text/csv" | "text/event-stream";
}

export interface ToolBinding {
  readonly name: AgentTool | ManagementTool;
  readonly title: string;
  /** Argument name of the path's `:id`. */
  readonly idName: "agentId" | "projectId" | "teamId" | "transactionId" | null;
  /** Arguments that a tool's caller must give although a person over REST need not. */
  readonly requires?: readonly string[];
  readonly hints: {
    readonly readOnly: boolean;
    readonly destructive: boolean;
    readonly idempotent: boolean;
    readonly openWorld: boolean;
  };
}

/** An object schema that refuses fields it does not know. */
export type ObjectSchema = z.ZodObject<z.core.$ZodShape, z.core.$strict>;

/** One operation of the service as data, from which REST, MCP and OpenAPI are derived. */
export interface Operation<
  P extends ObjectSchema = ObjectSchema,
  Q extends ObjectSchema = ObjectSchema,
  B extends z.ZodType = z.ZodType,
  O extends z.ZodType = z.ZodType,
  A extends Access = Access,
> {
  readonly summary: string;
  /** Guarantees for programmers who call the route; empty without a route. Models read the tools' own texts. */
  readonly description: string;
  readonly tag:
    | "Agents"
    | "Approvals"
    | "Audit log"
    | "Authentication"
    | "Changes"
    | "Members"
    | "Organization"
    | "Organization keys"
    | "Payments"
    | "Projects"
    | "Sandbox"
    | "Teams"
    | "Transactions"
    | "Webhooks";
  readonly access: A;
  /**
   * Reason for an answer to wait beyond the usual bound: every agent's record is to show a budget, or a webhook's receiver or a shop
   * is to answer, or past payments are judged once more, which changes nothing. A create besides waits for the call that executes the same create, if there is one.
   */
  readonly waitsFor?: "propagation" | "receiver" | "shop" | "simulation";
  /** The caps of its own that it has besides the plan's limit. */
  readonly rate: RateClass;
  readonly http: HttpBinding | null;
  readonly tool: ToolBinding | null;
  readonly params: P;
  readonly query: Q;
  /** Over REST; left out: `usual`. */
  readonly bodySize?: BodySize;
  /** Undefined schema (`noBody`) where the operation takes none. */
  readonly body: B;
  readonly output: O;
  /** Codes it can answer besides those that any operation can. */
  readonly errors: readonly ErrorCode[];
}

export type InputOf<T> =
  T extends Operation<infer P, infer Q, infer B>
    ? { readonly params: z.output<P>; readonly query: z.output<Q>; readonly body: z.output<B> }
    : never;

export type OutputOf<T> = T extends { readonly output: infer O extends z.ZodType } ? z.input<O> : never;
