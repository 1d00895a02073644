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

interface Common {
  /** Notes for the call's audit entry. */
  readonly audit: AuditNotes;
  /** Deadline of the response, even if the handler still waits. */
  readonly deadline: Deadline;
  /** Client's sanitized User-Agent; null if it has none or came over MCP. */
  readonly userAgent: string | null;
  /**
   * Only account that a sign-in from a known device may be for, once strangers have used up its e-mail's attempts; null
   * if any account is allowed.
   */
  readonly onlyUserId: string | null;
}

/** Common context with the caller and the target that the operation's access guarantees. */
export type ContextOf<A extends Access> = Common & CallerOf<A>;

type CallerOf<A extends Access> = A extends AgentAccess
  ? { readonly principal: AgentPrincipal }
  : A extends ManagementAccess<infer K, infer S>
    ? {
        readonly principal: [K] extends ["never"] ? SessionPrincipal : ManagementPrincipal;
        readonly target: ResourceByKind[S];
      }
    : { readonly principal: null };

/** Type of a view that is not changed after the handler returns it. */
export type DeepReadonly<T> = T extends readonly (infer I)[]
  ? readonly DeepReadonly<I>[]
  : T extends object
    ? { readonly [K in keyof T]: DeepReadonly<T[K]> }
    : T;

export interface Reply<O> {
  readonly body: DeepReadonly<O>;
  /** Status of a replay of a create that answered 201. */
  readonly status?: 200;
  /** Tokens of a session that begins or continues. REST sends them in the body or in cookies. */
  readonly session?: SessionTokensIssued;
  /** Token of a sign-in in progress, which the browser keeps; null if the sign-in is over. */
  readonly ssoFlow?: string | null;
  /** File that is sent in pieces instead of the body. */
  readonly stream?: FileStream;
  /** Continuous events instead of the body. */
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

/** Handlers by operation. A missing one does not compile. */
export type Handlers = { readonly [K in OperationId]: Handler<K> };
