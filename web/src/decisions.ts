import { refusedOf } from "../../src/client/answers.ts";
import { isAmbiguous } from "../../src/client/retries.ts";
import type { Answer, Input, Refused } from "../../src/client/types.ts";
import { api } from "./api.ts";
import type { Approval } from "./words.ts";

/** Time after which a lost request has not arrived if it does not show: the service ends every request within 5 s. */
const LOST_CUTOFF_MS = 6_000;
const POLL_INTERVAL_MS = 1_500;

export type Decision = { readonly how: "approve" } | { readonly how: "deny"; readonly feedback: string };

export type Decided =
  /** The decision was accepted; the approval as it is now. */
  | { readonly state: "done"; readonly approval: Approval }
  /** Another decision or the expiry came first. */
  | { readonly state: "late"; readonly approval: Approval | null }
  /** The payment still waits. A person must decide again. */
  | { readonly state: "not arrived" }
  | { readonly state: "refused"; readonly refused: Refused };

/**
 * Sends a decision once. A refusal is final. After any other failure `onLost` is called, and the outcome is read before
 * another decision is offered.
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

/** Maximum decisions in one request. */
const BATCH = 200;

/**
 * Sends one decision on many payments, 200 in a request. Stops at a request that was not carried out as a whole:
 * payments without an outcome were not sent.
 */
export async function decideMany(
  ids: readonly string[],
  decision: Decision,
): Promise<ReadonlyMap<string, Decided>> {
  const ended = new Map<string, Decided>();
  for (let at = 0; at < ids.length; at += BATCH) {
    const batch = await decideBatch(ids.slice(at, at + BATCH), decision);
    for (const [id, decided] of batch) ended.set(id, decided);
    if ([...batch.values()].some(({ state }) => state === "refused" || state === "not arrived")) break;
  }
  return ended;
}

type Decisions = Input<"decideApprovals">["body"]["decisions"];

async function decideBatch(ids: readonly string[], decision: Decision): Promise<Map<string, Decided>> {
  const words = decision.how === "deny" ? { feedback: decision.feedback } : {};
  const decisions: Decisions = ids.map((id) => ({ id, decision: decision.how, ...words }));
  const answer = await api.decideApprovals({ body: { decisions } });
  if (!answer.ok && !isAmbiguous(answer.refused)) {
    const { refused } = answer;
    return new Map(ids.map((id) => [id, { state: "refused", refused }]));
  }
  const ended = new Map<string, Decided>();
  for (const { approval, error, id } of answer.ok ? answer.value.results : []) {
    if (approval !== undefined) ended.set(id, { state: "done", approval });
    else if (error?.error === "APPROVAL_ALREADY_RESOLVED" || error?.error === "APPROVAL_EXPIRED")
      ended.set(id, { state: "late", approval: null });
    else if (error?.error === "NOT_FOUND")
      ended.set(id, { state: "refused", refused: refusedOf(404, new Headers(), error) });
  }
  const lost = ids.filter((id) => !ended.has(id));
  for (const [id, decided] of await lookAtMany(lost)) ended.set(id, decided);
  return ended;
}

/**
 * Looks up decisions once no lost one can arrive any more. The first is read alone, and the others only after the
 * service responds.
 */
async function lookAtMany(ids: readonly string[]): Promise<readonly (readonly [string, Decided])[]> {
  const [first, ...others] = ids;
  if (first === undefined) return [];
  const lostAt = Date.now();
  await new Promise((resolve) => setTimeout(resolve, LOST_CUTOFF_MS + 1));
  const read = [[first, await look(first, lostAt)]] as const;
  return [...read, ...(await Promise.all(others.map(async (id) => [id, await look(id, lostAt)] as const)))];
}

/** Looks up the outcome of a decision whose response was lost. */
async function look(id: string, lostAt = Date.now()): Promise<Decided> {
  for (;;) {
    const began = Date.now();
    const answer = await api.getApproval({ id });
    if (answer.ok && answer.value.approval.resolution !== undefined) {
      return { state: "done", approval: answer.value.approval };
    }
    if (answer.ok && began - lostAt > LOST_CUTOFF_MS) return { state: "not arrived" };
    if (!answer.ok && !isAmbiguous(answer.refused) && answer.refused.code !== "RATE_LIMITED") {
      return { state: "refused", refused: answer.refused };
    }
    await new Promise((resolve) => setTimeout(resolve, POLL_INTERVAL_MS));
  }
}
