import type { AgentDocument } from "../../src/store/documents.ts";
import { NoSuchActor } from "../../src/actors/no-such-actor.ts";
import { isDeliverable } from "../../src/domain/agent/access.ts";
import type { AgentReply } from "../../src/domain/agent/commands.ts";
import { refusal } from "../../src/domain/errors.ts";
import { ok, refused } from "../../src/domain/result.ts";
import type { ManagementPrincipal } from "../../src/identity/principals.ts";
import { firstKeyId } from "../../src/domain/api-key.ts";
import { agentView } from "../../src/views/views.ts";
import { mcpConfigBlock } from "../mcp/config-block.ts";
import type { HandlerDependencies } from "./dependencies.ts";
import type { Handler } from "./types.ts";

type CreateReply = Awaited<ReturnType<Handler<"createAgent">>>;

export interface NewAgent {
  readonly record: AgentDocument;
  readonly apiKey: string;
  /** Null if the key is not delivered again. */
  readonly sealed: string | null;
}

/**
 * Builds the responses to creates of agents. The key is in the first response, and in a machine's replays while its
 * delivery window is open; never after that.
 */
export function createAgentAnswers({
  agents,
  clock,
  collections,
  keyDeliveries,
  mcpUrl,
  windows,
}: HandlerDependencies) {
  const answer = answerWith(mcpUrl);

  /**
   * Returns the response to a create that was just committed. It delivers the key, unless the create took so long that
   * the window has ended.
   */
  function firstAnswer({ apiKey, record }: NewAgent): CreateReply {
    const isTooLate = !isStillDeliverable(record, clock());
    return ok({
      body: isTooLate ? { ...answer(record, null), keyDelivery: "expired" } : answer(record, apiKey),
    });
  }

  /**
   * Asks the actor to prove non-delivery; null if the agent is archived and its actor has ended, in which case nothing
   * is delivered any more.
   */
  async function provenBy(agentId: string, lineageId: string): Promise<AgentReply | null> {
    try {
      return await agents.submit(agentId, { kind: "prove_non_delivery", lineageId });
    } catch (error) {
      if (!(error instanceof NoSuchActor)) throw error;
      const agent = await collections.agents.findOne({ _id: agentId });
      if (agent?.lifecycle === "archived") return null;
      throw error;
    }
  }

  /**
   * Whether the key is proven undelivered. The proof is in the actor before the response is sent; from then on no
   * server can deliver the key, whatever its clock says. False while the window is open by the actor's time.
   */
  async function isProvenUndelivered(agent: AgentDocument, lineageId: string): Promise<boolean> {
    const reply = await provenBy(agent._id, lineageId);
    if (reply !== null && (reply.kind !== "non_delivery" || !reply.windowOver)) return false;
    // The actor's timer also closes the window, now or soon. An agent created by a person has no window.
    if ((agent.keyDeliverableUntil ?? null) !== null) await windows.close(agent._id);
    return true;
  }

  async function replayed(
    agent: AgentDocument,
    principal: ManagementPrincipal,
    idempotencyKey: string | undefined,
  ): Promise<CreateReply> {
    if (principal.type === "session" || idempotencyKey === undefined) return again(answer(agent, null));
    const until = agent.keyDeliverableUntil ?? null;
    if (until !== null && isDeliverable(until.getTime(), clock().getTime())) {
      if (agent.key?.id !== firstKeyId(agent._id) || agent.lifecycle === "archived") {
        return again(answer(agent, null));
      }
      const apiKey = await keyDeliveries.open(agent._id, idempotencyKey, until);
      if (apiKey !== null) return again(answer(agent, apiKey));
      return again({ ...answer(agent, null), keyDelivery: "expired" });
    }
    if (await isProvenUndelivered(agent, principal.lineageId)) {
      return again({ ...answer(agent, null), keyDelivery: "expired" });
    }
    return refused(refusal("CREATE_RETRYABLE", undefined, { retryAfterSeconds: 1 }));
  }

  return { firstAnswer, replayed };
}

/** Whether a machine's key may still be delivered. A person's key is delivered once, at any time. */
const isStillDeliverable = (
  { keyDeliverableUntil = null, createdByLineage }: AgentDocument,
  now: Date,
): boolean =>
  keyDeliverableUntil === null
    ? createdByLineage === null
    : isDeliverable(keyDeliverableUntil.getTime(), now.getTime());

const answerWith = (mcpUrl: string) => (agent: AgentDocument, apiKey: string | null) => ({
  agent: agentView(agent),
  apiKey,
  mcpConfigBlock: apiKey === null ? null : mcpConfigBlock(mcpUrl, apiKey),
});

const again = <B>(body: B) => ok({ status: 200 as const, body });
