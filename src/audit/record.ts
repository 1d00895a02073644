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

/** A request for an operation, from any surface. */
export interface Call {
  readonly id: OperationId;
  readonly requester: Requester;
  readonly surface: Surface;
  /** Id of the HTTP request, as in the log. */
  readonly requestId: string;
  /** Sanitized name that the client gives itself. */
  readonly userAgent?: string | null;
}

export interface AuditPrincipal {
  readonly organizationId: string;
  readonly actor: AuditActor;
  /** Set if the request's origin is hidden from its organization. */
  readonly isOriginHidden?: true;
}

export interface AuditFacts extends Pick<AuditRecord, "entryKey" | "at" | "result"> {
  readonly principal: AuditPrincipal;
  /** Resource that a handler named; null for the route's own. */
  readonly on: AuditRecord["resource"] | null;
  /** Body of a success; null if there is none, or none yet. */
  readonly answered: unknown;
  readonly before: unknown;
  readonly after: unknown;
}

/** Returns the record of a call, which has no place in the chain yet. */
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

/** Returns the HTTP status of an operation's success, unless its response has another. */
export const successStatusOf = (id: OperationId): number => {
  const { http }: Operation = operations[id];
  return http?.successStatus ?? 200;
};

/** Whether a call leaves an entry: every change, except agents' payments, whose decisions leave their own. */
export const leavesEntry = (id: OperationId): boolean => {
  const { access, http, tool, waitsFor }: Operation = operations[id];
  if (access.kind === "agent" || waitsFor === "simulation") return false;
  return http === null ? tool?.hints.readOnly === false : http.method !== "get";
};

/** Suffix of a tool's operation that does the same as the REST operation without the suffix. */
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

/** Returns the principals of an entry: none for an unknown e-mail, several if the e-mail has several accounts. */
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

/** Returns the principal of a response that begins or refreshes a session. */
const sessionPrincipals = ({ session }: Reply<unknown>): readonly AuditPrincipal[] =>
  session === undefined ? [] : [auditPrincipalOfAccount(session.of)];
