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
 * When a caller is answered at the latest, the check of its credential included: within 5 s, whatever is down. What takes longer
 * goes on, and a replay of its idempotency key returns the outcome. A create that finds another call at it moves its deadline.
 */
const ANSWER_MS = 3_500;

/**
 * Bounds of answers that wait for something. A budget has a little longer, to be in force, and is still answered within 5 s. A call
 * that waits for a webhook's receiver or a shop moves its deadline once the request is sent; until then it has the usual bound. Clients give
 * up on a simulation after 60 s.
 */
const WAITING_ANSWER_MS = {
  propagation: 4_000,
  receiver: ANSWER_MS,
  shop: ANSWER_MS,
  simulation: 55_000,
} as const;

/** Timeout for the audit entry of a certain refusal. */
const REFUSED_MS = 4_500;

/** Delay of the answer to a wrong password, with or without an account. */
const WRONG_PASSWORD_MS = 100;

/** A call, and since when it is here. */
export interface ArrivedCall extends Call {
  readonly arrival: Arrival;
}

/** A request's parts before they are parsed. */
export interface RawInput {
  readonly params: unknown;
  readonly query: unknown;
  readonly body: unknown;
}

/** The rest of a request, once it is here. */
export interface Received {
  readonly input: RawInput;
  /** The caller once the body has arrived; null: it came with the headers. */
  readonly recheck: Result<Requester> | null;
}

/** Reads the rest of a request. A refusal says why it is none. */
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

/** A validated input and the handler's call with it; the types met in `Handlers` are not needed past this point. */
type AnyHandler = (input: unknown, context: HandlerContext) => Promise<Result<Reply<unknown>>>;

