import type { Db } from "mongodb";
import type { Payment, RailOutcome } from "../src/domain/agent/payment.ts";
import { settle } from "../src/domain/agent/payment.ts";
import type { AgentProfile } from "../src/domain/agent/state.ts";
import { createPaymentEffects, type EffectDependencies } from "./effects.ts";
import { provisionOrganization } from "./organizations.ts";
import type { AgentGateway, DeliveryWindows, LimitMirror } from "./ports.ts";
import { detachEverywhere } from "./rails/detach.ts";
import type { Activities } from "./types.ts";

export interface ActivityDependencies extends EffectDependencies {
  readonly agents: AgentGateway;
  readonly db: Db;
  readonly limits: LimitMirror;
  readonly windows: DeliveryWindows;
}

/**
 * How long one look after a payment waits for its end on the rail. Well below the activity's own bound; the workflow looks
 * again.
 */
const SETTLE_MS = 8_000;

/** The activities over their dependencies; the worker registers them. */
export function createActivities(dependencies: ActivityDependencies): Activities {
  const { agents, clock, db, limits, projections, rails, windows } = dependencies;
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

  return {
    carryOutPayment: ({ profile, payment }) => effects.carryOut(profile, payment, "server"),

    writeAgentSummary: ({ agentId, summary }) => projections.writeAgentSummary(agentId, summary),

    async expireApproval({ profile, transactionId }) {
      const reply = await agents.submit(profile.agentId, { kind: "expire", transactionId });
      if (reply.kind !== "payment") return null;
      if (reply.payment.phase === "sending") return reply.payment;
      await effects.record(profile, reply.payment);
      await confirm(profile, reply.payment, null);
      return reply.payment;
    },

    async executeApproved({ profile, payment }) {
      const done = await effects.carryOut(profile, payment, "approval");
      await confirm(profile, done.payment, done.outcome);
      return done.payment;
    },

    async followPayment({ profile, payment }) {
      const result = await rails[payment.request.rail].settle(profile, payment, SETTLE_MS);
      if (result === null) return payment;
      const at = clock().getTime();
      const followed = settle(payment, result, at);
      if (followed === payment) return payment;
      await effects.record(profile, followed);
      await confirm(profile, followed, { result, at });
      return followed;
    },

    mirrorLimits: ({ agentId, policy, policyVersion }) => limits.mirror(agentId, policy, policyVersion),

    closeDeliveryWindow: ({ agentId }) => windows.close(agentId),

    async detachWallet({ profile }) {
      const end = await detachEverywhere(rails, profile);
      if (end === "pending") throw new Error("the wallet is not detached yet");
    },

    provisionOrganization: (input) => provisionOrganization(db, input, clock()),
  };
}
