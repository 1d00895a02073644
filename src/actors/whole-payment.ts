import type { PaymentProofs, PaymentWorkflows, Projections } from "../payments/ports.ts";
import type { LedgerReply } from "../domain/ledger/commands.ts";
import {
  hasTexts,
  type Payment,
  type PaymentTexts,
  type StoredPayment,
  withTexts,
} from "../domain/ledger/payment.ts";
import type { AgentProfile } from "../domain/agent/state.ts";
import { ActorUnavailable } from "./actor-unavailable.ts";

export interface TextSources {
  readonly projections: Pick<Projections, "textsOf">;
  readonly proofs: Pick<PaymentProofs, "isAccepted">;
  readonly workflows: Pick<PaymentWorkflows, "textsOf">;
}

/** Neither its record nor a workflow has the texts that the payment was accepted with, if it ever was. */
export class TextsLost extends ActorUnavailable {
  override readonly name = "TextsLost";
}

/**
 * The payment with the texts that it was accepted with: from its record where its ledger has dropped them, and where that was lost
 * or changed, from the workflow that waits with the payment. `read`: the texts if the caller has just read a record. Throws
 * `TextsLost`.
 */
export async function wholePayment(
  { projections, proofs, workflows }: TextSources,
  payer: Pick<AgentProfile, "organizationId" | "agentId">,
  payment: StoredPayment,
  read: PaymentTexts | null = null,
): Promise<Payment> {
  if (hasTexts(payment)) return payment;
  const { transactionId } = payment.request;
  const sources = [() => read, () => projections.textsOf(transactionId), () => workflows.textsOf(payment)];
  for (const source of sources) {
    const texts = await source();
    const whole = texts === null ? null : withTexts(payment, texts);
    if (whole !== null && proofs.isAccepted(payer, whole)) return whole;
  }
  throw new TextsLost(`nothing has the texts of ${transactionId} any more`);
}

/** A ledger's reply with `whole` payments. */
export async function wholeReply(
  reply: LedgerReply,
  whole: (payment: StoredPayment) => Promise<Payment>,
): Promise<LedgerReply<Payment>> {
  if (reply.kind !== "payment" && reply.kind !== "replayed") return reply;
  return { ...reply, payment: await whole(reply.payment) };
}
