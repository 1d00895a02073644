import { answersSession, type OperationId, operations } from "../contract/registry.ts";
import type { Operation } from "../contract/types.ts";
import { auditValue } from "../domain/audit/canonical.ts";
import type { AuditActor, AuditOrigin, AuditRecord } from "../domain/audit/entry.ts";
import type { Result } from "../domain/result.ts";
import type { Reply } from "../../server/handlers/types.ts";
import type { Requester } from "../limits/limits.ts";
import type { Surface } from "../limits/plans.ts";
import type { Principal } from "../identity/principals.ts";
import { actorOfAccount, type AffectedAccount } from "./notes.ts";
import { resourceOf } from "./resource.ts";

/** A request for an operation, wherever it came in. */
export interface Call {
  readonly id: OperationId;
  readonly requester: Requester;
  readonly surface: Surface;
  /** Of the HTTP request: the log has it. */
  readonly requestId: string;
  /** What the client calls itself, as it may be kept. */
  readonly userAgent?: string | null;
}

/** Whose log an entry goes into, and under whose name. */
export interface AuditPrincipal {
  readonly organizationId: string;
  readonly actor: AuditActor;
  /** The request's origin is not shown to its organization. */
  readonly isOriginHidden?: true;
}

/** What a call's entry has besides the call itself. */
export interface AuditFacts extends Pick<AuditRecord, "entryKey" | "at" | "result"> {
  readonly principal: AuditPrincipal;
  /** What a handler said that it was done on; null: what the route's path says. */
  readonly on: AuditRecord["resource"] | null;
  /** The body of a success; null where there is none, or not yet. */
  readonly answered: unknown;
  readonly before: unknown;
  readonly after: unknown;
}

/** The record of a call, before it has its place in the chain. */
export function recordOf(call: Call, params: unknown, facts: AuditFacts): AuditRecord {
  const operation: Operation = operations[call.id];
  const { after, answered, at, before, entryKey, on, principal, result } = facts;
  const { actor, isOriginHidden, organizationId } = principal;
  const path = operation.http?.path ?? pathOfRestOperation(call.id);
  const userId = actor.type === "user" ? actor.id : null;
  return {
    organizationId,
    entryKey,
    at,
    action: actionOf(call.id),
    actor,
    resource: on ?? resourceOf(path, { schema: operation.params, params, answered, organizationId, userId }),
    from: { ...originOf(call, operation), ...(isOriginHidden === true ? { address: null } : {}) },
    result,
    before: auditValue(before),
    after: auditValue(after),
    decision: null,
  };
}

/** The status of an operation's success, unless its answer has another. */
export const successStatusOf = (id: OperationId): number => {
  const { http }: Operation = operations[id];
  return http?.successStatus ?? 200;
};

/** Of operations that change something each call leaves an entry, but agents' payments: their decisions do. */
export const leavesEntry = (id: OperationId): boolean => {
  const { access, http, tool }: Operation = operations[id];
  if (access.kind === "agent") return false;
  return http === null ? tool?.hints.readOnly === false : http.method !== "get";
};

/** An operation that is a tool alone does what the one of the same name does over REST. */
const BY_TOOL = /ByTool$/;
const actionOf = (id: OperationId): string => id.replace(BY_TOOL, "");

function pathOfRestOperation(id: OperationId) {
  const restOperation = Object.entries(operations).find(([each]) => each === actionOf(id))?.[1];
  return restOperation?.http?.path ?? null;
}

function originOf({ requester, surface }: Call, { http, tool }: Operation): AuditOrigin {
  const route = http === null ? "" : `${http.method.toUpperCase()} ${http.path}`;
  return { address: requester.address, surface, via: surface === "mcp" ? (tool?.name ?? route) : route };
}

/** None where no account is known, as of a sign-in with an unknown e-mail. Several where the e-mail has several accounts. */
export function auditPrincipalsOf(
  { id, requester: { principal } }: Call,
  accounts: readonly AffectedAccount[],
  result: Result<Reply<unknown>>,
): readonly AuditPrincipal[] {
  if (principal !== null) return [auditPrincipalOf(principal)];
  if (result.ok && answersSession(id)) return sessionPrincipals(result.value);
  return accounts.map(auditPrincipalOfAccount);
}

export const auditPrincipalOfAccount = (account: AffectedAccount): AuditPrincipal => ({
  organizationId: account.organizationId,
  actor: actorOfAccount(account),
  ...(account.isOriginHidden === true ? { isOriginHidden: true as const } : {}),
});

export function auditPrincipalOf(principal: Principal): AuditPrincipal {
  switch (principal.type) {
    case "session": {
      const { name, organizationId, sessionId, userId } = principal;
      return { organizationId, actor: { type: "user", id: userId, sessionId, name } };
    }
    case "organization_key": {
      const { keyId, lineageId, organizationId } = principal;
      return { organizationId, actor: { type: "organization_key", id: keyId, lineageId } };
    }
    case "agent": {
      const { _id, key, name, organizationId } = principal.agent;
      const keyId = key === null ? {} : { keyId: key.id };
      return { organizationId, actor: { type: "agent", id: _id, ...keyId, name } };
    }
  }
}

/** From the answer to a call that begins a session or refreshes it. */
const sessionPrincipals = ({ session }: Reply<unknown>): readonly AuditPrincipal[] =>
  session === undefined ? [] : [auditPrincipalOfAccount(session.of)];
