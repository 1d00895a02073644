import type { FirstKey } from "../../../src/domain/agent/access.ts";
import type { AgentCommand, AgentReply } from "../../../src/domain/agent/commands.ts";
import { handle } from "../../../src/domain/agent/handle.ts";
import { type AgentState, initialAgentState } from "../../../src/domain/agent/state.ts";
import { MINUTE, NOON, profile } from "./actor.ts";

export const DELIVERY_WINDOW_MS = 30 * MINUTE;
export const FIRST_KEY = "akey_first";
export const CREATOR = "lineage-creator";
export const STRANGER = "lineage-stranger";

const firstKeyOf = (lineageId: string | null): FirstKey => ({
  keyId: FIRST_KEY,
  lineageId,
  deliverableUntil: NOON + DELIVERY_WINDOW_MS,
});

/** An agent's life with a clock. */
export class TestAgent {
  readonly state: AgentState;
  now = NOON;

  /** `lineageId` null: a person created it. */
  constructor(lineageId: string | null = CREATOR) {
    this.state = initialAgentState(profile, firstKeyOf(lineageId), NOON);
  }

  do(command: AgentCommand): AgentReply {
    return handle(this.state, command, this.now);
  }
}
