import type { Payment, RailOutcome } from "../src/domain/agent/payment.ts";
import { settle } from "../src/domain/agent/payment.ts";
import type { AgentProfile } from "../src/domain/agent/state.ts";
import type { CarriedOut } from "../src/messages/agent.ts";
import type { Clock, PaymentWorkflows, Projections, Rails } from "./ports.ts";

export interface EffectDependencies {
  readonly rails: Rails;
  readonly projections: Projections;
  readonly workflows: PaymentWorkflows;
  readonly clock: Clock;
}

/** Calls to a rail, with the same transaction id, before it counts as not answering. A slow one is not called twice. */
const RAIL_CALLS_MAX = { instant: 2, eventual: 1 } as const;

export interface PaymentEffects {
  /**
   * Does everything that a payment asks for at its revision: calls the rail if it is this executor's turn, starts or
   * tells the workflows that wait with it, writes the projection. Every step is idempotent by transaction id, so the
   * server, the actor's sweep and the workflows may all do it, at the same time too. Throws when a step could not be
   * done; nothing is confirmed then, and whoever comes next does it again.
   */
  carryOut(profile: AgentProfile, payment: Payment, executor: Payment["executor"]): Promise<CarriedOut>;
  /** Writes a payment down as it is, without calling anyone. */
  record(profile: AgentProfile, payment: Payment): Promise<void>;
}

export function createPaymentEffects(dependencies: EffectDependencies): PaymentEffects {
  const { rails, projections, workflows, clock } = dependencies;

  async function send(profile: AgentProfile, payment: Payment): Promise<RailOutcome> {
    const rail = rails[payment.request.rail];
    for (let call = 1; ; call += 1) {
      try {
        return await rail.send(profile, payment);
      } catch (error) {
        if (call >= RAIL_CALLS_MAX[rail.capabilities.finality]) throw error;
      }
    }
  }

  async function tellWorkflows(profile: AgentProfile, payment: Payment): Promise<void> {
    if (payment.phase === "held") await workflows.startApproval(profile, payment);
    if (leavesHold(payment)) await workflows.tellApproval(profile, payment);
    if (payment.phase === "following") await workflows.startSettlement(profile, payment);
  }

  return {
    async carryOut(profile, before, executor) {
      const turn = before.phase === "sending" && before.executor === executor;
      const result = turn ? await send(profile, before) : null;
      const outcome = result === null ? null : { result, at: clock().getTime() };
      const payment = outcome === null ? before : settle(before, outcome.result, outcome.at);
      await Promise.all([tellWorkflows(profile, payment), projections.writePayment(profile, payment)]);
      const { transactionId } = payment.request;
      return { transactionId, revision: payment.revision, outcome, payment };
    },
    record: (profile, payment) => projections.writePayment(profile, payment),
  };
}

/** The revision at which a held payment was resolved; later ones come from the approval workflow itself. */
const leavesHold = (payment: Payment): boolean => payment.approval !== null && payment.revision === 2;
