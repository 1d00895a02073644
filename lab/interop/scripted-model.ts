import { once } from "node:events";
import { createServer, type IncomingMessage, type ServerResponse } from "node:http";
import { json } from "node:stream/consumers";
import { z } from "zod";
import { AGENT_TOOLS, type AgentTool } from "../../src/contract/tool-names.ts";
import { CODECS, type Offered, type Step } from "./model-codecs.ts";

/** A model that calls the tools that a framework offers it by a script, at endpoints like those of the vendors. */
export interface ScriptedModel {
  /** Environment by which clients of the vendors find the model. */
  readonly env: Readonly<Record<string, string>>;
  /** Tools of the service that the model was offered. */
  readonly offered: ReadonlySet<AgentTool>;
  /** The results of its calls as the framework told them to the model, in order. */
  results(): readonly string[];
  stop(): Promise<void>;
}

interface Call {
  readonly name: AgentTool;
  readonly args: Readonly<Record<string, unknown>>;
  readonly answer: string;
}

const PURCHASE = { merchant: "Acme", amountCents: 100 };
/** Calls of the model, one a turn, and what the answer of each contains. */
export const SCRIPT: readonly Call[] = [
  { name: "get_budget", args: {}, answer: "remainingCents" },
  { name: "check_payment", args: { ...PURCHASE, rail: "card" }, answer: "decision" },
  {
    name: "create_card_payment",
    args: { ...PURCHASE, purpose: "a test", idempotencyKey: "first-payment" },
    answer: "txn_",
  },
  { name: "list_payments", args: {}, answer: "txn_" },
];
const KEY = "scripted";

export async function startModel(): Promise<ScriptedModel> {
  const offered = new Set<AgentTool>();
  let results: readonly string[] = [];

  async function answer(request: IncomingMessage, response: ServerResponse): Promise<void> {
    const codec = CODECS.find(({ path }) => path.test(request.url ?? ""));
    if (request.method !== "POST" || codec === undefined) return void response.writeHead(404).end();
    const body = z.record(z.string(), z.unknown()).parse(await json(request));
    const turn = codec.read(body);
    for (const name of AGENT_TOOLS)
      if (turn.tools.some((tool) => tool.name.endsWith(name))) offered.add(name);
    // Some ask aside, without tools, for a title of the conversation.
    if (turn.results.length > results.length) results = turn.results;
    const { text, type } = codec.write(stepAfter(turn.tools, turn.results.length), body);
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
    results: () => results,
    async stop() {
      server.closeAllConnections();
      server.close();
      await once(server, "close");
    },
  };
}

/** The next call of the script, or the end where there is none, or no tool for it. */
function stepAfter(tools: readonly Offered[], answered: number): Step {
  const call = SCRIPT[answered];
  const tool = call === undefined ? undefined : tools.find(({ name }) => name.endsWith(call.name));
  if (call === undefined || tool === undefined) return { text: "Done." };
  return { id: `call_${String(answered)}`, tool: tool.name, args: { ...fillers(tool.schema), ...call.args } };
}

/** Values for the arguments that a framework has made required. */
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
