import { once } from "node:events";
import { createServer, type IncomingMessage, type ServerResponse } from "node:http";
import { json } from "node:stream/consumers";
import { z } from "zod";
import { AGENT_TOOLS, type AgentTool } from "../../src/contract/tool-names.ts";
import { CODECS, type Offered, type Step } from "./model-codecs.ts";

/** A model that pays once with the tools that a framework offers it, at an endpoint like those of the vendors. */
export interface ScriptedModel {
  /** Environment by which clients of the vendors find the model. */
  readonly env: Readonly<Record<string, string>>;
  /** Tools of the service that the model was offered. */
  readonly offered: ReadonlySet<AgentTool>;
  /** What the framework told the model of the payment, or null. */
  result(): string | null;
  stop(): Promise<void>;
}

const PAYMENT = { merchant: "Acme", amountCents: 100, purpose: "a test", idempotencyKey: "first-payment" };
const KEY = "scripted";

export async function startModel(): Promise<ScriptedModel> {
  const offered = new Set<AgentTool>();
  let result: string | null = null;

  async function answer(request: IncomingMessage, response: ServerResponse): Promise<void> {
    const codec = CODECS.find(({ path }) => path.test(request.url ?? ""));
    if (request.method !== "POST" || codec === undefined) return void response.writeHead(404).end();
    const body = z.record(z.string(), z.unknown()).parse(await json(request));
    const turn = codec.read(body);
    for (const name of AGENT_TOOLS)
      if (turn.tools.some((tool) => tool.name.endsWith(name))) offered.add(name);
    result = turn.result ?? result;
    const { text, type } = codec.write(stepAfter(turn.tools, turn.result), body);
    response.writeHead(200, { "content-type": type }).end(text);
  }

  const server = createServer((request, response) => {
    answer(request, response).catch((error: unknown) => {
      process.stderr.write(`scripted model, ${request.url ?? ""}: ${String(error)}\n`);
      response.writeHead(500).end();
    });
  });
  server.listen(0, "127.0.0.1");
  await once(server, "listening");
  const { port } = z.object({ port: z.int() }).parse(server.address());
  const url = `http://127.0.0.1:${String(port)}`;
  return {
    env: {
      OPENAI_API_KEY: KEY,
      OPENAI_BASE_URL: `${url}/v1`,
      ANTHROPIC_API_KEY: KEY,
      ANTHROPIC_BASE_URL: url,
      GOOGLE_API_KEY: KEY,
      GOOGLE_GEMINI_BASE_URL: url,
    },
    offered,
    result: () => result,
    async stop() {
      server.closeAllConnections();
      server.close();
      await once(server, "close");
    },
  };
}

/** Pays unless the payment was answered, or there is no tool for it. */
function stepAfter(tools: readonly Offered[], result: string | null): Step {
  const tool = tools.find(({ name }) => name.endsWith("create_card_payment"));
  if (result !== null || tool === undefined) return { text: "Done." };
  return { tool: tool.name, args: { ...fillers(tool.schema), ...PAYMENT } };
}

/** What a model sends that must name every argument that the framework has made required. */
function fillers({ properties = {}, required = [] }: Offered["schema"]): Record<string, unknown> {
  return Object.fromEntries(required.map((name) => [name, fillerOf(properties[name] ?? {})]));
}

function fillerOf({ anyOf, enum: values, minimum, nullable, type }: Property): unknown {
  const types = [type, ...(anyOf ?? []).map((each) => each.type)].flat();
  if (nullable === true || types.includes("null")) return null;
  if (values !== undefined) return values[0];
  return types.includes("string") ? "" : (minimum ?? 0);
}

type Property = NonNullable<Offered["schema"]["properties"]>[string];
