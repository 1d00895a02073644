import { Server } from "@modelcontextprotocol/sdk/server/index.js";
import { StreamableHTTPServerTransport } from "@modelcontextprotocol/sdk/server/streamableHttp.js";
import type { CallToolResult } from "@modelcontextprotocol/sdk/types.js";
import {
  CallToolRequestSchema,
  ErrorCode,
  ListToolsRequestSchema,
  McpError,
} from "@modelcontextprotocol/sdk/types.js";
import type { Request, RequestHandler, Response } from "express";
import { MANAGEMENT_TOOLS } from "../../src/contract/agent-tools.ts";
import type { Refusal } from "../../src/domain/errors.ts";
import { refusal } from "../../src/domain/errors.ts";
import type { Authenticator } from "../authenticator.ts";
import { mayUse } from "../authorize.ts";
import { readBody } from "../http/body.ts";
import { errorBodyOf, sendRefusal } from "../http/errors.ts";
import type { Pipeline } from "../pipeline.ts";
import type { AgentPrincipal } from "../principals.ts";
import { derivedTools } from "./tools.ts";

export interface McpDependencies {
  readonly authenticator: Authenticator;
  readonly pipeline: Pipeline;
}

const INSTRUCTIONS =
  "You spend your organization's money under its policy. Check get_budget or check_payment before you pay. A payment " +
  "that is `pending` with an approval waits for a person: ask get_payment later instead of paying again. After any " +
  "doubt repeat a payment with the same idempotencyKey; it is never made twice.";

/**
 * `POST /mcp`, Streamable HTTP without sessions (decisions.md section 8): each request carries its credential and is
 * answered with JSON, so any server process can take it.
 */
export function mcpEndpoint(dependencies: McpDependencies): RequestHandler {
  return async (request, response) => {
    const began = performance.now();
    const authenticated = await dependencies.authenticator.authenticate(request.headers.authorization);
    if (!authenticated.ok) return sendRefusal(response, authenticated.refusal);
    // Only agents have a band yet; anything else is no credential here.
    if (authenticated.value.type !== "agent") return sendRefusal(response, refusal("UNAUTHORIZED"));
    const elapsedMs = performance.now() - began;
    const body = await readBody(request, response);
    if (!body.ok) return sendRefusal(response, body.refusal);
    const band = bandOf(dependencies.pipeline, authenticated.value, elapsedMs);
    await serve(band, request, response, body.value);
  };
}

async function serve(server: Server, request: Request, response: Response, body: unknown): Promise<void> {
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

/** The agent band as one agent's key sees it. */
function bandOf(pipeline: Pipeline, principal: AgentPrincipal, elapsedMs: number): Server {
  const server = new Server(
    { name: "agent-spending-control", version: "1.0.0" },
    { capabilities: { tools: {} }, instructions: INSTRUCTIONS },
  );
  server.setRequestHandler(ListToolsRequestSchema, () => ({
    tools: [...derivedTools.values()]
      .map((tool) => tool.listing)
      .filter((tool) => mayUse(principal, tool.name)),
  }));
  server.setRequestHandler(CallToolRequestSchema, async ({ params }): Promise<CallToolResult> => {
    if (MANAGEMENT_TOOLS.has(params.name)) return failure(refusal("WRONG_CREDENTIAL"));
    const tool = derivedTools.get(params.name);
    if (tool === undefined) throw new McpError(ErrorCode.InvalidParams, `Unknown tool: ${params.name}`);
    const denied = pipeline.authorize(tool.operationId, principal);
    if (denied !== null) return failure(denied);
    const input = tool.inputOf(params.arguments ?? {});
    const result = await pipeline.handle(tool.operationId, input, principal, elapsedMs);
    return result.ok ? structured(result.value.body) : failure(result.refusal);
  });
  return server;
}

const failure = (reason: Refusal): CallToolResult => ({ ...structured(errorBodyOf(reason)), isError: true });

/** Structured content, and the same as JSON text for clients that read only text. */
function structured(body: unknown): CallToolResult {
  if (typeof body !== "object" || body === null) throw new Error("a tool answers an object");
  return {
    content: [{ type: "text", text: JSON.stringify(body) }],
    structuredContent: Object.fromEntries(Object.entries(body)),
  };
}
