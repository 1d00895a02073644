import { z } from "zod";

/** A tool as a framework offers it to a model. */
export type Offered = z.output<typeof offered>;

/** A framework's request to a model. */
interface Turn {
  readonly tools: readonly Offered[];
  /** Results of the tools that the model has called, in order. */
  readonly results: readonly string[];
}

/** A model's answer. */
export type Step = { readonly text: string } | ToolCall;

interface ToolCall {
  readonly id: string;
  readonly tool: string;
  readonly args: Readonly<Record<string, unknown>>;
}

type Body = Readonly<Record<string, unknown>>;

/** One vendor's API: how it tells a turn, and how it is answered. */
interface Codec {
  readonly path: RegExp;
  readonly read: (body: Body) => Turn;
  readonly write: (step: Step, body: Body) => { readonly type: string; readonly text: string };
}

const kind = z.union([z.string(), z.array(z.string())]).optional();
const property = z.looseObject({
  type: kind,
  anyOf: z.array(z.looseObject({ type: kind })).optional(),
  enum: z.array(z.unknown()).optional(),
  minimum: z.number().optional(),
  nullable: z.boolean().optional(),
});
const schema = z.looseObject({
  properties: z.record(z.string(), property).optional(),
  required: z.array(z.string()).optional(),
});
const offered = z.object({ name: z.string(), schema });

const streaming = z.looseObject({ stream: z.boolean().optional() });
const now = (): number => Math.floor(Date.now() / 1_000);
const asJson = (value: object) => ({ type: "application/json", text: JSON.stringify(value) });
const asEvents = (events: readonly { readonly type: string }[]) => ({
  type: "text/event-stream",
  text: events.map((event) => `event: ${event.type}\ndata: ${JSON.stringify(event)}\n\n`).join(""),
});

const told = (value: unknown): string => (typeof value === "string" ? value : JSON.stringify(value));

const chat = z.looseObject({
  tools: z.array(z.object({ function: z.object({ name: z.string(), parameters: schema }) })).default([]),
  messages: z.array(z.looseObject({ role: z.string(), content: z.unknown().optional() })),
});

const called = ({ args, id, tool }: ToolCall) => ({
  index: 0,
  id,
  type: "function",
  function: { name: tool, arguments: JSON.stringify(args) },
});

/** OpenAI's Chat Completions. */
const chatCompletions: Codec = {
  path: /\/chat\/completions$/,
  read(body) {
    const { messages, tools } = chat.parse(body);
    const results = messages.filter(({ role }) => role === "tool");
    return {
      tools: tools.map(({ function: { name, parameters } }) => ({ name, schema: parameters })),
      results: results.map(({ content }) => told(content)),
    };
  },
  write(step) {
    const message =
      "text" in step
        ? { role: "assistant", content: step.text }
        : { role: "assistant", content: null, tool_calls: [called(step)] };
    const finish_reason = "text" in step ? "stop" : "tool_calls";
    const usage = { prompt_tokens: 1, completion_tokens: 1, total_tokens: 2 };
    const choices = [{ index: 0, message, finish_reason }];
    return asJson({
      id: "chatcmpl-1",
      object: "chat.completion",
      created: now(),
      model: "scripted",
      choices,
      usage,
    });
  },
};

const responsesBody = z.looseObject({
  tools: z.array(z.looseObject({ name: z.string(), parameters: schema })).default([]),
  input: z.union([
    z.string(),
    z.array(z.looseObject({ type: z.string().optional(), output: z.unknown().optional() })),
  ]),
});

/** OpenAI's Responses. */
const responses: Codec = {
  path: /\/responses$/,
  read(body) {
    const { input, tools } = responsesBody.parse(body);
    const items = typeof input === "string" ? [] : input;
    const results = items.filter(({ type }) => type === "function_call_output");
    return {
      tools: tools.map(({ name, parameters }) => ({ name, schema: parameters })),
      results: results.map(({ output }) => told(output)),
    };
  },
  write(step) {
    const item =
      "text" in step
        ? {
            type: "message",
            id: "msg_1",
            role: "assistant",
            status: "completed",
            content: [{ type: "output_text", text: step.text, annotations: [] }],
          }
        : {
            type: "function_call",
            id: `fc_${step.id}`,
            call_id: step.id,
            name: step.tool,
            arguments: JSON.stringify(step.args),
            status: "completed",
          };
    return asJson({
      id: "resp_1",
      object: "response",
      created_at: now(),
      model: "scripted",
      status: "completed",
      output: [item],
      parallel_tool_calls: true,
      tool_choice: "auto",
      tools: [],
      error: null,
      incomplete_details: null,
      instructions: null,
      metadata: {},
      usage: {
        input_tokens: 1,
        input_tokens_details: { cached_tokens: 0 },
        output_tokens: 1,
        output_tokens_details: { reasoning_tokens: 0 },
        total_tokens: 2,
      },
    });
  },
};

