import { Server } from "@modelcontextprotocol/sdk/server/index.js";
import { StreamableHTTPServerTransport } from "@modelcontextprotocol/sdk/server/streamableHttp.js";
import type { CallToolResult } from "@modelcontextprotocol/sdk/types.js";
import {
  CallToolRequestSchema,
  CancelledNotificationSchema,
  ErrorCode,
  ListToolsRequestSchema,
  McpError,
} from "@modelcontextprotocol/sdk/types.js";
import type { Request, RequestHandler, Response } from "express";
import { bandOf } from "../../src/contract/tool-names.ts";
import type { Refusal } from "../../src/domain/errors.ts";
import { refusal } from "../../src/domain/errors.ts";
import { Arrival } from "../deadline.ts";
import type { Admission } from "../http/admission.ts";
import { readBody } from "../http/body.ts";
import { errorBodyOf, sendRefusal } from "../http/errors.ts";
import { noteOf, type RequestNote } from "../http/request-note.ts";
import type { Requester } from "../limits/limits.ts";
import type { Pipeline } from "../pipeline.ts";
import type { AgentPrincipal, OrganizationKeyPrincipal } from "../principals.ts";
import { derivedTools } from "./tools.ts";

export interface McpDependencies {
  readonly admission: Admission;
  readonly pipeline: Pipeline;
}

const AGENT_INSTRUCTIONS =
  "You spend your organization's money under its policy. Check get_budget or check_payment before you pay. A payment " +
  "that is `pending` with an approval waits for a person: ask get_payment after a minute instead of paying again. After any " +
  "doubt repeat a payment with the same idempotencyKey; it is never made twice.";

const MANAGEMENT_INSTRUCTIONS =
  "You provision and supervise agents that spend an organization's money; you never spend. Keep an idempotencyKey " +
  "before each create, and repeat the create with it after any doubt. Read a `version` before you change what has " +
  "one; after a 409 about a version read it again.";

const INSTRUCTIONS = { agent: AGENT_INSTRUCTIONS, management: MANAGEMENT_INSTRUCTIONS } as const;

/**
 * `POST /mcp`, Streamable HTTP without sessions: each request carries its credential and is
 * answered with JSON, so any server process can take it.
 */
export function mcpEndpoint({ admission, pipeline }: McpDependencies): RequestHandler {
  return async (request, response) => {
    const arrival = new Arrival();
    const admitted = await admission.known(request, response, "mcp");
    if (!admitted.ok) return sendRefusal(response, admitted.refusal);
    const { principal } = admitted.value;
    // People have no band: their session is no credential here.
    if (principal === null || principal.type === "session") {
      return sendRefusal(response, refusal("UNAUTHORIZED"));
    }
    const body = await arrival.aside(readBody(request, response));
    if (!body.ok) return sendRefusal(response, body.refusal);
    const further = furtherMessages(body.value);
    const counted = await admission.more(request, response, "mcp", admitted.value, further);
    if (!counted.ok) return sendRefusal(response, counted.refusal);
    const server = serverFor(pipeline, { ...admitted.value, principal }, arrival, noteOf(response));
    await serve(server, request, response, body.value);
  };
}

/** A batch of JSON-RPC counts as its messages, so that nobody gets more than their limit by packing them together. */
const furtherMessages = (body: unknown): number => (Array.isArray(body) ? body.length - 1 : 0);

async function serve(server: Server, request: Request, response: Response, body: unknown): Promise<void> {
  // The SDK makes a URL of these; where a client's words give none, it would answer 400 without a body.
  request.url = "/mcp";
  request.headers.host = "localhost";
  const transport = new StreamableHTTPServerTransport({ enableJsonResponse: true });
  response.on("close", () => {
    void transport.close();
    void server.close();
  });
  await server.connect(asTransport(transport));
  await transport.handleRequest(request, response, body);
}

type Transport = Parameters<Server["connect"]>[0];

/** The SDK's transport declares optional callbacks that are `undefined`-able; exact optional types tell them apart. */
function asTransport(transport: StreamableHTTPServerTransport): Transport;
function asTransport(transport: object): object {
  return transport;
}

interface McpRequester extends Requester {
  readonly principal: AgentPrincipal | OrganizationKeyPrincipal;
}

/** The band as one key sees it: an agent's the agent band, an organization's the management band. */
function serverFor(pipeline: Pipeline, requester: McpRequester, arrival: Arrival, note: RequestNote): Server {
  const failure = (reason: Refusal): CallToolResult => {
    note.refusals.push(reason.code);
    return { ...structured(errorBodyOf(reason, note.id)), isError: true };
  };
  const { principal } = requester;
  const band = principal.type === "agent" ? "agent" : "management";
  const server = new Server(
    { name: "agent-spending-control", version: "1.0.0" },
    { capabilities: { tools: {} }, instructions: INSTRUCTIONS[band] },
  );
  // Without sessions it could only take back a message of its own batch, whose answer the SDK would then wait for, for ever.
  server.setNotificationHandler(CancelledNotificationSchema, () => undefined);
  server.fallbackRequestHandler = ({ method }) =>
    Promise.reject(
      new McpError(ErrorCode.MethodNotFound, `Method not found: ${method}`, { requestId: note.id }),
    );
  server.setRequestHandler(ListToolsRequestSchema, () => ({
    tools: [...derivedTools.values()]
      .filter(({ operationId }) => pipeline.authorize(operationId, principal) === null)
      .map((tool) => tool.listing),
  }));
  server.setRequestHandler(CallToolRequestSchema, async ({ params }): Promise<CallToolResult> => {
    const ownBand = bandOf(params.name);
    const tool = derivedTools.get(params.name);
    const isForeign = ownBand !== null && ownBand !== band;
    if (isForeign && tool === undefined) return failure(refusal("WRONG_CREDENTIAL"));
    if (tool === undefined) {
      throw new McpError(ErrorCode.InvalidParams, `Unknown tool: ${params.name}`, { requestId: note.id });
    }
    note.operations.push(tool.operationId);
    const call = { id: tool.operationId, requester, surface: "mcp", requestId: note.id, arrival } as const;
    const input = tool.inputOf(params.arguments ?? {});
    if (isForeign) return failure(await pipeline.refuse(call, input.params, refusal("WRONG_CREDENTIAL")));
    const denied = await pipeline.admit(call, input.params);
    if (denied !== null) return failure(denied);
    const result = await pipeline.handle(call, input);
    return result.ok ? structured(result.value.body) : failure(result.refusal);
  });
  return server;
}

/** Structured content, and the same as JSON text for clients that read only text. */
function structured(body: unknown): CallToolResult {
  if (typeof body !== "object" || body === null) throw new Error("a tool answers an object");
  return {
    content: [{ type: "text", text: JSON.stringify(body) }],
    structuredContent: Object.fromEntries(Object.entries(body)),
  };
}
