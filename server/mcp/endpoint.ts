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
import { bandOf } from "../../src/contract/tool-names.ts";
import type { Refusal } from "../../src/domain/errors.ts";
import { refusal } from "../../src/domain/errors.ts";
import type { Authenticator } from "../authenticator.ts";
import { readBody } from "../http/body.ts";
import { authorizationOf } from "../http/credentials.ts";
import { errorBodyOf, sendRefusal } from "../http/errors.ts";
import type { Pipeline } from "../pipeline.ts";
import type { AgentPrincipal, OrganizationKeyPrincipal } from "../principals.ts";
import { derivedTools } from "./tools.ts";

export interface McpDependencies {
  readonly authenticator: Authenticator;
  readonly pipeline: Pipeline;
}

const AGENT_INSTRUCTIONS =
  "You spend your organization's money under its policy. Check get_budget or check_payment before you pay. A payment " +
  "that is `pending` with an approval waits for a person: ask get_payment later instead of paying again. After any " +
  "doubt repeat a payment with the same idempotencyKey; it is never made twice.";

const MANAGEMENT_INSTRUCTIONS =
  "You provision and supervise agents that spend an organization's money; you never spend. Keep an idempotencyKey " +
  "before each create, and repeat the create with it after any doubt. Read a `version` before you change what has " +
  "one; after VERSION_CONFLICT read it again.";

const INSTRUCTIONS = { agent: AGENT_INSTRUCTIONS, management: MANAGEMENT_INSTRUCTIONS } as const;

/**
 * `POST /mcp`, Streamable HTTP without sessions (decisions.md section 8): each request carries its credential and is
 * answered with JSON, so any server process can take it.
 */
export function mcpEndpoint(dependencies: McpDependencies): RequestHandler {
  return async (request, response) => {
    const began = performance.now();
    const { result } = await dependencies.authenticator.authenticate(authorizationOf(request));
    if (!result.ok) return sendRefusal(response, result.refusal);
    // People have no band: their session is no credential here.
    const principal = result.value;
    if (principal.type === "session") return sendRefusal(response, refusal("UNAUTHORIZED"));
    const elapsedMs = performance.now() - began;
    const body = await readBody(request, response);
    if (!body.ok) return sendRefusal(response, body.refusal);
    const server = serverFor(dependencies.pipeline, principal, elapsedMs);
    await serve(server, request, response, body.value);
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

type McpPrincipal = AgentPrincipal | OrganizationKeyPrincipal;

/** The band as one key sees it: an agent's the agent band, an organization's the management band. */
function serverFor(pipeline: Pipeline, principal: McpPrincipal, elapsedMs: number): Server {
  const band = principal.type === "agent" ? "agent" : "management";
  const server = new Server(
    { name: "agent-spending-control", version: "1.0.0" },
    { capabilities: { tools: {} }, instructions: INSTRUCTIONS[band] },
  );
  server.setRequestHandler(ListToolsRequestSchema, () => ({
    tools: [...derivedTools.values()]
      .filter(({ operationId }) => pipeline.authorize(operationId, principal) === null)
      .map((tool) => tool.listing),
  }));
  server.setRequestHandler(CallToolRequestSchema, async ({ params }): Promise<CallToolResult> => {
    const ownBand = bandOf(params.name);
    if (ownBand !== null && ownBand !== band) return failure(refusal("WRONG_CREDENTIAL"));
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