const blocks = z.union([
  z.string(),
  z.array(z.looseObject({ type: z.string(), content: z.unknown().optional() })),
]);
const anthropicBody = z.looseObject({
  tools: z.array(z.looseObject({ name: z.string(), input_schema: schema.default({}) })).default([]),
  messages: z.array(z.looseObject({ content: blocks })),
});

/** Anthropic's Messages. */
const messages: Codec = {
  path: /\/v1\/messages(\?|$)/,
  read(body) {
    const { messages: said, tools } = anthropicBody.parse(body);
    const parts = said.flatMap(({ content }) => (typeof content === "string" ? [] : content));
    const results = parts.filter(({ type }) => type === "tool_result");
    return {
      tools: tools.map(({ input_schema, name }) => ({ name, schema: input_schema })),
      results: results.map(({ content }) => told(content)),
    };
  },
  write(step, body) {
    const block =
      "text" in step
        ? { type: "text", text: step.text }
        : { type: "tool_use", id: step.id, name: step.tool, input: step.args };
    const stop_reason = "text" in step ? "end_turn" : "tool_use";
    const usage = { input_tokens: 1, output_tokens: 1 };
    const message = { id: "msg_1", type: "message", role: "assistant", model: "scripted", usage };
    if (streaming.parse(body).stream !== true)
      return asJson({ ...message, content: [block], stop_reason, stop_sequence: null });
    const [empty, delta] =
      "text" in step
        ? [
            { type: "text", text: "" },
            { type: "text_delta", text: step.text },
          ]
        : [
            { ...block, input: {} },
            { type: "input_json_delta", partial_json: JSON.stringify(step.args) },
          ];
    const events = [
      { type: "message_start", message: { ...message, content: [], stop_reason: null, stop_sequence: null } },
      { type: "content_block_start", index: 0, content_block: empty },
      { type: "content_block_delta", index: 0, delta },
      { type: "content_block_stop", index: 0 },
      { type: "message_delta", delta: { stop_reason, stop_sequence: null }, usage },
      { type: "message_stop" },
    ];
    return asEvents(events);
  },
};

const part = z.looseObject({
  functionResponse: z.looseObject({ response: z.unknown().optional() }).optional(),
});
const declaration = z.looseObject({
  name: z.string(),
  parameters: schema.optional(),
  parametersJsonSchema: schema.optional(),
  parameters_json_schema: schema.optional(),
});
const geminiBody = z.looseObject({
  tools: z.array(z.looseObject({ functionDeclarations: z.array(declaration).default([]) })).default([]),
  contents: z.array(z.looseObject({ parts: z.array(part).default([]) })),
});

/** Google's Gemini. */
const gemini: Codec = {
  path: /:generateContent(\?|$)/,
  read(body) {
    const { contents, tools } = geminiBody.parse(body);
    const results = contents
      .flatMap(({ parts }) => parts)
      .map((each) => each.functionResponse)
      .filter((each) => each !== undefined);
    return {
      tools: tools
        .flatMap(({ functionDeclarations }) => functionDeclarations)
        .map((each) => ({
          name: each.name,
          schema: each.parametersJsonSchema ?? each.parameters_json_schema ?? each.parameters ?? {},
        })),
      results: results.map(({ response }) => told(response)),
    };
  },
  write(step) {
    const parts = ["text" in step ? step : { functionCall: { name: step.tool, args: step.args } }];
    return asJson({
      candidates: [{ index: 0, content: { role: "model", parts }, finishReason: "STOP" }],
      usageMetadata: { promptTokenCount: 1, candidatesTokenCount: 1, totalTokenCount: 2 },
    });
  },
};

export const CODECS: readonly Codec[] = [chatCompletions, responses, messages, gemini];
