import { z } from "zod";
import { type OperationId, operationList } from "../../src/contract/registry.ts";
import { AGENT_TOOL_TEXTS } from "../../src/contract/tool-texts/agent.ts";
import { MANAGEMENT_TOOL_TEXTS } from "../../src/contract/tool-texts/management.ts";
import { toolArguments } from "../../src/contract/tolerance.ts";
import type { ToolText } from "../../src/contract/tool-texts/types.ts";
import type { Operation, ToolBinding } from "../../src/contract/types.ts";
import type { RawInput } from "../pipeline/pipeline.ts";
import { inputSchemaOf, type JsonSchema, outputSchemaOf } from "./schemas.ts";

/** Object schema in the form that both generations of the protocol accept. */
export type ToolSchema = z.output<typeof toolSchema>;

/** Tool as listed to clients of either generation of the protocol. */
export interface ToolListing {
  readonly name: string;
  readonly title: string;
  readonly description: string;
  readonly inputSchema: ToolSchema;
  readonly outputSchema: ToolSchema;
  readonly annotations: {
    readonly readOnlyHint: boolean;
    readonly destructiveHint: boolean;
    readonly idempotentHint: boolean;
    readonly openWorldHint: boolean;
  };
}

export interface DerivedTool {
  readonly operationId: OperationId;
  readonly listing: ToolListing;
  readonly input: JsonSchema;
  /** Sorts flat arguments into the parts of the operation's request. Parsing refuses unknown ones. */
  readonly inputOf: (args: Readonly<Record<string, unknown>>) => RawInput;
}

const TEXTS: Readonly<Record<ToolBinding["name"], ToolText>> = {
  ...AGENT_TOOL_TEXTS,
  ...MANAGEMENT_TOOL_TEXTS,
};

const toolSchema = z
  .object({
    type: z.literal("object"),
    properties: z.record(z.string(), z.record(z.string(), z.json())).optional(),
    required: z.array(z.string()).optional(),
  })
  .catchall(z.json());

/** Tools by name, one for every operation that is a tool. */
export const derivedTools: ReadonlyMap<string, DerivedTool> = new Map(
  operationList.flatMap(([id, operation]) => {
    const { tool } = operation;
    return tool === null ? [] : [[tool.name, derive(id, operation, tool)] as const];
  }),
);

function derive(operationId: OperationId, operation: Operation, tool: ToolBinding): DerivedTool {
  const { hints, idName, name, requires = [] } = tool;
  const text = TEXTS[name];
  const args = argumentsOf(operation, idName);
  const input = inputSchemaOf(args, requires, text.arguments);
  return {
    operationId,
    input,
    listing: {
      name,
      title: tool.title,
      description: text.description,
      inputSchema: toolSchema.parse(input),
      outputSchema: toolSchema.parse(outputSchemaOf(operation.output, text.results)),
      annotations: {
        readOnlyHint: hints.readOnly,
        destructiveHint: hints.destructive,
        idempotentHint: hints.idempotent,
        openWorldHint: hints.openWorld,
      },
    },
    inputOf: (given) => sortArguments(operation, idName, toolArguments(args, given)),
  };
}

function bodyShape(operation: Operation): Readonly<Record<string, z.core.$ZodType>> {
  const body = operation.body instanceof z.ZodOptional ? operation.body.unwrap() : operation.body;
  if (!(body instanceof z.ZodObject))
    throw new Error(`"${operation.summary}": a tool's arguments must be a flat object`);
  return body.shape;
}

/** Returns all parts of the operation's request as one flat object. */
function argumentsOf(operation: Operation, idName: ToolBinding["idName"]): z.ZodObject {
  const { id, ...params } = operation.params.shape;
  return z.strictObject({
    ...params,
    ...(id === undefined || idName === null ? {} : { [idName]: id }),
    ...bodyShape(operation),
    ...operation.query.shape,
  });
}

function sortArguments(
  operation: Operation,
  idName: string | null,
  args: Readonly<Record<string, unknown>>,
): RawInput {
  // Built from entries, so that a name like `__proto__` is an ordinary field and refused as unknown.
  const entries = Object.entries(args);
  const isQuery = (key: string): boolean => Object.hasOwn(operation.query.shape, key);
  const params = Object.fromEntries(
    entries.flatMap(([key, value]) => (key === idName ? [["id", value]] : [])),
  );
  const query = Object.fromEntries(entries.filter(([key]) => key !== idName && isQuery(key)));
  const body = Object.fromEntries(entries.filter(([key]) => key !== idName && !isQuery(key)));
  return { params, query, body };
}
