import { type AgentDocument, profileOf } from "../../src/store/documents.ts";
import { detachEverywhere } from "../../src/rails/detach.ts";
import type { Detachment } from "../../src/payments/ports.ts";
import { withTimeout } from "../../src/lib/with-timeout.ts";
import type { AgentReply } from "../../src/domain/agent/commands.ts";
import type { Archiver, MachineArchiver } from "../../src/domain/agent/archive.ts";
import { refusal } from "../../src/domain/errors.ts";
import { ok, refused } from "../../src/domain/result.ts";
import { NoSuchActor } from "../../src/actors/no-such-actor.ts";
import { ActorUnavailable } from "../../src/actors/actor-unavailable.ts";
import type { Deadline } from "../../src/lib/deadline.ts";
import type { ManagementPrincipal } from "../../src/identity/principals.ts";
import { agentView, walletView } from "../../src/views/views.ts";
import { agentsIn } from "./agent-records.ts";
import { awaitFlush } from "../../src/actors/catch-up.ts";
import type { HandlerDependencies } from "./dependencies.ts";
import type { Handler } from "./types.ts";

/** Timeout for reading the wallet's balance in a machine's archive. */
const BALANCE_TIMEOUT_MS = 1_000;

/**
 * Archives an agent. Its actor decides (src/domain/agent/archive.ts), then the project's ledger closes the account. The
 * follow-up (release holds, remove the key from the record, detach the wallet) is tried here at once, and guaranteed by
 * actor and ledger.
 */
export function archiveAgentHandler(dependencies: HandlerDependencies): Handler<"archiveAgent"> {
  const { agents, collections, ledgers, logger, payments, rails } = dependencies;
  const current = agentsIn(collections);

  async function balanceOf(agent: AgentDocument): Promise<MachineArchiver["balance"]> {
    try {
      const reading = Object.values(rails).map((rail) => rail.balance(profileOf(agent)));
      const balances = await withTimeout(BALANCE_TIMEOUT_MS, Promise.all(reading));
      if (balances.some(({ kind }) => kind === "unreadable")) return "unreadable";
      return balances.some((balance) => balance.kind === "cents" && balance.cents !== 0)
        ? "not_zero"
        : "zero";
    } catch {
      return "unreadable";
    }
  }

  async function archiverOf(principal: ManagementPrincipal, agent: AgentDocument): Promise<Archiver> {
    if (principal.type === "session") return { type: "user" };
    const { lineageId } = principal;
    return { type: "organization_key", lineageId, balance: await balanceOf(agent) };
  }

  /** Ends the payments that the archive denied: writes their approvals' records and signals their workflows. */
  async function endHeld(agent: AgentDocument, deadline: Deadline): Promise<void> {
    const { _id: agentId } = agent;
    const pending = { agentId, state: "pending" as const };
    const held = await collections.approvals.find(pending, { projection: { transactionId: 1 } }).toArray();
    await Promise.all(
      held.map(async ({ transactionId }) => {
        const reply = await ledgers.submit(agent, { kind: "read_payment", agentId, transactionId });
        if (reply.kind !== "payment" || reply.payment.phase === "held") return;
        await payments.executeResolution(profileOf(agent), reply.payment, deadline);
      }),
    );
  }

  /** Submits the archive. The actor of a fully archived agent has ended; its record answers instead. */
  async function archived(agent: AgentDocument, by: Archiver): Promise<AgentReply> {
    try {
      return await agents.submit(agent._id, { kind: "archive", by });
    } catch (error) {
      if (!(error instanceof NoSuchActor)) throw error;
      const { createdByLineage, lifecycle } = await current(agent._id);
      if (lifecycle !== "archived") throw error;
      const mayKnow = by.type === "user" || createdByLineage === by.lineageId;
      return mayKnow
        ? { kind: "archive", changed: false }
        : { kind: "archive_refused", code: "MACHINE_ARCHIVE_DENIED" };
    }
  }

  async function recorded(target: AgentDocument): Promise<AgentDocument> {
    await awaitFlush(ledgers.flush(target, target._id));
    const agent = await current(target._id);
    // Authentication reads the record, so the response waits until it rejects the key.
    if (agent.lifecycle === "archived") return agent;
    throw new ActorUnavailable("the agent's record does not follow its actor");
  }

  /** Reports the detachment to the actor before the response. Once it is reported, no chain is called again. */
  async function detachAndNotify(agent: AgentDocument): Promise<Detachment> {
    const end = await detachEverywhere(rails, profileOf(agent));
    if (end === "detached") await agents.submit(agent._id, { kind: "confirm_detached" });
    return end;
  }

  /** Returns the wallets that the service may still spend from. A detachment that takes longer is left to the actor. */
  async function detach(agent: AgentDocument, { requestId, spareMs }: Deadline) {
    if (agent.walletDetached) return [];
    try {
      if ((await withTimeout(spareMs, detachAndNotify(agent))) === "detached") return [];
    } catch (err) {
      logger.warn({ requestId, err, agentId: agent._id }, "an archived agent's wallet is not detached yet");
    }
    const wallet = walletView(agent);
    return wallet === null ? [] : [wallet];
  }

  return async (_input, { audit, deadline, principal, target }) => {
    const by = await archiverOf(principal, target);
    const change = { before: { state: target.lifecycle }, after: { state: "archived" } };
    await audit.begin(change);
    const reply = await archived(target, by);
    if (reply.kind === "archive_refused") return refused(refusal(reply.code));
    // The previous status is taken from the record, which may still say active for an agent paused concurrently.
    if (reply.kind === "archive" && reply.changed) {
      audit.change(change.before, change.after);
    }
    const [agent, walletsFailed] = await Promise.all([
      recorded(target),
      detach(target, deadline),
      awaitFlush(endHeld(target, deadline), deadline.spareMs),
    ]);
    const isSettled = walletsFailed.length > 0 || agent.walletDetached;
    const shown = isSettled ? agent : await recorded(target);
    return ok({ body: { agent: agentView(shown), walletsFailed } });
  };
}
