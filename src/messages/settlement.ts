import type { Payment, PaymentTexts, StoredPayment } from "../domain/ledger/payment.ts";
import { approvalWorkflowId } from "./approval.ts";
import type { AgentProfile } from "../domain/agent/state.ts";

/** Names and payloads of the workflow that follows a payment on its rail until the payment is final. */

export const SETTLEMENT_WORKFLOW = "settlement";
export const settlementWorkflowId = (transactionId: string): string => `settlement/${transactionId}`;

export interface SettlementInput {
  readonly profile: AgentProfile;
  readonly payment: Payment;
  /** Number of earlier polls of the rail, which sets the interval; carried over continue-as-new. */
  readonly polls: number;
}

/** Returns the workflow that holds a payment's texts: its approval's, even ended, or its settlement's. */
export const waitingWorkflowId = ({ approval, phase, request }: StoredPayment): string =>
  approval === null || phase === "following"
    ? settlementWorkflowId(request.transactionId)
    : approvalWorkflowId(approval.id);

export interface SettlementStateView extends Pick<Payment, "status" | "phase"> {
  readonly texts: PaymentTexts;
}

/** Seconds between two polls of the rail, by the number of polls; the last one repeats. */
export const SETTLEMENT_POLL_SECONDS = [1, 1, 2, 2, 5, 10, 30, 60, 300, 900] as const;
