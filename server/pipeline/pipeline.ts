import type { AgentProofs } from "../../src/agents/agent-proofs.ts";
import { setTimeout as sleep } from "node:timers/promises";
import { z } from "zod";
import type { OperationId } from "../../src/contract/registry.ts";
import { operations } from "../../src/contract/registry.ts";
import { withoutNulls } from "../../src/contract/tolerance.ts";
import type { Operation } from "../../src/contract/types.ts";
import type { Refusal, ValidationIssue } from "../../src/domain/errors.ts";
import { refusal } from "../../src/domain/errors.ts";
import type { Result } from "../../src/domain/result.ts";
import { ok, refused } from "../../src/domain/result.ts";
import { authorize, authorizeBody } from "../../src/identity/authorize.ts";
import type { AuditNotes } from "../../src/audit/notes.ts";
import type { AuditTrail, Call } from "../../src/audit/trail.ts";
import type { Handlers, Reply } from "../handlers/types.ts";
import type { Limits, Requester } from "../../src/limits/limits.ts";
import type { Logger } from "../../src/lib/logger.ts";
import type { AccessProofs } from "../../src/secrets/access-proofs.ts";
import type { Collections } from "../../src/store/collections.ts";
import type { Principal } from "../../src/identity/principals.ts";
import { resolveResource, type NamedIn } from "./resources.ts";
import { isUnavailable } from "../../src/lib/unavailable.ts";
import { TimeoutError } from "../../src/lib/with-timeout.ts";
import { type Arrival, Deadline } from "../../src/lib/deadline.ts";

/**
 * Deadline for a caller's response, including the credential check: within 5 s, whatever is down. Work that takes
 * longer continues, and a replay of its idempotency key returns the outcome. A create that finds another call with its
 * key in flight extends its deadline.
 */
const ANSWER_TIMEOUT_MS = 3_500;

/**
 * Deadlines for operations that wait. A budget gets slightly longer to take effect, still within 5 s. A call to a
 * webhook's receiver or a shop extends its deadline once its request is sent; until then the usual one applies. Clients
 * give up on a simulation after 60 s.
 */
const WAITING_ANSWER_TIMEOUTS_MS = {
  propagation: 4_000,
  receiver: ANSWER_TIMEOUT_MS,
  shop: ANSWER_TIMEOUT_MS,
  simulation: 55_000,
} as const;

/** Timeout for the audit entry of a refusal. */
const REFUSAL_AUDIT_TIMEOUT_MS = 4_500;

/** Delay of the response to a wrong password, with or without an account. */
const WRONG_PASSWORD_DELAY_MS = 100;

export interface ArrivedCall extends Call {
  readonly arrival: Arrival;
}

export interface RawInput {
  readonly params: unknown;
  readonly query: unknown;
  readonly body: unknown;
}

export interface Received {
  readonly input: RawInput;
  /** Caller authenticated again after a late body; null if the body came with the headers. */
  readonly recheck: Result<Requester> | null;
}

/** Reads the remainder of a request, or returns a refusal. */
export type Receive = () => Promise<Result<Received>>;

export interface PipelineDependencies {
  readonly handlers: Handlers;
  readonly collections: Collections;
  readonly accessProofs: AccessProofs;
  readonly agentProofs: AgentProofs;
  readonly limits: Limits;
  readonly audit: AuditTrail;
  readonly clock: () => Date;
  readonly logger: Logger;
}

interface HandlerContext {
  readonly principal: Principal | null;
  readonly target: unknown;
  readonly audit: AuditNotes;
  readonly deadline: Deadline;
  readonly userAgent: string | null;
  readonly onlyUserId: string | null;
}

/** Handler with its types erased: they are not needed past this point. */
type AnyHandler = (input: unknown, context: HandlerContext) => Promise<Result<Reply<unknown>>>;

/**
 * Runs the checks that follow the credential and the limit per minute, the same for REST and MCP, in this order:
 * permission → rate caps → shape → existence and binding → state (by the handler). The rest of a request is read only
 * after the checks that do not need it.
 *
 * Only this class writes calls to the audit log: a change is answered, or refused, once its entry is durable.
 */
export class Pipeline {
  readonly #dependencies: PipelineDependencies;

  constructor(dependencies: PipelineDependencies) {
    this.#dependencies = dependencies;
  }

