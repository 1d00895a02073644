import type { AuditLog } from "../../activities/audit/appender.ts";
import { answersSession, type OperationId, operations } from "../../src/contract/registry.ts";
import type { Operation } from "../../src/contract/types.ts";
import type { AuditActor, AuditOrigin, AuditRecord } from "../../src/domain/audit/entry.ts";
import { type ErrorCode, type Refusal, statusOf } from "../../src/domain/errors.ts";
import type { Result } from "../../src/domain/result.ts";
import type { Reply } from "../handlers/types.ts";
import { newId } from "../ids.ts";
import type { Requester } from "../limits/limits.ts";
import type { Surface } from "../limits/plans.ts";
import type { Principal } from "../principals.ts";
import { actorOfAccount, type NotesTaken } from "./notes.ts";
import type { Refusals } from "./refusals.ts";
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

/**
 * Refusals that leave no entry: they say only that there was too much of something, and an entry for each would let anybody
 * who may write at all write without end.
 */
const NOT_KEPT: ReadonlySet<ErrorCode> = new Set<ErrorCode>(["RATE_LIMITED"]);

/** Whose log an entry goes into, and who did it. */
interface Doer {
  readonly organizationId: string;
  readonly actor: AuditActor;
}

/**
 * The one place where requests get their entries in the audit log (docs/audit-log.md): every operation that changes
 * something, but for agents' payments, whose decisions are written from what their actors decided.
 */
export class AuditTrail {
  readonly #log: AuditLog;
  readonly #refusals: Refusals;
  readonly #clock: () => Date;

  constructor(log: AuditLog, refusals: Refusals, clock: () => Date) {
    this.#log = log;
    this.#refusals = refusals;
    this.#clock = clock;
  }

  /**
   * Keeps what became of a call, and is done when its entry is safe: nothing is answered before. Throws when that can't be
   * had. What only reads, and what belongs to no organization that is known, leaves no entry.
   */
  async keep(
    call: Call,
    params: unknown,
    notes: NotesTaken | null,
    result: Result<Reply<unknown>>,
  ): Promise<void> {
    const operation: Operation = operations[call.id];
    if (!changesSomething(operation) || (!result.ok && NOT_KEPT.has(result.refusal.code))) return;
    const doer = doerOf(call, notes, result);
    if (doer === null) return;
    const record = this.#recordOf(call, operation, params, doer, notes, result);
    if (isPlainRefusal(record)) await this.#refusals.keep(record);
    else await this.#log.append(record);
  }

  /** The same for what was refused before anything of it was read. */
  async keepRefusal(call: Call, params: unknown, refusal: Refusal): Promise<void> {
    await this.keep(call, params, null, { ok: false, refusal });
  }

  #recordOf(
    call: Call,
    operation: Operation,
    params: unknown,
    { actor, organizationId }: Doer,
    notes: NotesTaken | null,
    result: Result<Reply<unknown>>,
  ): AuditRecord {
    const path = operation.http?.path ?? pathOfTwin(call.id);
    const answered = result.ok ? result.value.body : null;
    const userId = actor.type === "user" ? actor.id : null;
    return {
      organizationId,
      entryKey: newId("req"),
      at: this.#clock().getTime(),
      action: actionOf(call.id),
      actor,
      resource:
        notes?.resource ??
        resourceOf(path, { schema: operation.params, params, answered, organizationId, userId }),
      from: originOf(call, operation),
      result: result.ok
        ? { status: result.value.status ?? operation.http?.successStatus ?? 200, code: null }
        : { status: statusOf(result.refusal), code: result.refusal.code },
      before: notes?.before ?? null,
      after: notes?.after ?? null,
      decision: null,
    };
  }
}

/** Whether nothing was done, and nothing more is told of it: what was answered 5xx may have been done. */
const isPlainRefusal = ({ after, before, result: { code, status } }: AuditRecord): boolean =>
  code !== null && status !== null && status < 500 && before === null && after === null;

const changesSomething = ({ access, http, tool }: Operation): boolean => {
  if (access.kind === "agent") return false;
  return http === null ? tool?.hints.readOnly === false : http.method !== "get";
};

/** An operation that is a tool alone does what the one of the same name does over REST. */
const BY_TOOL = /ByTool$/;
const actionOf = (id: OperationId): string => id.replace(BY_TOOL, "");

function pathOfTwin(id: OperationId) {
  const twin = Object.entries(operations).find(([each]) => each === actionOf(id))?.[1];
  return twin?.http?.path ?? null;
}

function originOf({ requester, surface }: Call, { http, tool }: Operation): AuditOrigin {
  const route = http === null ? "" : `${http.method.toUpperCase()} ${http.path}`;
  return { address: requester.address, surface, via: surface === "mcp" ? (tool?.name ?? route) : route };
}

/** Null: nobody's that is known, such as a sign-in with an e-mail that nobody has. */
function doerOf(
  { id, requester: { principal } }: Call,
  notes: NotesTaken | null,
  result: Result<Reply<unknown>>,
): Doer | null {
  if (principal !== null) return doerBehind(principal);
  if (result.ok && answersSession(id)) return whoeverSignedIn(result.value);
  const account = notes?.account ?? null;
  return account === null ? null : { organizationId: account.organizationId, actor: actorOfAccount(account) };
}

function doerBehind(principal: Principal): Doer {
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
function whoeverSignedIn({ session }: Reply<unknown>): Doer | null {
  if (session === undefined) return null;
  const { name, organizationId, sessionId, userId } = session.of;
  return { organizationId, actor: { type: "user", id: userId, sessionId, name } };
}
