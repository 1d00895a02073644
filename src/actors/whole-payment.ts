import type { PaymentProofs, Projections } from "../payments/ports.ts";
import type { LedgerReply } from "../domain/ledger/commands.ts";
import { hasTexts, type Payment, type StoredPayment, withTexts } from "../domain/ledger/payment.ts";
import type { AgentProfile } from "../domain/agent/state.ts";
import { ActorUnavailable } from "./actor-unavailable.ts";

export interface TextSources {
  readonly projections: Pick<Projections, "textsOf">;
  readonly proofs: Pick<PaymentProofs, "isAccepted">;
}

/**
 * The payment with its texts, from its record where its ledger has dropped them. Throws `ActorUnavailable` where the record is lost or
 * has other texts than were accepted: nothing is done with the payment until an operator has repaired its record.
 */
export async function wholePayment(
  { projections, proofs }: TextSources,
  payer: Pick<AgentProfile, "organizationId" | "agentId">,
  payment: StoredPayment,
): Promise<Payment> {
  if (hasTexts(payment)) return payment;
  const { transactionId } = payment.request;
  const recorded = await projections.textsOf(transactionId);
  const whole = recorded === null ? null : withTexts(payment, recorded);
  if (whole !== null && proofs.isAccepted(payer, whole)) return whole;
  throw new ActorUnavailable(
    `the record of ${transactionId} is ${whole === null ? "lost" : "changed"}: run "npm run admin -- reconcile --repair"`,
  );
}

/** A ledger's reply with `whole` payments. */
export async function wholeReply(
  reply: LedgerReply,
  whole: (payment: StoredPayment) => Promise<Payment>,
): Promise<LedgerReply<Payment>> {
  if (reply.kind !== "payment" && reply.kind !== "replayed") return reply;
  return { ...reply, payment: await whole(reply.payment) };
}
