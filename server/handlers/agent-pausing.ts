import type { AgentDocument } from "../../src/store/documents.ts";
import type { CommandOf } from "../../src/domain/ledger/commands.ts";
import { refusal } from "../../src/domain/errors.ts";
import { layFences } from "../../src/rails/fences.ts";
import { ok, refused, type Result } from "../../src/domain/result.ts";
import { CallerGone } from "../../src/actors/actor-unavailable.ts";
import type { Deadline } from "../../src/lib/deadline.ts";
import { newUuid } from "../../src/lib/ids.ts";
import { accountsOf } from "./agent-accounts.ts";
import { agentsFollowing } from "./agent-records.ts";
import type { HandlerDependencies } from "./dependencies.ts";

interface PauseChange {
  readonly shown: AgentDocument;
  /** Whether this call made the change. False if the agent already had this status. */
  readonly changed: boolean;
}

type Dependencies = Pick<HandlerDependencies, "actors" | "clock" | "collections" | "ledgers" | "rails">;

/** Returns functions that pause and resume an agent. The project's ledger decides. */
export function agentPausing({ actors, clock, collections, ledgers, rails }: Dependencies) {
  const accountOf = accountsOf({ actors, collections });
  const following = agentsFollowing(collections, ledgers);

  async function change(
    agent: AgentDocument,
    command: CommandOf<"pause" | "resume">,
  ): Promise<Result<PauseChange>> {
    const { reply, revision } = await ledgers.submitRecorded(agent, { ...command, requestId: newUuid() });
    if (reply.kind === "paused_again") return refused(PAUSED_AGAIN);
    if (reply.kind !== "account_status") return refused(refusal("AGENT_ARCHIVED"));
    // The response waits for the record, because authentication reads a pause there; another caller may have resumed or
    // archived the agent since. It also waits until the rails block payments decided earlier.
    const [shown] = await Promise.all([
      following(agent, revision),
      layFences(rails, reply.fence === null ? [] : [reply.fence]),
    ]);
    return ok({ shown, changed: reply.changed });
  }

  return {
    pause: (agent: AgentDocument) => change(agent, { kind: "pause", agentId: agent._id }),

    /** Ends the pause that is in force while the caller waits: a process that stalls does not undo a later stop. */
    async resume(agent: AgentDocument, deadline: Deadline): Promise<Result<PauseChange>> {
      const { pausedAt } = await accountOf(agent, { now: clock().getTime() });
      if (!deadline.isAwaited) throw new CallerGone("the caller left before the agent was resumed");
      return change(agent, { kind: "resume", agentId: agent._id, pausedAt });
    },
  };
}

const PAUSED_AGAIN = refusal(
  "SERVICE_UNAVAILABLE",
  "The agent was paused again at the same time, and stays paused; repeat the call to resume it.",
  { retryAfterSeconds: 1 },
);