/**
 * The order of checks after the credential and the limit per minute, the same for REST and MCP: may the caller do this at all →
 * not too often → shape → existence and binding → state (by the handler). The rest of a request is read only after what can be
 * said without it.
 *
 * Also the one place that writes calls to the audit log: a call that changes something is answered, or refused, once its entry
 * is durable.
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
   * All checks of a call in their order, and then what its handler answers. Throws only what `receive` throws. What comes later
   * than the credential is judged by the credential's current state: the sender decides how long the body takes.
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
   * Whether a request may go on before anything of it is read, counted against the caps of its route. An organization
   * key's writes over MCP have caps besides, which count those that are refused for anything, too.
   */
  async #admit(call: ArrivedCall, params: unknown): Promise<Refusal | null> {
    try {
      const denied = await this.#mayBegin(call);
      return denied === null ? null : await this.refuse(call, params, denied);
    } catch (error) {
      return this.#refusalOf(call, undefined, error);
    }
  }

  /** Returns the answer to a call that was refused before its handler, once that is in the audit log. */
  async refuse(call: ArrivedCall, params: unknown, denied: Refusal): Promise<Refusal> {
    try {
      const first = await cachedAgentRefusal(call.requester.principal);
      if (first !== null) return first;
      const recorded = this.#dependencies.audit.recordRefusal(call, params, denied);
      await new Deadline(REFUSED_MS, call.arrival).hold(recorded);
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

  /** Parses and handles. Never throws: what is down is 503, what should not happen is 500 and a line in the log. */
  async handle(call: ArrivedCall, given: RawInput): Promise<Result<Reply<unknown>>> {
    const operation: Operation = operations[call.id];
    const { waitsFor } = operation;
    const raw = tolerated(operation, given);
    const boundMs = waitsFor === undefined ? ANSWER_MS : WAITING_ANSWER_MS[waitsFor];
    const deadline = new Deadline(boundMs, call.arrival, call.requestId);
    try {
      // Nothing is begun for a caller who can't get the response.
      if (deadline.isOver) throw new TimeoutError("nothing of it was begun in time");
      return await deadline.hold(this.#executeAudited(call, raw, deadline));
    } catch (error) {
      return refused(this.#refusalOf(call, raw.body, error));
    }
  }

  /**
   * The outcome of a call, once it is in the audit log. What takes longer than its caller waits goes on, and is kept as what it
   * came to in the end.
   */
  async #executeAudited(call: Call, raw: RawInput, deadline: Deadline): Promise<Result<Reply<unknown>>> {
    const { audit } = this.#dependencies;
    const entry = audit.open(call, raw.params);
    const result = await this.#verified(call, raw, await this.#execute(call, raw, entry, deadline));
    const recorded = audit.record(call, raw.params, entry, result);
    await (isWrongPassword(call.id, result) ? this.#delay(call, recorded) : recorded);
    return result;
  }

  /**
   * Takes as long for an e-mail without an account, and so without an entry in an organization's log, as for one with it: the
   * entry is under way when the answer goes out, and nearly always safe.
   */
  async #delay({ id, requestId }: Call, recorded: Promise<void>): Promise<void> {
    recorded.catch((err: unknown) => {
      this.#dependencies.logger.warn(
        { operation: id, requestId, err },
        "the audit entry of a refused sign-in could not be written",
      );
    });
    await sleep(WRONG_PASSWORD_MS);
  }

  /** An invalid credential is reported before any other refusal. */
  async #verified(
    call: Call,
    { body }: RawInput,
    result: Result<Reply<unknown>>,
  ): Promise<Result<Reply<unknown>>> {
    if (result.ok) return result;
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

  /** Before it is answered whether the guess was right, so that no guess is free. */
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
    // `authorize` has refused everyone else.
    if (principal === null || principal.type === "agent") throw new Error("a stranger manages");
    const target = await resolveResource(access, this.#dependencies, principal, input as NamedIn);
    return target.ok ? handler(input, { ...context, target: target.value }) : target;
  }

  #handlerOf(id: OperationId): AnyHandler {
    // `authorize` and `parseInput` have just established what this operation's handler is typed with.
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

/** Why the credential of a caller who was known by memory is refused by now; null: it is good, or was verified for this request. */
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

/** An empty cursor names the first page, and null counts as left out; but in a PATCH, where it clears a field or is refused. */
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

/** Reports a missing field as missing instead of as a wrong type. */
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
  // No body where one is needed lacks its fields, and each of them is named.
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

/** Returns the refusal of a value that can't be an id, with an example of one. */
function noSuchId({ tool }: Operation, { issues }: z.ZodError): Refusal {
  const [issue] = issues;
  if (issue === undefined) return refusal("NOT_FOUND");
  const detail = `${tool?.idName ?? "the id"} ${issue.message}.`;
  return refusal("NOT_FOUND", `There is no such resource: ${detail}`, { detail });
}

/** In a path an id is text, and a malformed one names nothing: 404. As a tool's argument it can be missing, too. */
function argumentIssues({ tool }: Operation, error: z.ZodError | undefined): ValidationIssue[] {
  const notText = (error?.issues ?? []).filter(({ code }) => code === "invalid_type");
  return notText.map(({ message }) => ({ path: tool?.idName ?? "id", message }));
}

/**
 * A machine's create or payment without a key has a code of its own, whatever else is wrong: the caller must make and
 * keep one first. People may do without.
 */
function lacksIdempotencyKey(operation: Operation, body: unknown, principal: Principal | null): boolean {
  if (!operation.errors.includes("IDEMPOTENCY_KEY_REQUIRED") || principal?.type === "session") return false;
  if (body === undefined) return true;
  return typeof body === "object" && body !== null && !Array.isArray(body) && !hasIdempotencyKey(body);
}

/** Issues in a reported answer at the most. */
const ISSUES_MAX = 20;

/** `part`: what an issue is with that no field has, such as a body that is no object. */
function issuesOf(error: z.ZodError | undefined, part: "query" | "body"): ValidationIssue[] {
  const issues = (error?.issues ?? []).flatMap(fieldsOf);
  return issues
    .slice(0, ISSUES_MAX)
    .map(({ message, path }) => ({ path: path === "" ? part : path, message }));
}

/** Of a name from outside, so much is enough to find it. */
const NAME_CHARACTERS_MAX = 100;

/** A field that is not known is named by its path, as a wrong one is: the client finds its misspelling there. */
function fieldsOf(issue: z.core.$ZodIssue): ValidationIssue[] {
  const pathTo = (...more: readonly string[]): string => [...issue.path.map(String), ...more].join(".");
  return issue.code === "unrecognized_keys"
    ? issue.keys.slice(0, ISSUES_MAX).map((key) => ({
        path: pathTo(key.slice(0, NAME_CHARACTERS_MAX)),
        message: "is not a field of this request",
      }))
    : [{ path: pathTo(), message: issue.message }];
}
