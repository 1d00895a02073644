import type { AgentDocument } from "../../src/store/documents.ts";
import { refusal } from "../../src/domain/errors.ts";
import { layFences } from "../../src/rails/fences.ts";
import { ok, refused, type Result } from "../../src/domain/result.ts";
import { newUuid } from "../../src/lib/ids.ts";
import { agentsFollowing } from "./agent-records.ts";
import type { HandlerDependencies } from "./dependencies.ts";

interface PauseChange {
  readonly shown: AgentDocument;
  /** Whether this call made the change. False if the agent already had this status. */
  readonly changed: boolean;
}

/** Returns a function that pauses or resumes an agent. The project's ledger decides. */
export const agentPausing = ({
  collections,
  ledgers,
  rails,
}: Pick<HandlerDependencies, "collections" | "ledgers" | "rails">) => {
  const following = agentsFollowing(collections, ledgers);
  return async (agent: AgentDocument, kind: "pause" | "resume"): Promise<Result<PauseChange>> => {
    const command = { kind, agentId: agent._id, requestId: newUuid() } as const;
    const { reply, revision } = await ledgers.submitRecorded(agent, command);
    if (reply.kind !== "account_status") return refused(refusal("AGENT_ARCHIVED"));
    // The response waits for the record, because authentication reads a pause there; another caller may have resumed or
    // archived the agent since. It also waits until the rails block payments decided earlier.
    const [shown] = await Promise.all([
      following(agent, revision),
      layFences(rails, reply.fence === null ? [] : [reply.fence]),
    ]);
    return ok({ shown, changed: reply.changed });
  };
};
