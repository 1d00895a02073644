import type { Payment, PaymentTexts } from "../domain/ledger/payment.ts";
import type { AgentProfile } from "../domain/agent/state.ts";

/** Names and payloads of the workflow that waits with a payment on hold. */

export const APPROVAL_WORKFLOW = "approval";
export const approvalWorkflowId = (approvalId: string): string => `approval/${approvalId}`;

export interface ApprovalInput {
  readonly profile: AgentProfile;
  readonly approvalId: string;
  readonly transactionId: string;
  readonly amountCents: number;
  /** A copy beside the one in the payment's record. */
  readonly texts: PaymentTexts;
  readonly flaggedByRuleTypes: readonly string[];
  /** Epoch milliseconds. */
  readonly expiresAt: number;
}

/** The agent's actor has resolved the payment: approved (then it is `sending`), denied, cancelled or expired. */
export const RESOLVED_SIGNAL = "resolved";

export interface ApprovalStateView {
  readonly state: "pending" | "approved" | "denied" | "failed" | "expired" | "executing";
  readonly expiresAt: string;
  readonly transactionId: string;
  readonly texts: PaymentTexts;
}

/** The payment once everything that follows from the resolution is done or handed on. */
export type ApprovalResult = Payment;
