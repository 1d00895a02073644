import type { Decided } from "./decisions.ts";
import { asWritten, onTheWall } from "./format.ts";
import type { Approval, Transaction } from "./words.ts";

export interface Outcome {
  readonly title: string;
  readonly text?: string;
  readonly feedback?: string | null;
}

/**
 * Returns the outcome of a resolved approval. `transaction` gives the reason if the approval has none; null while it is
 * not read yet.
 */
export function outcomeOf(approval: Approval, transaction: Transaction | null, myId: string): Outcome {
  const { feedback, resolution, resolvedBy } = approval;
  const by = resolvedBy ? ` by ${resolvedBy.userId === myId ? "you" : asWritten(resolvedBy.name)}` : "";
  const at = onTheWall(approval.resolvedAt ?? approval.createdAt);
  const reason = transaction?.denialReason ?? "";
  switch (resolution) {
    case "approved":
      return transaction?.status === "reversed"
        ? { title: "Paid, then reversed", text: `Approved${by}, ${at}. The money came back afterwards.` }
        : { title: "Approved and paid", text: `Approved${by}, ${at}.` };
    case "executing":
      return {
        title: "Approved, on its way",
        text: `Approved${by}. The payment is not final yet; this page follows it.`,
      };
    case "failed":
      return {
        title: "Approved, but not paid",
        text: `Approved${by}, ${at}, but the payment failed. ${reason}`.trim(),
      };
    case "denied":
      return by === ""
        ? { title: "Withdrawn", text: `${reason} Nothing was paid (${at}).`.trim() }
        : {
            title: "Denied",
            text: `Denied${by}, ${at}. Nothing was paid. The agent reads:`,
            feedback: feedback ?? null,
          };
    case "expired":
    case undefined:
      return { title: "Expired", text: `Nobody decided in time (${at}). Nothing was paid.` };
  }
}

/** Returns the outcome for a person whose decision came too late or differed. */
export function outcomeFor(
  approval: Approval,
  transaction: Transaction | null,
  myId: string,
  decided: Decided | null,
): Outcome {
  const outcome = outcomeOf(approval, transaction, myId);
  const wasTooLate = decided?.state === "late" && approval.resolvedBy?.userId !== myId;
  return wasTooLate
    ? { ...outcome, text: `Your decision came too late. ${outcome.text ?? ""}`.trim() }
    : outcome;
}

export const NO_SUCH = (organization: string): Outcome => ({
  title: "Payment not found",
  text:
    `${asWritten(organization)} has no payment on hold under this address. Either the address is not complete, or the payment is ` +
    "another organization’s: then sign out, and sign in with your account there.",
});
