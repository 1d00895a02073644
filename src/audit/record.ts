import { answersSession, type OperationId, operations } from "../contract/registry.ts";
import type { Operation } from "../contract/types.ts";
import { auditValue } from "../domain/audit/canonical.ts";
import type { AuditActor, AuditOrigin, AuditRecord } from "../domain/audit/entry.ts";
import type { Result } from "../domain/result.ts";
import type { Reply } from "../../server/handlers/types.ts";
import type { Requester } from "../limits/limits.ts";
import type { Surface } from "../limits/plans.ts";
import type { Principal } from "../identity/principals.ts";
import { actorOfAccount, type ConcernedAccount } from "./notes.ts";
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

/** Whose log an entry goes into, and who did it. */
export interface Doer {
  readonly organizationId: string;
  readonly actor: AuditActor;
  /** The request's origin is not shown to its organization. */
  readonly isOriginHidden?: true;
}

/** What a call's entry has besides the call itself. */
export interface AuditFacts extends Pick<AuditRecord, "entryKey" | "at" | "result"> {
  readonly doer: Doer;
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
  const { after, answered, at, before, doer, entryKey, on, result } = facts;
  const { actor, isOriginHidden, organizationId } = doer;
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

/** None: nobody's that is known, such as a sign-in with an e-mail that nobody has. Several: one with an e-mail that has several accounts. */
export function doersOf(
  { id, requester: { principal } }: Call,
  accounts: readonly ConcernedAccount[],
  result: Result<Reply<unknown>>,
): readonly Doer[] {
  if (principal !== null) return [doerBehind(principal)];
  if (result.ok && answersSession(id)) return whoeverSignedIn(result.value);
  return accounts.map(doerOfAccount);
}

export const doerOfAccount = (account: ConcernedAccount): Doer => ({
  organizationId: account.organizationId,
  actor: actorOfAccount(account),
  ...(account.isOriginHidden === true ? { isOriginHidden: true as const } : {}),
});

export function doerBehind(principal: Principal): Doer {
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

/** From the answer to whatever begins or goes on with a session. */
const whoeverSignedIn = ({ session }: Reply<unknown>): readonly Doer[] =>
  session === undefined ? [] : [doerOfAccount(session.of)];
