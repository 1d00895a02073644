import type { AgentGateway } from "../../activities/ports.ts";
import type { Collections } from "../collections.ts";
import { agentsFollowing } from "../handlers/agent-records.ts";
import type { AgentMailboxes } from "./mailbox.ts";

/** The way to agents' actors through this process's mailboxes, for what has no request of its own. */
export function agentGateway(
  collections: Pick<Collections, "agents">,
  mailboxes: AgentMailboxes,
): AgentGateway {
  const following = agentsFollowing(collections, mailboxes);
  return {
    submit: (agentId, command) => mailboxes.submit(agentId, command),
    async submitAndRecord(agentId, command) {
      const { reply, revision } = await mailboxes.answered(agentId, command);
      await following(agentId, revision);
      return reply;
    },
  };
}
