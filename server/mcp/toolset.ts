import { type ToolsetKind, toolsetOf } from "../../src/contract/tool-names.ts";
import { INSTRUCTIONS } from "../../src/contract/tool-texts/instructions.ts";
import type { OperationId } from "../../src/contract/registry.ts";
import { type ErrorCode, type Refusal, refusal } from "../../src/domain/errors.ts";
import { ok, type Result } from "../../src/domain/result.ts";
import type { Arrival } from "../../src/lib/deadline.ts";
import { errorBodyOf } from "../http/errors.ts";
import type { RequestContext } from "../http/request-context.ts";
import type { Requester } from "../../src/limits/limits.ts";
import type { ArrivedCall, Pipeline, RawInput } from "../pipeline/pipeline.ts";
import type { AgentPrincipal, OrganizationKeyPrincipal } from "../../src/identity/principals.ts";
import { explainRefusal } from "./refusals.ts";
import { derivedTools, type ToolListing } from "./tools.ts";

/** Caller of MCP, identified by a key. People have no toolset. */
export interface McpRequester extends Requester {
  readonly principal: AgentPrincipal | OrganizationKeyPrincipal;
}

export interface McpRequest {
  readonly requester: McpRequester;
  readonly arrival: Arrival;
  readonly context: RequestContext;
}

/** Result of a tool in the form that both generations of the protocol accept. */
export interface ToolResult {
  readonly content: { type: "text"; text: string }[];
  readonly structuredContent: Record<string, unknown>;
  readonly isError?: true;
}

const OF_CREDENTIAL: ReadonlySet<ErrorCode> = new Set(["UNAUTHORIZED", "AGENT_PAUSED"]);

/**
 * Tools of one key: the agent toolset for an agent's key, the management toolset for an organization's. All generations
 * of the protocol are served from this set.
 */
export class Toolset {
  readonly kind: ToolsetKind;
  readonly instructions: string;
  readonly #pipeline: Pipeline;
  readonly #request: McpRequest;
  #refusedCredential: Refusal | null = null;

  constructor(pipeline: Pipeline, request: McpRequest) {
    this.#pipeline = pipeline;
    this.#request = request;
    this.kind = request.requester.principal.type === "agent" ? "agent" : "management";
    this.instructions = INSTRUCTIONS[this.kind];
  }

  /** Refusal of a key that was valid at the request's arrival and was refused in a call; null if none was. */
  get refusedCredential(): Refusal | null {
    return this.#refusedCredential;
  }

  list(): ToolListing[] {
    return [...derivedTools.values()]
      .filter(({ operationId }) => this.may(operationId))
      .map((tool) => tool.listing);
  }

  may(id: OperationId): boolean {
    return this.#pipeline.authorize(id, this.#request.requester.principal) === null;
  }

  /** Returns a tool's result; null if no tool has that name. Never throws. */
  async call(name: string, args: Readonly<Record<string, unknown>>): Promise<ToolResult | null> {
    const ownToolset = toolsetOf(name);
    const tool = derivedTools.get(name);
    const isForeign = ownToolset !== null && ownToolset !== this.kind;
    if (isForeign && tool === undefined) return this.#failure(name, refusal("WRONG_CREDENTIAL"));
    if (tool === undefined) return null;
    const call = this.#callOf(tool.operationId);
    const input = tool.inputOf(args);
    if (isForeign) {
      const wrong = refusal("WRONG_CREDENTIAL");
      return this.#failure(name, await this.#pipeline.refuse(call, input.params, wrong));
    }
    const receive = () => Promise.resolve(ok({ input, recheck: null }));
    const result = await this.#pipeline.run(call, input.params, receive);
    if (result.ok) return structured(result.value.body);
    if (OF_CREDENTIAL.has(result.refusal.code)) this.#refusedCredential = result.refusal;
    return this.#failure(name, result.refusal);
  }

  /** Handles an operation on behalf of an earlier tool call. The caller has authorized it. */
  async handle(id: OperationId, input: RawInput): Promise<Result<unknown>> {
    const result = await this.#pipeline.handle(this.#callOf(id), input);
    if (!result.ok) this.#request.context.refusals.push(result.refusal.code);
    return result.ok ? ok(result.value.body) : result;
  }

  #callOf(id: OperationId): ArrivedCall {
    const { arrival, context, requester } = this.#request;
    context.operations.push(id);
    return { id, requester, surface: "mcp", requestId: context.id, arrival };
  }

  #failure(toolName: string, reason: Refusal): ToolResult {
    const { context } = this.#request;
    context.refusals.push(reason.code);
    return {
      ...structured(errorBodyOf(explainRefusal(this.kind, toolName, reason), context.id)),
      isError: true,
    };
  }
}

/** Returns structured content and the same as JSON text, for clients that read only text. */
export function structured(body: unknown): ToolResult {
  if (typeof body !== "object" || body === null) throw new Error("a tool must return an object");
  return {
    content: [{ type: "text", text: JSON.stringify(body) }],
    structuredContent: Object.fromEntries(Object.entries(body)),
  };
}
