import { setTimeout as sleep } from "node:timers/promises";
import { Client } from "@modelcontextprotocol/sdk/client/index.js";
import { StreamableHTTPClientTransport } from "@modelcontextprotocol/sdk/client/streamableHttp.js";
import { CallToolResultSchema } from "@modelcontextprotocol/sdk/types.js";
import { AjvJsonSchemaValidator } from "@modelcontextprotocol/sdk/validation/ajv";
import type { JsonSchemaType, JsonSchemaValidator } from "@modelcontextprotocol/sdk/validation/types.js";
import { expect } from "chai";
import { z } from "zod";
import { derivedTools } from "../../server/mcp/tools.ts";
import type { AgentTool, ManagementTool } from "../../src/contract/tool-names.ts";
import { FOR_NOW, onceReachable, REPEAT_AFTER_MS } from "../support/api.ts";
import { expectNoCardData, noteSecretsGiven } from "../support/secrets.ts";
import { errorBody } from "../../src/contract/records.ts";
import { operations } from "../../src/contract/registry.ts";
import type { ErrorCode } from "../../src/domain/errors.ts";

/** A tool's result: its body, that of the REST twin or an error, and which of the two it is. */
export interface ToolResult {
  readonly isError: boolean;
  readonly body: Readonly<Record<string, unknown>>;
}

const CONNECT_REPEATS_MAX = 20;
const textOnly = z.tuple([z.strictObject({ type: z.literal("text"), text: z.string() })]);
const record = z.record(z.string(), z.unknown());

/** The SDK's own validation; what it compiles of a schema serves all clients: each would take half a second for it. */
class SharedValidators extends AjvJsonSchemaValidator {
  readonly #compiled = new Map<string, unknown>();

  override getValidator<T>(schema: JsonSchemaType): JsonSchemaValidator<T> {
    const key = JSON.stringify(schema);
    const compiled = this.#compiled.get(key) ?? super.getValidator<T>(schema);
    this.#compiled.set(key, compiled);
    // The type is the caller's claim about the schema, as it is in the SDK.
    return compiled as JsonSchemaValidator<T>;
  }
}

const validators = new SharedValidators();

/** A real MCP client with a key; it has listed the tools, so it validates every structured result. */
export class McpCaller {
  readonly client: Client;

  private constructor(client: Client) {
    this.client = client;
  }

  static async connect(baseUrl: string, key: string): Promise<McpCaller> {
    for (let repeat = 0; ; repeat += 1) {
      const client = new Client({ name: "test", version: "1.0.0" }, { jsonSchemaValidator: validators });
      const requestInit = { headers: { authorization: `Bearer ${key}` } };
      try {
        await client.connect(
          asTransport(new StreamableHTTPClientTransport(new URL(`${baseUrl}/mcp`), { requestInit })),
        );
        await client.listTools();
        return new McpCaller(client);
      } catch (error) {
        // On a busy machine it may be told to come again.
        const isTold = httpFailure.safeParse(error).data?.code === 503;
        if (!isTold || repeat === CONNECT_REPEATS_MAX) throw error;
        await client.close();
        await sleep(REPEAT_AFTER_MS);
      }
    }
  }

  /** Calls a tool and holds the result against the contract: text and structured content agree, its schema too. */
  async call(
    name: AgentTool | ManagementTool,
    args: Readonly<Record<string, unknown>> = {},
  ): Promise<ToolResult> {
    const result = CallToolResultSchema.parse(await this.client.callTool({ name, arguments: { ...args } }));
    const [{ text }] = textOnly.parse(result.content);
    const body = record.parse(result.structuredContent);
    expect(JSON.parse(text)).to.deep.equal(body);
    noteSecretsGiven(body);
    expectNoCardData(text);
    const isError = result.isError === true;
    const tool = derivedTools.get(name);
    const schema = isError || tool === undefined ? errorBody.strict() : operations[tool.operationId].output;
    const parsed = schema.safeParse(body);
    expect(parsed.success, `${name}: ${parsed.error?.message ?? ""} in ${text}`).to.equal(true);
    return { isError, body };
  }

  #surely(name: AgentTool | ManagementTool, args: Readonly<Record<string, unknown>>) {
    return onceReachable(async () => {
      const result = await this.call(name, args);
      return { ...result, status: result.isError && FOR_NOW.includes(result.body["error"]) ? 503 : 200 };
    });
  }

  /** The body of a call that must succeed, parsed. Repeated while it is told to come again: no tool does a thing twice. */
  async ok<S extends z.ZodType>(
    output: S,
    name: AgentTool | ManagementTool,
    args: Readonly<Record<string, unknown>> = {},
  ) {
    const { body, isError } = await this.#surely(name, args);
    expect(isError, JSON.stringify(body)).to.equal(false);
    return output.parse(body);
  }

  /** The same of the first answer: where being told to come again would be wrong. */
  async okAtOnce<S extends z.ZodType>(
    output: S,
    name: AgentTool | ManagementTool,
    args: Readonly<Record<string, unknown>> = {},
  ) {
    const { body, isError } = await this.call(name, args);
    expect(isError, JSON.stringify(body)).to.equal(false);
    return output.parse(body);
  }

  async refused(
    name: AgentTool | ManagementTool,
    code: ErrorCode,
    args: Readonly<Record<string, unknown>> = {},
  ) {
    const { body, isError } = FOR_NOW.includes(code)
      ? await this.call(name, args)
      : await this.#surely(name, args);
    expect([isError, body["error"]], JSON.stringify(body)).to.deep.equal([true, code]);
    return errorBody.parse(body);
  }

  close(): Promise<void> {
    return this.client.close();
  }
}

type Transport = Parameters<Client["connect"]>[0];

/** The SDK's own transport does not fit its interface under exact optional types. */
export function asTransport(transport: StreamableHTTPClientTransport): Transport;
export function asTransport(transport: object): object {
  return transport;
}

/** What a failed connection says of its HTTP answer. */
export const httpFailure = z.looseObject({ code: z.int() });
