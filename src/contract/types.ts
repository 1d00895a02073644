import type { z } from "zod";
import type { ErrorCode } from "../domain/errors.ts";
import type { Role } from "../domain/roles.ts";
import type { AgentTool, ManagementTool } from "./tool-names.ts";
import type { BodySize } from "./body-size.ts";
import type { RateClass } from "./rate-classes.ts";

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
 * Access to an operation. Enforced only by the pipeline, so an operation cannot be reached any other way; an operation
 * without access does not compile.
 */
export type Access = PublicAccess | AgentAccess | ManagementAccess;

/** Access without a credential. */
export interface PublicAccess {
  readonly kind: "public";
}

/** Access for an agent's key that is scoped to one of these tools. */
export interface AgentAccess {
  readonly kind: "agent";
  readonly tools: readonly [AgentTool, ...AgentTool[]];
  /** Returns the tool that the body selects (POST by rail); null if it selects none. */
  readonly toolOf?: (body: unknown) => AgentTool | null;
}

/**
 * Subject of a management operation. It must be in the caller's organization (else 404) and within the caller's binding
 * (else `OUTSIDE_BINDING`); the pipeline checks both and passes the record to the handler.
 */
export type ResourceKind =
  /** No subject in a container: sessions, keys. */
  | "none"
  /** The whole organization, closed to callers bound to a part of it. */
  | "organization"
  /** Everything of a kind that the caller may see; the handler limits its list to the caller's reach. */
  | "list"
  /** The record of the path's `:id`. */
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

export interface PersonRequirements {
  /** Minimum role. */
  readonly role: Role;
  /** Whether a second factor must have been verified within the last 5 minutes. */
  readonly stepUp: boolean;
}

/** Access for a person's session or an organization's key. */
export interface ManagementAccess<
  K extends OrganizationScope | "never" = OrganizationScope | "never",
  S extends ResourceKind = ResourceKind,
> extends PersonRequirements {
  readonly kind: "management";
  /** The scope that an organization's key needs; `never` allows only people. */
  readonly organizationKey: K;
  readonly subject: S;
  /** Also allows auditors, whose role is otherwise too low. */
  readonly orAuditor?: true;
  /** Also allows people before they have enrolled a required second factor: to enrol, and for their account. */
  readonly beforeEnrolment?: true;
  /**
   * Returns a body's stricter requirements (such as inviting an owner), which no key meets; evaluated before the body's
   * shape is validated.
   */
  readonly requirementsOf?: (body: unknown) => PersonRequirements | null;
}

export type Method = "get" | "post" | "put" | "patch" | "delete";

export interface HttpBinding {
  readonly method: Method;
  /** Express notation: `/v1/agents/:id`. */
  readonly path: `/v1/${string}`;
  /** Status unless the handler overrides it (a replay is 200). */
  readonly successStatus: 200 | 201 | 202 | 204;
  /** Media type of a success that is a file or an event stream; JSON by default. */
  readonly contentType?: "application/x-ndjson" | "text/csv" | "text/event-stream";
}

export interface ToolBinding {
  readonly name: AgentTool | ManagementTool;
  readonly title: string;
  /** Argument name of the path's `:id`. */
  readonly idName: "agentId" | "projectId" | "teamId" | "transactionId" | null;
  /** Arguments required from a tool's caller although they are optional over REST. */
  readonly requires?: readonly string[];
  readonly hints: {
    readonly readOnly: boolean;
    readonly destructive: boolean;
    readonly idempotent: boolean;
    readonly openWorld: boolean;
  };
}

/** An object schema that refuses unknown fields. */
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
   * Why an answer may take longer than usual: every agent's record has to show a budget, a webhook's receiver or a shop
   * has to answer, or past payments are judged again, which changes nothing. A create also waits for a concurrent call
   * that executes the same create.
   */
  readonly waitsFor?: "propagation" | "receiver" | "shop" | "simulation";
  /** The operation's own rate limits, in addition to the plan's. */
  readonly rate: RateClass;
  readonly http: HttpBinding | null;
  readonly tool: ToolBinding | null;
  readonly params: P;
  readonly query: Q;
  /** Over REST; `usual` by default. */
  readonly bodySize?: BodySize;
  /** `noBody` if the operation has no body. */
  readonly body: B;
  readonly output: O;
  /** Possible error codes in addition to those of any operation. */
  readonly errors: readonly ErrorCode[];
}

export type InputOf<T> =
  T extends Operation<infer P, infer Q, infer B>
    ? { readonly params: z.output<P>; readonly query: z.output<Q>; readonly body: z.output<B> }
    : never;

export type OutputOf<T> = T extends { readonly output: infer O extends z.ZodType } ? z.input<O> : never;
