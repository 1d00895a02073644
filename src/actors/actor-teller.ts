import type { ToldActor } from "../messages/agent.ts";
import type { AgentGateway } from "../payments/ports.ts";
import { NoSuchActor } from "./no-such-actor.ts";

/** Tells an agent's actor of a pause, resume or stop that the ledger has decided. Idempotent. */
export const actorTeller =
  (agents: AgentGateway) =>
  async ({ agentId, ...told }: ToldActor): Promise<void> => {
    try {
      await agents.submit(agentId, { kind: "follow_status", ...told });
    } catch (error) {
      // The actor ended with its agent, or an operator terminated it: nothing is left to tell.
      if (!(error instanceof NoSuchActor)) throw error;
    }
  };
