import type { OperationId, Operations } from "../../src/contract/registry.ts";
import type { Access, AgentAccess, InputOf, ManagementAccess, OutputOf } from "../../src/contract/types.ts";
import type { Result } from "../../src/domain/result.ts";
import type { AuditNotes } from "../../src/audit/notes.ts";
import type { SessionPrincipal } from "../../src/identity/session-principal.ts";
import type { OpenableStream } from "../../src/changes/streams.ts";
import type { Deadline } from "../../src/lib/deadline.ts";
import type { SessionTokensIssued } from "../../src/identity/sessions.ts";
import type { AgentPrincipal, ManagementPrincipal } from "../../src/identity/principals.ts";
import type { ResourceByKind } from "../pipeline/resources.ts";

/** Context of every handler besides its input. */
interface Common {
  /** A place for notes. */
  readonly audit: AuditNotes;
  /** When the call is answered, whatever the handler still waits for. */
  readonly deadline: Deadline;
  /** The client's sanitized name of itself; null: none, or it came over MCP. */
  readonly userAgent: string | null;
  /** The only account that a sign-in by a known device may be for, where strangers are not let in. */
  readonly onlyUserId: string | null;
}

/** The common context with the caller and the target that the operation's access promises. */
export type ContextOf<A extends Access> = Common & CallerOf<A>;

type CallerOf<A extends Access> = A extends AgentAccess
  ? { readonly principal: AgentPrincipal }
  : A extends ManagementAccess<infer K, infer S>
    ? {
        readonly principal: [K] extends ["never"] ? SessionPrincipal : ManagementPrincipal;
        readonly target: ResourceByKind[S];
      }
    : { readonly principal: null };

/** Handlers return views that are not changed afterwards. */
export type DeepReadonly<T> = T extends readonly (infer I)[]
  ? readonly DeepReadonly<I>[]
  : T extends object
    ? { readonly [K in keyof T]: DeepReadonly<T[K]> }
    : T;

export interface Reply<O> {
  readonly body: DeepReadonly<O>;
  /** The status of a replay, where creating answers 201. */
  readonly status?: 200;
  /** The tokens of a session that begins or goes on: REST puts them into the body, or into cookies. */
  readonly session?: SessionTokensIssued;
  /** Token of a sign-in that has begun, which the browser keeps; null: it is over. */
  readonly ssoFlow?: string | null;
  /** A file that is sent piece by piece, in the body's place. */
  readonly stream?: FileStream;
  /** Events that go on, in the body's place. */
  readonly events?: OpenableStream;
}

export interface FileStream {
  readonly contentType: string;
  readonly fileName: string;
  readonly pieces: AsyncIterable<string>;
}

export type Handler<K extends OperationId> = (
  input: InputOf<Operations[K]>,
  context: ContextOf<Operations[K]["access"]>,
) => Promise<Result<Reply<OutputOf<Operations[K]>>>>;

/** A handler for each operation: a missing one does not compile. */
export type Handlers = { readonly [K in OperationId]: Handler<K> };
