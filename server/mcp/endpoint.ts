import { Server } from "@modelcontextprotocol/sdk/server/index.js";
import { WebStandardStreamableHTTPServerTransport } from "@modelcontextprotocol/sdk/server/webStandardStreamableHttp.js";
import type { CallToolResult } from "@modelcontextprotocol/sdk/types.js";
import {
  CallToolRequestSchema,
  CancelledNotificationSchema,
  ListToolsRequestSchema,
} from "@modelcontextprotocol/sdk/types.js";
import type { Request, RequestHandler, Response } from "express";
import { z } from "zod";
import { bandOf } from "../../src/contract/tool-names.ts";
import { INSTRUCTIONS } from "../../src/contract/tool-texts/instructions.ts";
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
import { inBandWords, UnknownTool } from "./refusals.ts";
import { derivedTools } from "./tools.ts";

export interface McpDependencies {
  readonly admission: Admission;
  readonly pipeline: Pipeline;
}

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
    const note = noteOf(response);
    const server = serverFor(pipeline, { ...admitted.value, principal }, arrival, note);
    await serve(server, request, response, { body: body.value, requestId: note.id });
  };
}

/** A batch of JSON-RPC counts as its messages, so that nobody gets more than their limit by packing them together. */
const furtherMessages = (body: unknown): number => (Array.isArray(body) ? body.length - 1 : 0);

/** What of a request's headers the protocol looks at. */
const OF_PROTOCOL = ["accept", "content-type", "mcp-protocol-version"] as const;

interface Received {
  readonly body: unknown;
  readonly requestId: string;
}

async function serve(
  server: Server,
  { headers }: Request,
  response: Response,
  { body, requestId }: Received,
): Promise<void> {
  const transport = new WebStandardStreamableHTTPServerTransport({ enableJsonResponse: true });
  response.on("close", () => {
    void transport.close();
    void server.close();
  });
  await server.connect(transport);
  const looked = OF_PROTOCOL.flatMap((name): [string, string][] => {
    const value = headers[name];
    return typeof value === "string" ? [[name, value]] : [];
  });
  // Its body has been read already; where it had none, the transport finds none.
  const asked = new globalThis.Request("http://localhost/mcp", { method: "POST", headers: looked });
  const answer = await transport.handleRequest(asked, { parsedBody: body });
  const text = withRequestId(await answer.text(), requestId);
  if (response.destroyed) return;
  response.status(answer.status);
  for (const [name, value] of answer.headers) response.setHeader(name, value);
  // At once, so that it goes with its length.
  response.end(text);
}

const rpcAnswer = z.looseObject({ error: z.looseObject({ data: z.unknown().optional() }) });

/** Every JSON-RPC error names its request, whoever has made it; several, where several messages came together. */
function withRequestId(text: string, requestId: string): string {
  if (!text.includes('"error":')) return text;
  const answers: unknown = JSON.parse(text);
  const named = (answer: unknown): unknown => {
    const failed = rpcAnswer.safeParse(answer);
    return failed.success ? { ...failed.data, error: { ...failed.data.error, data: { requestId } } } : answer;
  };
  return JSON.stringify(Array.isArray(answers) ? answers.map(named) : named(answers));
}

interface McpRequester extends Requester {
  readonly principal: AgentPrincipal | OrganizationKeyPrincipal;
}

/** The band as one key sees it: an agent's the agent band, an organization's the management band. */
function serverFor(pipeline: Pipeline, requester: McpRequester, arrival: Arrival, note: RequestNote): Server {
  const { principal } = requester;
  const band = principal.type === "agent" ? "agent" : "management";
  const failure = (toolName: string, reason: Refusal): CallToolResult => {
    note.refusals.push(reason.code);
    return { ...structured(errorBodyOf(inBandWords(band, toolName, reason), note.id)), isError: true };
  };
  const server = new Server(
    { name: "agent-spending-control", version: "1.0.0" },
    { capabilities: { tools: {} }, instructions: INSTRUCTIONS[band] },
  );
  // Without sessions it could only take back a message of its own batch, whose answer the SDK would then wait for, for ever.
  server.setNotificationHandler(CancelledNotificationSchema, () => undefined);
  server.setRequestHandler(ListToolsRequestSchema, () => ({
    tools: [...derivedTools.values()]
      .filter(({ operationId }) => pipeline.authorize(operationId, principal) === null)
      .map((tool) => tool.listing),
  }));
  server.setRequestHandler(CallToolRequestSchema, async ({ params }): Promise<CallToolResult> => {
    const ownBand = bandOf(params.name);
    const tool = derivedTools.get(params.name);
    const isForeign = ownBand !== null && ownBand !== band;
    if (isForeign && tool === undefined) return failure(params.name, refusal("WRONG_CREDENTIAL"));
    if (tool === undefined) {
      throw new UnknownTool(params.name);
    }
    note.operations.push(tool.operationId);
    const call = { id: tool.operationId, requester, surface: "mcp", requestId: note.id, arrival } as const;
    const input = tool.inputOf(params.arguments ?? {});
    if (isForeign) {
      return failure(params.name, await pipeline.refuse(call, input.params, refusal("WRONG_CREDENTIAL")));
    }
    const denied = await pipeline.admit(call, input.params);
    if (denied !== null) return failure(params.name, denied);
    const result = await pipeline.handle(call, input);
    return result.ok ? structured(result.value.body) : failure(params.name, result.refusal);
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
