import type { z } from "zod";
import type { ErrorCode } from "../domain/errors.ts";
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

export type Role = "owner" | "admin" | "member";

/**
 * Who may call an operation. The pipeline enforces it and nothing else does, so an operation cannot be reached in
 * any other way; one without it does not compile.
 */
export type Access = PublicAccess | AgentAccess | ManagementAccess;

/** No credential at all. */
export interface PublicAccess {
  readonly kind: "public";
}

/** An agent's key that is scoped to one of these tools. */
export interface AgentAccess {
  readonly kind: "agent";
  readonly tools: readonly [AgentTool, ...AgentTool[]];
  /** Where the body says which of them it takes (POST by rail): that one; null when it does not say. */
  readonly toolOf?: (body: unknown) => AgentTool | null;
}

/**
 * What a management operation acts on. It must be of the caller's organization (else 404) and inside the binding of an
 * organization's key (else `OUTSIDE_BINDING`); the pipeline checks both and passes the handler what it found.
 */
export type ResourceKind =
  /** Nothing that is in a container: sessions, members, keys. */
  | "none"
  /** Everything of a kind that the caller may see; the handler narrows its list by the reach that it is given. */
  | "list"
  /** What the path's `:id` names. */
  | "agent"
  | "project"
  | "team"
  | "transaction"
  | "approval"
  /** A new agent in the body's `teamId`. */
  | "newAgent"
  | "newProject"
  /** A new team in the body's `projectId`, or else in the caller's default project. */
  | "newTeam";

/** What a person needs for an operation. */
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
  /** Also for people who have no second factor although their organization requires one: to enrol it, and about their account. */
  readonly beforeEnrolment?: true;
  /** Where what the body asks for needs more of a person (inviting an owner), and no key may ask for it; before its shape is validated. */
  readonly requirementsOf?: (body: unknown) => PersonRequirements | null;
}

export type Method = "get" | "post" | "put" | "patch" | "delete";

export interface HttpBinding {
  readonly method: Method;
  /** Express notation: `/v1/agents/:id`. */
  readonly path: `/v1/${string}`;
  /** Answered unless the handler says otherwise (a replay is 200). */
  readonly successStatus: 200 | 201 | 204;
  /** Of a success that is sent as a file, piece by piece, or as events that go on; by default JSON. */
  readonly contentType?: "application/x-ndjson" | "text/csv" | "text/event-stream";
}

export interface ToolBinding {
  readonly name: AgentTool | ManagementTool;
  readonly title: string;
  /** What the path's `:id` is called as an argument. */
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

/** One operation of the service, as data: REST, MCP and OpenAPI derive from it. */
export interface Operation<
  P extends ObjectSchema = ObjectSchema,
  Q extends ObjectSchema = ObjectSchema,
  B extends z.ZodType = z.ZodType,
  O extends z.ZodType = z.ZodType,
  A extends Access = Access,
> {
  readonly summary: string;
  /** What it guarantees, to programmers who call its route; empty where it has none. Models read the tools' own texts. */
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
   * Reason for an answer to wait beyond the usual bound: every agent's record is to show a budget, or a webhook's receiver is to
   * answer. A create besides waits for the call that executes the same create, if there is one.
   */
  readonly waitsFor?: "propagation" | "receiver";
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
