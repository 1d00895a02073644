import { isAmbiguous } from "../../src/client/retries.ts";
import type { Answer, Refused } from "../../src/client/types.ts";
import { api } from "./api.ts";
import type { Approval } from "./words.ts";

/** The service ends every request within 5 s: what was lost and does not show by then has not arrived. */
const SHOWS_WITHIN_MS = 6_000;
const POLL_MS = 1_500;

export type Decision = { readonly how: "approve" } | { readonly how: "deny"; readonly feedback: string };

export type Decided =
  /** It counts: so the approval stands now. */
  | { readonly state: "done"; readonly approval: Approval }
  /** Another decision, or the end of its time, came first. */
  | { readonly state: "late"; readonly approval: Approval | null }
  /** The payment still waits: it is to be decided again, by a person. */
  | { readonly state: "not arrived" }
  | { readonly state: "refused"; readonly refused: Refused };

/**
 * Puts a decision to the service, once. A refusal is final; whatever else is no answer to rely on, and then it is read what became of
 * it before anything is offered again; `onLost` is called.
 */
export async function decide(
  id: string,
  decision: Decision,
  onLost: () => void = () => undefined,
): Promise<Decided> {
  const answer: Answer<{ readonly approval: Approval }> =
    decision.how === "approve"
      ? await api.approveApproval({ id })
      : await api.denyApproval({ id, body: { feedback: decision.feedback } });
  if (answer.ok) return { state: "done", approval: answer.value.approval };
  const { refused } = answer;
  if (refused.code === "APPROVAL_ALREADY_RESOLVED" || refused.code === "APPROVAL_EXPIRED") {
    const now = await api.getApproval({ id });
    return { state: "late", approval: now.ok ? now.value.approval : null };
  }
  if (!isAmbiguous(refused)) return { state: "refused", refused };
  onLost();
  return await look(id);
}

/** What became of a decision whose answer was lost. */
async function look(id: string): Promise<Decided> {
  const lostAt = Date.now();
  for (;;) {
    const began = Date.now();
    const answer = await api.getApproval({ id });
    if (answer.ok && answer.value.approval.resolution !== undefined) {
      return { state: "done", approval: answer.value.approval };
    }
    if (answer.ok && began - lostAt > SHOWS_WITHIN_MS) return { state: "not arrived" };
    if (!answer.ok && !isAmbiguous(answer.refused)) return { state: "refused", refused: answer.refused };
    await new Promise((resolve) => setTimeout(resolve, POLL_MS));
  }
}
