import { ErrorCode } from "@modelcontextprotocol/sdk/types.js";
import { z } from "zod";
import type { ToolsetKind } from "../../src/contract/tool-names.ts";
import { refusalText } from "../../src/contract/tool-texts/refusals.ts";
import { ERRORS, type Refusal, type ValidationIssue } from "../../src/domain/errors.ts";
import { type JsonSchema, schemaAt } from "./schemas.ts";
import { derivedTools } from "./tools.ts";

/**
 * Explains a refusal to the model that called a tool: what the code means in this toolset, what is particular to this
 * refusal, and what to do next. Code and fields stay those of REST. Refusals are put into words only here.
 */
export function explainRefusal(toolset: ToolsetKind, toolName: string, refusal: Refusal): Refusal {
  const text = refusalText(toolset, toolName, refusal.code);
  if (text === null) return refusal;
  const { detail, issues, message } = refusal;
  // A specific message without details is more precise than the general text of its code.
  const what = detail !== undefined || message === ERRORS[refusal.code].message ? text.what : message;
  const sentences = [what, detail, text.next].filter((part) => part !== undefined);
  const input = derivedTools.get(toolName)?.input;
  return {
    ...refusal,
    message: sentences.join(" "),
    ...(issues === undefined || input === undefined
      ? {}
      : { issues: issues.map((issue) => inWordsOf(input, issue)) }),
  };
}

/** Says what is wrong with an argument and what is expected. For an unknown argument, lists the known ones. */
function inWordsOf(input: JsonSchema, { message, path }: ValidationIssue): ValidationIssue {
  const argument = schemaAt(input, path);
  if (argument !== null)
    return { path, message: [sentence(message), argument.description ?? ""].join(" ").trim() };
  const around = path.includes(".") ? schemaAt(input, path.slice(0, path.lastIndexOf("."))) : input;
  const names = Object.keys(around?.properties ?? {});
  const known = names.length === 0 ? "None is taken here." : `Those are: ${names.join(", ")}.`;
  return { path, message: `is not an argument of this tool. ${known}` };
}

const sentence = (message: string): string => (message.endsWith(".") ? message : `${message}.`);

/** Length at which an external name is truncated in messages. */
const NAME_CHARACTERS_MAX = 60;

/**
 * Call of an unknown tool: -32602, as the protocol requires. Not derived from the SDK's error, which puts its code into
 * the message, where clients repeat it.
 */
export class UnknownTool extends Error {
  readonly code = ErrorCode.InvalidParams;

  constructor(name: string) {
    super(
      `There is no tool ${JSON.stringify(name.slice(0, NAME_CHARACTERS_MAX))}: use one of those that are listed.`,
    );
  }
}

interface OwnError {
  readonly code: number;
  readonly message: string;
}

const invalidParams = (message: string): OwnError => ({ code: ErrorCode.InvalidParams, message });
const NAMELESS = invalidParams("`name` must be text: the name of one of the tools that are listed.");
const SHAPELESS = invalidParams(
  "`arguments` must be an object that has the tool's arguments by their names.",
);

const toolCall = z.looseObject({
  id: z.union([z.string(), z.number()]),
  method: z.literal("tools/call"),
  params: z.looseObject({ name: z.unknown().optional(), arguments: z.unknown().optional() }).default({}),
});
const argumentsShape = z.record(z.string(), z.unknown()).optional();

/** Returns the errors of calls whose name is not text or whose arguments are not an object, keyed by call id. */
export function malformedCalls(body: unknown): ReadonlyMap<unknown, OwnError> {
  const calls = [body].flat().flatMap((message) => toolCall.safeParse(message).data ?? []);
  const errorOf = ({ arguments: args, name }: (typeof calls)[number]["params"]): OwnError | null => {
    if (typeof name !== "string") return NAMELESS;
    return argumentsShape.safeParse(args).success ? null : SHAPELESS;
  };
  return new Map(
    calls.flatMap(({ id, params }) => {
      const error = errorOf(params);
      return error === null ? [] : [[id, error] as const];
    }),
  );
}
