import { expect } from "chai";
import type { z } from "zod";
import { errorCodesOf } from "../../src/contract/openapi/errors.ts";
import { errorBody } from "../../src/contract/records.ts";
import { type OperationId, operations, type Operations } from "../../src/contract/registry.ts";
import type { Operation } from "../../src/contract/types.ts";
import type { ErrorCode } from "../../src/domain/errors.ts";
import { type Answer, Api, type CallOptions, onceReachable } from "./api.ts";

/** What goes into one call of an operation; all of it may be wrong on purpose. */
export interface Request extends CallOptions {
  /** What stands in the path for `:id`. */
  readonly id?: string;
  /** What stands there for `:deliveryId`. */
  readonly deliveryId?: string;
  /** What stands there for `:cardIssuer`; `stripe` where it is left out. */
  readonly cardIssuer?: string;
  readonly query?: Readonly<Record<string, string>> | string;
}

export type Success<K extends OperationId> = z.output<Operations[K]["output"]>;
export type ErrorBody = z.output<typeof errorBody>;

/** Each issue says where it is. */
const strictError = errorBody.strict().refine(({ issues = [] }) => issues.every(({ path }) => path !== ""), {
  error: "an issue names no place",
});

/** Each call mints money, sends a message, or uses up a token; a caller that is told to come again can not know whether it has. */
const NEVER_TWICE: readonly OperationId[] = [
  "depositToTreasury",
  "failBilling",
  "fundAgentInSandbox",
  "refreshSession",
  "testWebhook",
];

/** A caller that is told to come again may have decided, and is told so. */
const DECISIONS: readonly OperationId[] = ["approveApproval", "denyApproval"];

const hasIdempotencyKey = ({ body }: Request): boolean =>
  typeof body === "object" && body !== null && "idempotencyKey" in body;

