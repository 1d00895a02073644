import { Server } from "@modelcontextprotocol/sdk/server/index.js";
import { WebStandardStreamableHTTPServerTransport } from "@modelcontextprotocol/sdk/server/webStandardStreamableHttp.js";
import {
  CallToolRequestSchema,
  CancelledNotificationSchema,
  ListToolsRequestSchema,
} from "@modelcontextprotocol/sdk/types.js";
import type { Toolset } from "./toolset.ts";
import { IMPLEMENTATION } from "./implementation.ts";
import { requestedProgressOf, withProgress } from "./progress.ts";
import { UnknownTool } from "./refusals.ts";

/** A response, and a function that ends the work on it once the reader has gone. */
export interface Served {
  readonly answer: globalThis.Response;
  readonly end: () => void;
}

/**
 * Serves protocol revisions up to 2025-11-25 without sessions: each request is self-contained, so any server process
 * can take it. Responses are JSON, except that a waiting call with requested progress gets a stream.
 */
export async function serveEarlierProtocols(
  toolset: Toolset,
  request: globalThis.Request,
  body: unknown,
): Promise<Served> {
  const transport = new WebStandardStreamableHTTPServerTransport({
    enableJsonResponse: requestedProgressOf(body) === null,
  });
  const server = serverOf(toolset);
  await server.connect(transport);
  const answer = await transport.handleRequest(request, { parsedBody: body });
  return {
    answer,
    end() {
      void transport.close();
      void server.close();
    },
  };
}

function serverOf(toolset: Toolset): Server {
  const { instructions } = toolset;
  const server = new Server(IMPLEMENTATION, { capabilities: { tools: {} }, instructions });
  // Without sessions, a cancellation could only address a message of its own batch, and the SDK would wait forever for
  // that response.
  server.setNotificationHandler(CancelledNotificationSchema, () => undefined);
  server.setRequestHandler(ListToolsRequestSchema, () => ({ tools: toolset.list() }));
  server.setRequestHandler(CallToolRequestSchema, async (request, { sendNotification }) => {
    const { arguments: args = {}, name } = request.params;
    const calling = toolset.call(name, args);
    const result = await withProgress(requestedProgressOf(request), sendNotification, calling);
    if (result === null) throw new UnknownTool(name);
    return { ...result };
  });
  return server;
}
