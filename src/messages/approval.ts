import type { ApprovalResolution, PaymentTexts, StoredPayment } from "../domain/ledger/payment.ts";
import type { AgentProfile } from "../domain/agent/state.ts";

/** Names and payloads of the workflow that waits with a held payment. */

export const APPROVAL_WORKFLOW = "approval";
export const approvalWorkflowId = (approvalId: string): string => `approval/${approvalId}`;

export interface ApprovalInput {
  readonly profile: AgentProfile;
  readonly approvalId: string;
  readonly transactionId: string;
  readonly amountCents: number;
  /** Copy of the texts in the payment's record. */
  readonly texts: PaymentTexts;
  readonly flaggedByRuleTypes: readonly string[];
  readonly expiresAt: number;
}

/** Signals that the payment no longer waits, and how its approval ended. */
export const RESOLVED_SIGNAL = "resolved";

export type ApprovalEnd = Exclude<ApprovalResolution, "executing">;

/** Returns how an approval ended, `approved` even before the rail responds; null if still on hold. */
export function approvalEndOf({ approval }: StoredPayment): ApprovalEnd | null {
  const resolution = approval?.resolution ?? null;
  return resolution === "executing" ? "approved" : resolution;
}

export interface ApprovalStateView {
  readonly state: "pending" | ApprovalEnd;
  readonly expiresAt: string;
  readonly transactionId: string;
  readonly texts: PaymentTexts;
}