  authorize(id: OperationId, principal: Principal | null): Refusal | null {
    return authorize(operations[id].access, principal, this.#dependencies.clock());
  }

  /**
   * Runs all checks of a call, then its handler. Throws only what `receive` throws. What arrives after the credential
   * is judged by the credential's current state: the sender decides how long the body takes.
   */
  async run(call: ArrivedCall, params: unknown, receive: Receive): Promise<Result<Reply<unknown>>> {
    const denied = await this.#admit(call, params);
    if (denied !== null) return refused(denied);
    const received = await receive();
    if (!received.ok) return refused(await this.refuse(call, params, received.refusal));
    const { input, recheck } = received.value;
    if (recheck === null) return this.handle(call, input);
    if (!recheck.ok) return recheck;
    const still = { ...call, requester: recheck.value };
    const lost = this.authorize(call.id, recheck.value.principal);
    return lost === null ? this.handle(still, input) : refused(await this.refuse(still, params, lost));
  }

  /**
   * Decides before anything else of the request is read whether it may proceed, and counts it against its route's caps.
   * An organization key's writes over MCP have additional caps, which also count refused calls.
   */
  async #admit(call: ArrivedCall, params: unknown): Promise<Refusal | null> {
    try {
      const denied = await this.#mayBegin(call);
      return denied === null ? null : await this.refuse(call, params, denied);
    } catch (error) {
      return this.#refusalOf(call, undefined, error);
    }
  }

  /** Returns the response to a call refused before its handler, once the refusal is in the audit log. */
  async refuse(call: ArrivedCall, params: unknown, denied: Refusal): Promise<Refusal> {
    try {
      const first = await cachedAgentRefusal(call.requester.principal);
      if (first !== null) return first;
      const recorded = this.#dependencies.audit.recordRefusal(call, params, denied);
      await new Deadline(REFUSAL_AUDIT_TIMEOUT_MS, call.arrival).hold(recorded);
      return denied;
    } catch (error) {
      return this.#refusalOf(call, undefined, error);
    }
  }

