import type { z } from "zod";
import type { Operations } from "../contract/registry.ts";
import type { ErrorCode, ValidationIssue } from "../domain/errors.ts";
import type { ROUTES } from "./routes.ts";

/** A client's view of a route; derived from the contract's `RouteFacts`. */
export interface ClientRoute {
  readonly method: "GET" | "POST" | "PUT" | "PATCH" | "DELETE";
  readonly path: string;
  readonly anonymous?: boolean;
  readonly replayable?: boolean;
  readonly list?: string;
  readonly file?: boolean;
}

type Routes = typeof ROUTES;

export type OperationId = keyof Routes & keyof Operations;

type Schema<
  Id extends OperationId,
  Part extends "params" | "query" | "body" | "output",
> = Operations[Id][Part] extends infer S extends z.ZodType ? S : never;

/** The input type of a schema, or its output type if the schema preprocesses unknown input. */
type Sent<I, O> = unknown extends I
  ? unknown extends O
    ? O
    : Sent<O, O>
  : I extends readonly (infer In)[]
    ? O extends readonly (infer Out)[]
      ? readonly Sent<In, Out>[]
      : I
    : I extends object
      ? { readonly [K in keyof I]: Sent<I[K], K extends keyof O ? O[K] : I[K]> }
      : I;

type SentTo<S extends z.ZodType> = Sent<z.input<S>, z.output<S>>;

/** A part of a request, optional if none of its fields is required. */
type PartOf<Name extends string, S extends z.ZodType> = string extends keyof SentTo<S>
  ? unknown
  : Partial<SentTo<S>> extends SentTo<S>
    ? { readonly [K in Name]?: SentTo<S> }
    : undefined extends SentTo<S>
      ? { readonly [K in Name]?: SentTo<S> }
      : { readonly [K in Name]: SentTo<S> };

/** A schema without fields accepts none, but its type allows every name; such a type becomes `unknown`. */
type Named<T> = string extends keyof T ? unknown : T;

/** Input of a call: the ids of its path by name, its query and its body. */
export type Input<Id extends OperationId> = Named<SentTo<Schema<Id, "params">>> &
  PartOf<"query", Schema<Id, "query">> &
  PartOf<"body", Schema<Id, "body">>;

/** Output of a success: the record as JSON, or the response itself if its body is a file. */
export type Output<Id extends OperationId> = Routes[Id] extends { readonly file: true }
  ? Response
  : z.output<Schema<Id, "output">>;

/** Operations that answer with a file. */
export type FileId = {
  [Id in OperationId]: Routes[Id] extends { readonly file: true } ? Id : never;
}[OperationId];

/** Operations that answer with a page of a list. */
export type ListId = {
  [Id in OperationId]: Routes[Id] extends { readonly list: string } ? Id : never;
}[OperationId];

/** One record of a list. */
export type Item<Id extends ListId> =
  Output<Id> extends infer Page
    ? Routes[Id] extends { readonly list: infer Plural extends keyof Page & string }
      ? Page[Plural] extends readonly (infer Record)[]
        ? Record
        : never
      : never
    : never;

/**
 * Why a call did not succeed. `code` is the service's own, `NO_ANSWER` if no answer arrived, or `UNREADABLE` if the
 * answer is not the service's; in the last two cases the request may have been executed nevertheless.
 */
export interface Refused {
  readonly code: ErrorCode | "NO_ANSWER" | "UNREADABLE";
  /** Null if no answer arrived. */
  readonly status: number | null;
  readonly message: string;
  readonly issues: readonly ValidationIssue[];
  readonly retryAfterSeconds: number | null;
  /** Message that the owner of wallets has to sign. */
  readonly challenge: string | null;
  readonly organizations: readonly { readonly id: string; readonly name: string }[];
  readonly missing: readonly string[];
  readonly unknown: readonly string[];
  readonly requestId: string | null;
}

export type Answer<T> =
  | { readonly ok: true; readonly status: number; readonly value: T; readonly now: number | null }
  | { readonly ok: false; readonly refused: Refused };

export interface CallOptions {
  readonly signal?: AbortSignal;
  readonly timeoutMs?: number;
}

type Call<Id extends OperationId> =
  Partial<Input<Id>> extends Input<Id>
    ? (input?: Input<Id>, options?: CallOptions) => Promise<Answer<Output<Id>>>
    : (input: Input<Id>, options?: CallOptions) => Promise<Answer<Output<Id>>>;

/** Every operation by name. */
export type Calls = { readonly [Id in OperationId]: Call<Id> };
