import type { AgentCommand, AgentReply } from "./commands.ts";
import type { AgentEvent } from "./evolve.ts";

/** What a command does, and what its sender is told. */
export interface Decided {
  readonly events: readonly AgentEvent[];
  readonly reply: AgentReply;
}

export type Command<K extends AgentCommand["kind"]> = Extract<AgentCommand, { kind: K }>;

export const none = (reply: AgentReply): Decided => ({ events: [], reply });
export const one = (event: AgentEvent, reply: AgentReply): Decided => ({ events: [event], reply });
