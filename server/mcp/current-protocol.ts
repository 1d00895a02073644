import {
  createMcpHandler,
  MissingRequiredClientCapabilityError,
  ProtocolError,
  ProtocolErrorCode,
  Server,
} from "@modelcontextprotocol/server";
import { z } from "zod";
import type { Logger } from "../../src/lib/logger.ts";
import type { Toolset } from "./toolset.ts";
import type { Served } from "./earlier-protocols.ts";
import { IMPLEMENTATION } from "./implementation.ts";
import { requestedProgressOf, withProgress } from "./progress.ts";
import { UnknownTool } from "./refusals.ts";
import { cancelTask, readTask, taskFor, taskParams, TASKS_EXTENSION, TaskUnavailable } from "./tasks.ts";

/**
 * Serves the 2026-07-28 revision of the protocol: no handshake, version and capabilities in each request. A client that
 * declares the tasks extension gets a payment on hold as a task; any other client gets the payment itself.
 */
export class CurrentProtocol {
  readonly #toolsets = new WeakMap<globalThis.Request, Toolset>();
  readonly #handler;

  constructor(logger: Logger) {
    this.#handler = createMcpHandler(
      ({ requestInfo }) => {
        const toolset = requestInfo === undefined ? undefined : this.#toolsets.get(requestInfo);
        if (toolset === undefined) throw new Error("a request was not admitted");
        return serverOf(toolset);
      },
      {
        legacy: "reject",
        onerror: (err) => logger.debug({ err }, "a request over MCP was refused by the protocol"),
      },
    );
  }

  async serve(toolset: Toolset, request: globalThis.Request, body: unknown): Promise<Served> {
    const misnamed = misnamedTask(request, body);
    if (misnamed !== null) return { answer: misnamed, end: () => undefined };
    this.#toolsets.set(request, toolset);
    const answer = await this.#handler.fetch(request, { parsedBody: body });
    return { answer, end: () => undefined };
  }

  /** Ends all requests in progress, including streams. */
  end(): Promise<void> {
    return this.#handler.close();
  }
}

const taskRequest = z.looseObject({
  id: z.union([z.string(), z.number()]),
  method: z.enum(["tasks/get", "tasks/cancel", "tasks/update"]),
  params: taskParams,
});

const HEADER_MISMATCH = -32_020;

/**
 * Rejects a task request whose header names a different task. The SDK compares the header only for the protocol's own
 * methods.
 */
function misnamedTask({ headers }: globalThis.Request, body: unknown): globalThis.Response | null {
  const task = taskRequest.safeParse(body);
  const named = headers.get("mcp-name");
  if (!task.success || named === null || named === task.data.params.taskId) return null;
  const message = "The Mcp-Name header is not the taskId of the body.";
  const error = { code: HEADER_MISMATCH, message };
  return globalThis.Response.json({ jsonrpc: "2.0", id: task.data.id, error }, { status: 400 });
}

function serverOf(toolset: Toolset): Server {
  const { instructions, kind } = toolset;
  const extensions = kind === "agent" ? { extensions: { [TASKS_EXTENSION]: {} } } : {};
  const server = new Server(IMPLEMENTATION, { capabilities: { tools: {}, ...extensions }, instructions });
  const knowsTasks = (): boolean =>
    server.getClientCapabilities()?.extensions?.[TASKS_EXTENSION] !== undefined;
  server.setRequestHandler("tools/list", () => ({ tools: toolset.list() }));
  server.setRequestHandler("tools/call", async (request, { mcpReq }) => {
    const { arguments: args = {}, name } = request.params;
    const progress = requestedProgressOf({ ...request, params: { ...request.params, _meta: mcpReq._meta } });
    const result = await withProgress(progress, mcpReq.notify, toolset.call(name, args));
    if (result === null) throw new UnknownTool(name);
    const task = knowsTasks() ? taskFor(name, result) : null;
    return task === null ? { ...result } : { resultType: "task", content: [], ...task };
  });
  if (kind === "agent") serveTasks(server, toolset, knowsTasks);
  return server;
}

const REQUIRED = { requiredCapabilities: { extensions: { [TASKS_EXTENSION]: {} } } };

function serveTasks(server: Server, toolset: Toolset, knowsTasks: () => boolean): void {
  const surely = async <T>(work: () => Promise<T | null | false>): Promise<T> => {
    if (!knowsTasks()) throw new MissingRequiredClientCapabilityError(REQUIRED);
    try {
      const done = await work();
      if (done === null || done === false) {
        throw new ProtocolError(ProtocolErrorCode.InvalidParams, "You have no task with this taskId.");
      }
      return done;
    } catch (error) {
      if (!(error instanceof TaskUnavailable)) throw error;
      throw new ProtocolError(ProtocolErrorCode.InternalError, error.message);
    }
  };
  server.setRequestHandler("tasks/get", { params: taskParams }, async ({ taskId }) => ({
    ...(await surely(() => readTask(toolset, taskId))),
  }));
  server.setRequestHandler("tasks/cancel", { params: taskParams }, async ({ taskId }) => {
    await surely(() => cancelTask(toolset, taskId));
    return {};
  });
  // The server sends no requests to clients, so there is nothing for them to answer.
  server.setRequestHandler("tasks/update", { params: taskParams }, async ({ taskId }) => {
    await surely(() => readTask(toolset, taskId));
    return {};
  });
}
