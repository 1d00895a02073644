import { randomUUID } from "node:crypto";
import { Client } from "@modelcontextprotocol/sdk/client/index.js";
import { StreamableHTTPClientTransport } from "@modelcontextprotocol/sdk/client/streamableHttp.js";
import type { z } from "zod";
import { StepDiffers } from "./stage.ts";

/** A person's client: plain HTTP. */
export class Owner {
  readonly #baseUrl: string;
  #token: string | null = null;

  constructor(baseUrl: string) {
    this.#baseUrl = baseUrl;
  }

  signedInWith(token: string): void {
    this.#token = token;
  }

  async call<T extends z.ZodType>(
    schema: T,
    method: string,
    path: string,
    body?: unknown,
  ): Promise<z.output<T>> {
    const response = await fetch(`${this.#baseUrl}${path}`, {
      method,
      headers: {
        ...(this.#token === null ? {} : { authorization: `Bearer ${this.#token}` }),
        ...(body === undefined ? {} : { "content-type": "application/json" }),
      },
      ...(body === undefined ? {} : { body: JSON.stringify(body) }),
    });
    const text = await response.text();
    if (!response.ok) throw new StepDiffers(`${method} ${path} answered ${response.status}: ${text}`);
    return schema.parse(JSON.parse(text));
  }
}

/** An agent: a real MCP client with the agent's key. */
export class AgentClient {
  readonly #client = new Client({ name: "demo-agent", version: "1.0.0" });

  static async connect(url: string, apiKey: string): Promise<AgentClient> {
    const agent = new AgentClient();
    const headers = { Authorization: `Bearer ${apiKey}` };
    const transport = new StreamableHTTPClientTransport(new URL(url), { requestInit: { headers } });
    await agent.#client.connect(asTransport(transport));
    return agent;
  }

  async toolNames(): Promise<string[]> {
    const { tools } = await this.#client.listTools();
    return tools.map((tool) => tool.name);
  }

  async use<T extends z.ZodType>(
    schema: T,
    name: string,
    args: Record<string, unknown> = {},
  ): Promise<z.output<T>> {
    const result = await this.#client.callTool({ name, arguments: args });
    if (result.isError === true)
      throw new StepDiffers(`${name}: ${JSON.stringify(result.structuredContent)}`);
    return schema.parse(result.structuredContent);
  }

  /** Sends from the agent's wallet, with a fresh idempotency key. */
  send<T extends z.ZodType>(
    schema: T,
    amountCents: number,
    recipient: string,
    purpose: string,
  ): Promise<z.output<T>> {
    const idempotencyKey = randomUUID();
    return this.use(schema, "create_wallet_payment", { amountCents, recipient, purpose, idempotencyKey });
  }

  pay<T extends z.ZodType>(
    schema: T,
    amountCents: number,
    merchant: string,
    purpose: string,
  ): Promise<z.output<T>> {
    const idempotencyKey = randomUUID();
    return this.use(schema, "create_card_payment", { amountCents, merchant, purpose, idempotencyKey });
  }

  close(): Promise<void> {
    return this.#client.close();
  }
}

type Transport = Parameters<Client["connect"]>[0];

/** The SDK's transport declares optional callbacks that are `undefined`-able; exact optional types tell them apart. */
function asTransport(transport: StreamableHTTPClientTransport): Transport;
function asTransport(transport: object): object {
  return transport;
}