/** Traces of an implementation that no answer may carry. */
const INTERNAL = /node_modules|\bat \w.*:\d+:\d+|\.ts:\d|mongo|temporal|zod|ECONN|Symbol\(|\[object/i;

/**
 * A client over real HTTP that holds every answer against the contract: its status and code are documented for the
 * operation, and its body parses by the operation's own strict schema, or as a flat error.
 */
export class ContractApi {
  readonly #api: Api;

  constructor(baseUrl: string) {
    this.#api = new Api(baseUrl);
  }

  async call(operationId: OperationId, request: Request = {}): Promise<Answer> {
    const { http } = operations[operationId];
    if (http === null) throw new Error(`${operationId} has no route`);
    const { deliveryId, id, cardIssuer = "stripe", query, ...options } = request;
    const path = filled(http.path, { id, deliveryId, cardIssuer });
    const search = query === undefined ? "" : `?${new URLSearchParams(query).toString()}`;
    const answer = await this.#api.call(http.method.toUpperCase(), `${path}${search}`, options);
    expectAsDocumented(operationId, answer);
    return answer;
  }

  /** The body of the first answer, which must have this status: where being told to come again would be wrong. */
  async okAtOnce<K extends OperationId>(
    operationId: K,
    status: number,
    request: Request = {},
  ): Promise<Success<K>> {
    const answer = await this.call(operationId, request);
    expect(answer.status, JSON.stringify(answer.body)).to.equal(status);
    return successOf(operationId, answer.body);
  }

  /**
   * The body of an answer that must have this status. On a busy machine a call may be told to come again, as clients do,
   * unless that could do something twice. What has an idempotency key is answered 200 where the first call has made it.
   */
  async ok<K extends OperationId>(
    operationId: K,
    status: number,
    request: Request = {},
  ): Promise<Success<K>> {
    if (NEVER_TWICE.includes(operationId)) return this.okAtOnce(operationId, status, request);
    return this.#ok(operationId, status, request, 0);
  }

  /** The same of what was asked before and was answered 503: it may have been done. */
  okAgain<K extends OperationId>(operationId: K, status: number, request: Request): Promise<Success<K>> {
    return this.#ok(operationId, status, request, 1);
  }

  async #ok<K extends OperationId>(
    operationId: K,
    status: number,
    request: Request,
    askedBefore: 0 | 1,
  ): Promise<Success<K>> {
    let statuses = [status];
    const answer = await onceReachable(async (tries) => {
      const repeat = tries + askedBefore;
      if (repeat > 0 && status === 201 && hasIdempotencyKey(request)) statuses = [200, 201];
      const answered = await this.call(operationId, request);
      const isDecided =
        repeat > 0 && DECISIONS.includes(operationId) && codeOf(answered) === "APPROVAL_ALREADY_RESOLVED";
      if (!isDecided) return answered;
      const { body: _decision, ...named } = request;
      return this.call("getApproval", named);
    });
    expect(answer.status, JSON.stringify(answer.body)).to.be.oneOf(statuses);
    return successOf(operationId, answer.body);
  }

  /** What a create with an idempotency key has made. */
  made<K extends OperationId>(operationId: K, request: Request): Promise<Success<K>> {
    return this.ok(operationId, 201, request);
  }

  /** The body of an answer that must be this error; of the first one where that may be to come again. */
  async refused(
    operationId: OperationId,
    status: number,
    code: ErrorCode,
    request: Request = {},
  ): Promise<ErrorBody> {
    const ask = () => this.call(operationId, request);
    const answer = await (status === 503 ? ask() : onceReachable(ask));
    expect([answer.status, codeOf(answer)], JSON.stringify(answer.body)).to.deep.equal([status, code]);
    return strictError.parse(answer.body);
  }
}

/** A path with its parameters; one that is not given is nothing's id. */
export const filled = (path: string, ids: Readonly<Record<string, string | undefined>>): string =>
  path.replaceAll(/:(\w+)/g, (_whole, name: string) => ids[name] ?? "missing");

export function successOf<K extends OperationId>(operationId: K, body: unknown): Success<K>;
export function successOf(operationId: OperationId, body: unknown): unknown {
  return operations[operationId].output.parse(body);
}

/** The error's code; null for a success. */
export const codeOf = ({ body, status }: Answer): string | null =>
  status < 400 ? null : strictError.parse(body).error;

/** An error as every route, known or not, must answer it: flat, from the closed table, with its headers. */
export function expectError({ body, headers, status }: Answer): ErrorBody {
  expect(headers.get("content-type")).to.match(/^application\/json\b/);
  const error = strictError.parse(body);
  expect(JSON.stringify(body)).not.to.match(INTERNAL);
  expect(headers.get("www-authenticate")?.split(" ")[0] ?? null).to.equal(status === 401 ? "Bearer" : null);
  const retryAfter = error.retry_after_seconds;
  expect(headers.get("retry-after")).to.equal(retryAfter === undefined ? null : String(retryAfter));
  expect(error.issues !== undefined, "issues go with VALIDATION_FAILED alone").to.equal(
    error.error === "VALIDATION_FAILED",
  );
  return error;
}

function expectAsDocumented(operationId: OperationId, answer: Answer): void {
  const { body, headers, status } = answer;
  const operation: Operation = operations[operationId];
  const text = JSON.stringify(body) ?? "";
  expect(headers.get("x-powered-by")).to.equal(null);
  if (status < 400) {
    expect(successesOf(operation), `${operationId} answers an undocumented ${status}: ${text}`).to.include(
      status,
    );
    const parsed = operation.output.safeParse(body);
    expect(parsed.success, `${operationId}: ${parsed.error?.message ?? ""} in ${text}`).to.equal(true);
  } else {
    const codes = errorCodesOf(operation).get(String(status)) ?? [];
    expect(codes, `${operationId} ${status}: ${text}`).to.include(expectError(answer).error);
  }
}

/** What is created is answered 200 where it was before, by an idempotency key. */
const successesOf = ({ errors, http }: Operation): readonly (number | undefined)[] =>
  errors.includes("IDEMPOTENCY_KEY_REUSED") ? [http?.successStatus, 200] : [http?.successStatus];