  async #mayBegin({ id, requester, surface }: Call): Promise<Refusal | null> {
    const { limits } = this.#dependencies;
    const { principal } = requester;
    const operation: Operation = operations[id];
    if (surface === "mcp" && principal?.type === "organization_key" && isWrite(operation)) {
      const over = await limits.managementWrite(principal);
      if (over !== null) return over;
    }
    return this.authorize(id, principal) ?? (await limits.routeCaps(id, operation.rate, requester));
  }

  /**
   * Parses and handles a call. Never throws: an unavailable dependency gives 503, a defect gives 500 and a log line.
   */
  async handle(call: ArrivedCall, given: RawInput): Promise<Result<Reply<unknown>>> {
    const operation: Operation = operations[call.id];
    const { waitsFor } = operation;
    const raw = tolerated(operation, given);
    const boundMs = waitsFor === undefined ? ANSWER_TIMEOUT_MS : WAITING_ANSWER_TIMEOUTS_MS[waitsFor];
    const deadline = new Deadline(boundMs, call.arrival, call.requestId);
    try {
      // Nothing is begun for a caller that could not get the response.
      if (deadline.isOver) throw new TimeoutError("the call was not begun in time");
      return await deadline.hold(this.#executeAudited(call, raw, deadline));
    } catch (error) {
      return refused(this.#refusalOf(call, raw.body, error));
    }
  }

  /**
   * Returns a call's outcome once it is in the audit log. A call that outlasts its caller's wait continues, and its
   * entry records the final outcome.
   */
  async #executeAudited(call: Call, raw: RawInput, deadline: Deadline): Promise<Result<Reply<unknown>>> {
    const { audit } = this.#dependencies;
    const entry = audit.open(call, raw.params, deadline);
    const result = await this.#verified(call, raw, await this.#execute(call, raw, entry, deadline));
    const recorded = audit.record(call, raw.params, entry, result);
    await (isWrongPassword(call.id, result) ? this.#delay(call, recorded) : recorded);
    return result;
  }

  /**
   * Delays the response so that an e-mail without an account, and so without an audit entry, takes as long as one with
   * an account. The entry is being written when the response goes out, and nearly always succeeds.
   */
  async #delay({ id, requestId }: Call, recorded: Promise<void>): Promise<void> {
    recorded.catch((err: unknown) => {
      this.#dependencies.logger.warn(
        { operation: id, requestId, err },
        "the audit entry of a refused sign-in could not be written",
      );
    });
    await sleep(WRONG_PASSWORD_DELAY_MS);
  }

  /**
   * Reports an invalid credential before any other refusal than 503: too much is going on, and the credential is checked
   * when the call is repeated.
   */
  async #verified(
    call: Call,
    { body }: RawInput,
    result: Result<Reply<unknown>>,
  ): Promise<Result<Reply<unknown>>> {
    if (result.ok || result.refusal.code === "SERVICE_UNAVAILABLE") return result;
    try {
      const first = await cachedAgentRefusal(call.requester.principal);
      return first === null ? result : refused(first);
    } catch (error) {
      return refused(this.#refusalOf(call, body, error));
    }
  }

  async #execute(
    call: Call,
    raw: RawInput,
    audit: AuditNotes,
    deadline: Deadline,
  ): Promise<Result<Reply<unknown>>> {
    const {
      id,
      requester: { principal },
    } = call;
    const operation: Operation = operations[id];
    const denied = authorizeBody(operation.access, principal, raw.body, this.#dependencies.clock());
    if (denied !== null) return refused(denied);
    try {
      const admitted = await this.#dependencies.limits.accountCaps(id, operation.rate, principal, raw.body);
      if (!admitted.ok) return admitted;
      const { onlyUserId } = admitted.value;
      const input = parseInput(operation, raw, principal);
      if (!input.ok) return input;
      const { userAgent = null } = call;
      const context = { principal, audit, deadline, onlyUserId, userAgent };
      const result = await this.#answer(id, operation, input.value, context);
      await this.#countGuess(principal, result);
      return result;
    } catch (error) {
      return refused(this.#refusalOf(call, raw.body, error));
    }
  }

  /** Counts a wrong password before the answer reveals it, so that no guess is free. */
  async #countGuess(principal: Principal | null, result: Result<unknown>): Promise<void> {
    const isWrong = !result.ok && result.refusal.code === "PASSWORD_INVALID";
    if (isWrong && principal?.type === "session") await this.#dependencies.limits.wrongPassword(principal);
  }

  async #answer(
    id: OperationId,
    { access }: Operation,
    input: RawInput,
    context: Omit<HandlerContext, "target">,
  ): Promise<Result<Reply<unknown>>> {
    const handler = this.#handlerOf(id);
    const { principal } = context;
    if (access.kind !== "management") return handler(input, { ...context, target: null });
    // `authorize` has refused every other principal.
    if (principal === null || principal.type === "agent")
      throw new Error("a principal without management access was authorized");
    const target = await resolveResource(access, this.#dependencies, principal, input as NamedIn);
    return target.ok ? handler(input, { ...context, target: target.value }) : target;
  }

  #handlerOf(id: OperationId): AnyHandler {
    // `authorize` and `parseInput` have established the types that this operation's handler expects.
    return this.#dependencies.handlers[id] as AnyHandler;
  }

  #refusalOf({ id, requestId }: Call, body: unknown, error: unknown): Refusal {
    const { logger } = this.#dependencies;
    if (isUnavailable(error)) {
      logger.warn({ operation: id, requestId, err: error }, "a part of the service is not reachable");
      const code = isReplayableCreate(operations[id], body) ? "CREATE_RETRYABLE" : "SERVICE_UNAVAILABLE";
      return refusal(code, undefined, { retryAfterSeconds: 1 });
    }
    logger.error({ operation: id, requestId, err: error }, "an operation failed unexpectedly");
    return refusal("INTERNAL");
  }
}

/** Returns why a cached caller's credential is refused by now; null if it is valid or was verified for this request. */
async function cachedAgentRefusal(principal: Principal | null): Promise<Refusal | null> {
  if (principal?.type !== "agent" || principal.cached === undefined) return null;
  const verified = await principal.cached.verify();
  return verified.ok ? null : verified.refusal;
}

const isWrongPassword = (id: OperationId, result: Result<unknown>): boolean =>
  id === "signIn" && !result.ok && result.refusal.code === "UNAUTHORIZED";

const isWrite = ({ tool }: Operation): boolean => tool !== null && !tool.hints.readOnly;

const hasIdempotencyKey = (body: unknown): boolean =>
  typeof body === "object" && body !== null && "idempotencyKey" in body;

const isReplayableCreate = ({ errors }: Operation, body: unknown): boolean =>
  errors.includes("CREATE_RETRYABLE") && hasIdempotencyKey(body);

/**
 * Treats an empty cursor as the first page and null as absent, except in a PATCH, where null clears a field or is
 * refused.
 */
function tolerated(operation: Operation, { body, params, query }: RawInput): RawInput {
  return {
    params,
    query: withoutNulls(operation.query, withoutEmptyCursor(operation, query)),
    body: operation.http?.method === "patch" ? body : withoutNulls(operation.body, body),
  };
}

