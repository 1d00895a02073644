import type { PaymentProofs, PaymentWorkflows, Projections } from "../payments/ports.ts";
import type { LedgerReply } from "../domain/ledger/commands.ts";
import {
  hasTexts,
  type Payment,
  type PaymentTexts,
  type StoredPayment,
  withTexts,
} from "../domain/ledger/payment.ts";
import type { AgentRef } from "../domain/agent/state.ts";
import { ActorUnavailable } from "./actor-unavailable.ts";

export interface TextSources {
  readonly projections: Pick<Projections, "textsOf">;
  readonly proofs: Pick<PaymentProofs, "isAccepted">;
  readonly workflows: Pick<PaymentWorkflows, "textsOf">;
}

/** The texts of an accepted payment are in neither its record nor a workflow. */
export class TextsLost extends ActorUnavailable {
  override readonly name = "TextsLost";
}

/**
 * Returns the payment with the texts that it was accepted with. If its ledger has dropped them, they come from its
 * record; if that was lost or changed, from the workflow that waits with the payment. `read` are texts that the caller
 * has just read. Throws `TextsLost`.
 */
export async function wholePayment(
  { projections, proofs, workflows }: TextSources,
  payer: AgentRef,
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

/** Returns a ledger's reply with its payments completed by `whole`. */
export async function wholeReply(
  reply: LedgerReply,
  whole: (payment: StoredPayment) => Promise<Payment>,
): Promise<LedgerReply<Payment>> {
  if (reply.kind === "authorization")
    return { ...reply, payment: reply.payment === null ? null : await whole(reply.payment) };
  if (reply.kind !== "payment" && reply.kind !== "replayed") return reply;
  return { ...reply, payment: await whole(reply.payment) };
}
