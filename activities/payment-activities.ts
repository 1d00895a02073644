import { TextsLost, wholePayment } from "../src/actors/whole-payment.ts";
import { FORGED } from "../src/domain/ledger/forged.ts";
import type { Payment, RailOutcome, StoredPayment } from "../src/domain/ledger/payment.ts";
import { perRail, RAILS, settle } from "../src/domain/ledger/payment.ts";
import type { AgentProfile } from "../src/domain/agent/state.ts";

import { approvalEndOf } from "../src/messages/approval.ts";
import type { Execution } from "../src/messages/ledger.ts";
import { Bookings } from "../src/payments/bookings.ts";
import { createPaymentEffects, type PaymentEffectDependencies } from "../src/payments/effects.ts";
import type { ConfirmedLedgers } from "../src/payments/ports.ts";
import { Superseded } from "../src/payments/rail-sender.ts";
import type { Activities, UnfinishedPayment } from "./types.ts";
import { withTimeout } from "../src/lib/with-timeout.ts";

export interface PaymentActivityDependencies extends PaymentEffectDependencies {
  readonly ledgers: ConfirmedLedgers;
  /** Called with the payment or agent that a sweep failed to process and will retry. */
  readonly onSweepFailed: (id: string, error: unknown) => void;
}

export type PaymentActivities = Pick<
  Activities,
  "bookNetworks" | "executePayments" | "expireApproval" | "followPayment" | "playNetworkEffect"
>;

/** Maximum wait of one execution for a payment's end on its rail, well below the activity's timeout. */
const SETTLE_TIMEOUT_MS = 8_000;

/** Timeout for one payment of a sweep, so that it does not delay the others. Well below the activity's timeout. */
const SWEEP_TIMEOUT_MS = 15_000;

/**
 * Creates the activities that move payments. They depend on ports only: the worker runs them over engines, the
 * simulation over its own substitutes.
 */
export function createPaymentActivities(dependencies: PaymentActivityDependencies): PaymentActivities {
  const { clock, ledgers, onSweepFailed, proofs, rails } = dependencies;
  const effects = createPaymentEffects(dependencies);

  async function confirm(
    profile: AgentProfile,
    payment: Payment,
    outcome: { result: RailOutcome; at: number } | null,
  ): Promise<void> {
    const { agentId } = profile;
    const { transactionId } = payment.request;
    const { revision } = payment;
    await ledgers.submit(profile, { kind: "confirm", agentId, transactionId, revision, outcome });
  }

  /**
   * Returns the payment's outcome on its rail; null if there is none, or if the ledger already knows the end and the
   * payment must not be sent again.
   */
  async function settled(profile: AgentProfile, payment: Payment): Promise<RailOutcome | null> {
    const ask = () => effects.requestPermission(profile, payment);
    try {
      return await rails[payment.request.rail].settle(profile, payment, SETTLE_TIMEOUT_MS, ask);
    } catch (error) {
      if (error instanceof Superseded) return null;
      throw error;
    }
  }

  /**
   * Ends a payment whose texts are lost. It cannot be paid and may never have been accepted, so it ends unpaid, or as
   * its rail reports. It is not recorded.
   */
  async function endLost(
    profile: AgentProfile,
    payment: StoredPayment,
  ): Promise<Pick<Execution, "outcome" | "revision">> {
    const { phase, request } = payment;
    if (phase === "done") return { outcome: null, revision: payment.revision };
    proofs.onForged("payment", profile, payment);
    if (phase === "held") {
      const { agentId } = profile;
      const cancel = { kind: "cancel", agentId, transactionId: request.transactionId } as const;
      // The reply lacks the texts as well.
      await ledgers.submit(profile, cancel).catch((error: unknown) => {
        if (!(error instanceof TextsLost)) throw error;
      });
      return { outcome: null, revision: 0 };
    }
    const rail = rails[request.rail];
    // Blocks a process that still has the texts and a permit from sending.
    await rail.fence([{ transactionId: request.transactionId, fence: Number.MAX_SAFE_INTEGER }]);
    const result = (await rail.query(payment)) ?? FORGED;
    return { outcome: { result, at: clock().getTime() }, revision: 0 };
  }

  async function sweep({ payment, profile }: UnfinishedPayment): Promise<Execution> {
    const { transactionId } = payment.request;
    try {
      const execute = async (): Promise<Execution> => {
        const whole = await wholePayment(dependencies, profile, payment);
        const { outcome, revision } = await effects.executeAndPublish(profile, whole);
        return { transactionId, revision, outcome };
      };
      return await withTimeout(SWEEP_TIMEOUT_MS, execute());
    } catch (error) {
      const nothing = { transactionId, revision: 0, outcome: null };
      if (error instanceof Superseded) return nothing;
      if (error instanceof TextsLost) return { ...nothing, ...(await endLost(profile, payment)) };
      onSweepFailed(transactionId, error);
      return { ...nothing, hasFailed: true };
    }
  }

  const bookings = new Bookings({ ...dependencies, effects });

  return {
    async playNetworkEffect({ number, rail, transactionId }) {
      const played = (await rails[rail].network?.play?.(transactionId, number)) ?? "never";
      if (played === "never") return;
      if (played === "not_yet" || (await bookings.book(transactionId)) === null)
        throw new Error(`${transactionId} was not sent yet`);
    },

    async bookNetworks({ since }) {
      const booked = perRail((rail) => bookings.bookSince(rail, new Date(since[rail]), onSweepFailed));
      const until = await Promise.all(RAILS.map(async (rail) => [rail, await booked[rail]] as const));
      return until.reduce((times, [rail, time]) => ({ ...times, [rail]: time.getTime() }), since);
    },

    executePayments: ({ payments }) => Promise.all(payments.map(sweep)),

    async expireApproval({ profile, transactionId }) {
      const { agentId } = profile;
      const reply = await ledgers.submit(profile, { kind: "expire", agentId, transactionId });
      if (reply.kind !== "payment") return null;
      const { payment } = reply;
      // If a resolution came first, the server that requested it or the ledger's sweep executes it.
      if (payment.status === "expired") {
        await effects.recordAndPublish(profile, payment);
        await confirm(profile, payment, null);
      }
      return approvalEndOf(payment);
    },

    async followPayment({ profile, payment }) {
      if (!proofs.isAccepted(profile, payment)) {
        proofs.onForged("payment", profile, payment);
        return { ...payment, phase: "done" };
      }
      const result = await settled(profile, payment);
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
      await effects.recordAndPublish(profile, followed);
      await confirm(profile, followed, outcome);
      return followed;
    },
  };
}