const emptyCursor = z.looseObject({ cursor: z.literal("") });

function withoutEmptyCursor({ query: { shape } }: Operation, query: unknown): unknown {
  const paged = "cursor" in shape ? emptyCursor.safeParse(query) : null;
  return paged?.success === true ? { ...paged.data, cursor: undefined } : query;
}

/** Reports a missing field as missing, not as a wrong type. */
const AS_REQUIRED: z.core.ParseContext<z.core.$ZodIssue> = {
  error: ({ code, input }) =>
    input === undefined && (code === "invalid_type" || code === "invalid_value") ? "is required" : undefined,
};

function parseInput(operation: Operation, raw: RawInput, principal: Principal | null): Result<RawInput> {
  if (lacksIdempotencyKey(operation, raw.body, principal)) {
    return refused(refusal("IDEMPOTENCY_KEY_REQUIRED"));
  }
  const params = operation.params.safeParse(raw.params, AS_REQUIRED);
  const idIssues = argumentIssues(operation, params.error);
  if (!params.success && idIssues.length === 0) return refused(noSuchId(operation, params.error));
  const query = operation.query.safeParse(raw.query, AS_REQUIRED);
  // A missing body is parsed as an empty one, so that each missing field is named.
  const body = operation.body.safeParse(
    raw.body ?? (operation.body.safeParse(undefined).success ? undefined : {}),
    AS_REQUIRED,
  );
  if (params.success && query.success && body.success) {
    return ok({ params: params.data, query: query.data, body: body.data });
  }
  const queryIssues = issuesOf(query.error, "query");
  const issues = [...idIssues, ...queryIssues, ...issuesOf(body.error, "body")];
  const isListed = "cursor" in operation.query.shape && issues.length === queryIssues.length;
  if (isListed && issues.every(({ path }) => path === "cursor")) return refused(refusal("BAD_CURSOR"));
  return refused(refusal("VALIDATION_FAILED", undefined, { issues }));
}

/** Returns the refusal of a malformed id, with an example of a valid one. */
function noSuchId({ tool }: Operation, { issues }: z.ZodError): Refusal {
  const [issue] = issues;
  if (issue === undefined) return refusal("NOT_FOUND");
  const detail = `${tool?.idName ?? "the id"} ${issue.message}.`;
  return refusal("NOT_FOUND", `There is no such resource: ${detail}`, { detail });
}

/**
 * Reports an id of the wrong type. In a path an id is always text, and a malformed one gives 404; as a tool's argument
 * it can also be missing.
 */
function argumentIssues({ tool }: Operation, error: z.ZodError | undefined): ValidationIssue[] {
  const notText = (error?.issues ?? []).filter(({ code }) => code === "invalid_type");
  return notText.map(({ message }) => ({ path: tool?.idName ?? "id", message }));
}

/**
 * Whether a machine's create or payment lacks its idempotency key. This has its own error code, whatever else is wrong,
 * because the caller must first make and keep a key. People may omit it.
 */
function lacksIdempotencyKey(operation: Operation, body: unknown, principal: Principal | null): boolean {
  if (!operation.errors.includes("IDEMPOTENCY_KEY_REQUIRED") || principal?.type === "session") return false;
  if (body === undefined) return true;
  return typeof body === "object" && body !== null && !Array.isArray(body) && !hasIdempotencyKey(body);
}

const ISSUES_MAX = 20;

/** `part`: path of an issue that belongs to no field, such as a body that is not an object. */
function issuesOf(error: z.ZodError | undefined, part: "query" | "body"): ValidationIssue[] {
  const issues = (error?.issues ?? []).flatMap(fieldsOf);
  return issues
    .slice(0, ISSUES_MAX)
    .map(({ message, path }) => ({ path: path === "" ? part : path, message }));
}

/** Length at which an external name is truncated in messages. */
const NAME_CHARACTERS_MAX = 100;

/**
 * Returns the issue for each field concerned. An unknown field is named by its path, like an invalid one, so that the
 * client finds its misspelling.
 */
function fieldsOf(issue: z.core.$ZodIssue): ValidationIssue[] {
  const pathTo = (...more: readonly string[]): string => [...issue.path.map(String), ...more].join(".");
  return issue.code === "unrecognized_keys"
    ? issue.keys.slice(0, ISSUES_MAX).map((key) => ({
        path: pathTo(key.slice(0, NAME_CHARACTERS_MAX)),
        message: "is not a field of this request",
      }))
    : [{ path: pathTo(), message: issue.message }];
}
