import type { Payment, RailOutcome } from "../src/domain/agent/payment.ts";
import { settle } from "../src/domain/agent/payment.ts";
import type { Leave } from "../src/domain/agent/leave.ts";
import type { AgentProfile } from "../src/domain/agent/state.ts";
import type { Addressed } from "../src/domain/budget/commands.ts";
import { confirmationOf } from "../src/messages/agent.ts";
import { heeded } from "./budgets.ts";
import { createPaymentEffects, type PaymentEffectDependencies, Superseded } from "./effects.ts";
import type { Activities, Delivered } from "./types.ts";

export type PaymentActivityDependencies = PaymentEffectDependencies;

export type PaymentActivities = Pick<
  Activities,
  "carryOutPayment" | "reportToBudget" | "tellAgents" | "expireApproval" | "executeApproved" | "followPayment"
>;

/**
 * How long one look after a payment waits for its end on the rail. Well below the activity's own bound; the workflow looks
 * again.
 */
const SETTLE_MS = 8_000;

/**
 * The activities that move payments, over ports only: the worker runs them over engines, the simulation over counterparts
 * of its own.
 */
export function createPaymentActivities(dependencies: PaymentActivityDependencies): PaymentActivities {
  const { agents, caps, clock, proofs, rails } = dependencies;
  const effects = createPaymentEffects(dependencies);

  async function confirm(
    profile: AgentProfile,
    payment: Payment,
    outcome: { result: RailOutcome; at: number } | null,
  ): Promise<void> {
    const { transactionId } = payment.request;
    const { revision } = payment;
    await agents.submit(profile.agentId, { kind: "confirm", transactionId, revision, outcome });
  }

  /** An approved payment, asked about and sent. The agent is asked for what the budget is to hear of it now. */
  async function executeApproved(profile: AgentProfile, payment: Payment): Promise<Payment> {
    const asks = (payment.ask ?? null) !== null;
    const reply = asks ? await agents.submit(profile.agentId, { kind: "read_report" }) : null;
    const report = reply?.kind === "report" ? reply.report : null;
    const done = await effects.carryOutAndTell(profile, payment, "approval", report);
    await agents.submit(profile.agentId, confirmationOf(done));
    return done.payment;
  }

  /** What its agent has heard the end of already, or lets go of, is not set in motion once more. */
  async function leaveToGoOn(profile: AgentProfile, payment: Payment): Promise<Leave> {
    try {
      return await effects.askToSend(profile, payment);
    } catch (error) {
      if (error instanceof Superseded) return "wait";
      throw error;
    }
  }

  async function tell(delivery: Addressed): Promise<Delivered[]> {
    const { agentId, asks, epoch } = delivery;
    try {
      return [{ agentId, epoch, asks, report: await heeded(agents, delivery) }];
    } catch {
      // It is told another time.
      return [];
    }
  }

  return {
    async carryOutPayment({ executor = "server", payment, profile, report = null }) {
      try {
        return await effects.carryOutAndTell(profile, payment, executor, report);
      } catch (error) {
        if (!(error instanceof Superseded)) throw error;
        return { transactionId: payment.request.transactionId, revision: 0, outcome: null, payment };
      }
    },

    async reportToBudget({ profile, report }) {
      await caps.hear(profile, report);
    },

    tellAgents: async ({ deliveries }) => (await Promise.all(deliveries.map(tell))).flat(),

    async expireApproval({ profile, transactionId }) {
      const reply = await agents.submit(profile.agentId, { kind: "expire", transactionId });
      if (reply.kind !== "payment") return null;
      if (reply.payment.phase === "sending") return reply.payment;
      await effects.recordAndTell(profile, reply.payment);
      await confirm(profile, reply.payment, null);
      return reply.payment;
    },

    async executeApproved({ profile, payment }) {
      try {
        return await executeApproved(profile, payment);
      } catch (error) {
        if (!(error instanceof Superseded)) throw error;
        const { transactionId } = payment.request;
        const reply = await agents.submit(profile.agentId, { kind: "read_payment", transactionId });
        // Nothing of it is open any more: it has come to its end, and who died before saying so has told of it.
        if (reply.kind !== "payment") return payment;
        return reply.payment.phase === "sending" ? executeApproved(profile, reply.payment) : reply.payment;
      }
    },

    async followPayment({ profile, payment }) {
      if (!proofs.isAccepted(profile, payment)) {
        proofs.onForged("payment", profile, payment);
        return { ...payment, phase: "done" };
      }
      const leave = () => leaveToGoOn(profile, payment);
      const result = await rails[payment.request.rail].settle(profile, payment, SETTLE_MS, leave);
      if (result === null) return payment;
      const at = clock().getTime();
      const followed = settle(payment, result, at);
      if (followed === payment) return payment;
      const { transactionId } = payment.request;
      const outcome = { result, at };
      await effects.release(profile, payment, {
        transactionId,
        revision: followed.revision,
        outcome,
        payment: followed,
      });
      await effects.recordAndTell(profile, followed);
      await confirm(profile, followed, outcome);
      return followed;
    },
  };
}
