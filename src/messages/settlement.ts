import type { Payment, PaymentTexts, StoredPayment } from "../domain/ledger/payment.ts";
import { approvalWorkflowId } from "./approval.ts";
import type { AgentProfile } from "../domain/agent/state.ts";

/** Names and payloads of the workflow that follows a payment on its rail until nothing more can become of it. */

export const SETTLEMENT_WORKFLOW = "settlement";
export const settlementWorkflowId = (transactionId: string): string => `settlement/${transactionId}`;

export interface SettlementInput {
  readonly profile: AgentProfile;
  readonly payment: Payment;
  /** Number of earlier polls of the rail; carried over continue-as-new, and sets the interval. */
  readonly polls: number;
}

/** The workflow that has a payment's texts: its approval's, also after its end, or the one that follows it on its rail. */
export const waitingWorkflowId = ({ approval, phase, request }: StoredPayment): string =>
  approval === null || phase === "following"
    ? settlementWorkflowId(request.transactionId)
    : approvalWorkflowId(approval.id);

export interface SettlementStateView extends Pick<Payment, "status" | "phase"> {
  readonly texts: PaymentTexts;
}

/** Seconds between two polls of the rail, by how often it was polled; the last one repeats. */
export const SETTLEMENT_POLL_SECONDS = [1, 1, 2, 2, 5, 10, 30, 60, 300, 900] as const;
