import type { ApprovalResolution, PaymentTexts, StoredPayment } from "../domain/ledger/payment.ts";
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

/** Tells the workflow that the payment no longer waits, and how its approval has ended. */
export const RESOLVED_SIGNAL = "resolved";

/** State that an approval's workflow ends in. */
export type ApprovalEnd = Exclude<ApprovalResolution, "executing">;

/** `approved` also where the rail has not answered yet, since the workflow does not wait for it; null: still on hold. */
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
