import { comparedName } from "../rules/rules.ts";
import type { PaymentRules } from "../rules/checks.ts";
import type { Payment, PaymentRequest } from "./payment.ts";
import type { AgentState, RememberedKey } from "./state.ts";

/** Which of an agent's payments are like another: rail, recipient as it is compared, and amount. */

/** The parts of a payment that its likeness follows from. */
export type Likeness = Pick<PaymentRequest, "rail" | "recipient" | "amountCents" | "likenessHash">;

/** Denied payments are like none. */
const LIKE_NONE = "";

/**
 * What is remembered of a payment under its idempotency key. One that came without its likeness, from a server that did
 * not know of it, is remembered without.
 */
export function rememberedKey({ createdAt, request, status }: Payment, closedAs: number): RememberedKey {
  const { keyHash: _keyHash, likenessHash, payloadHash, transactionId } = request;
  if (likenessHash === undefined) return [payloadHash, transactionId, closedAs];
  const likeness = status === "denied" ? LIKE_NONE : likenessHash;
  return [payloadHash, transactionId, closedAs, createdAt, likeness];
}

interface LikePayments {
  /** When the newest one was made; null: there is none. */
  readonly newestAt: number | null;
  /** Among the payments closed through this one are some of unknown likeness: the projection has them. 0: none. */
  readonly unknownThrough: number;
}

/** The like payments among those that the actor remembers, denied ones left out. */
export function likePayments(state: AgentState, payment: Likeness): LikePayments {
  let newestAt: number | null = null;
  let unknownThrough = 0;
  for (const [, transactionId, closedAs, createdAt, likeness] of Object.values(state.keys)) {
    const madeAt =
      createdAt === undefined
        ? madeLike(state.open[transactionId]?.payment, payment)
        : likeness === payment.likenessHash
          ? createdAt
          : null;
    if (createdAt === undefined) unknownThrough = Math.max(unknownThrough, closedAs);
    if (madeAt !== null) newestAt = Math.max(newestAt ?? madeAt, madeAt);
  }
  return { newestAt, unknownThrough };
}

/** When a like payment of which the actor has more than its key was made. */
function madeLike(open: Payment | undefined, payment: Likeness): number | null {
  if (open === undefined || open.status === "denied") return null;
  const { likenessHash } = open.request;
  const isLike =
    likenessHash === undefined || payment.likenessHash === undefined
      ? isSame(open.request, payment)
      : likenessHash === payment.likenessHash;
  return isLike ? open.createdAt : null;
}

/** What the hash is of. Without it each of 200 open payments' names would be folded for each payment. */
const isSame = (one: Likeness, other: Likeness): boolean =>
  one.rail === other.rail &&
  one.amountCents === other.amountCents &&
  comparedName(one.recipient) === comparedName(other.recipient);

const asksForDuplicates = (rules: PaymentRules | undefined): boolean =>
  rules?.checks.some(({ type }) => type === "duplicate") === true;

/**
 * Through which closed payment the projection must have been looked at before the actor can decide: those whose key it has
 * forgotten and, where a rule looks for duplicates, those whose likeness it does not know. 0: none.
 */
export function lookUpNeededThrough(
  state: AgentState,
  payment: Likeness,
  rules: PaymentRules | undefined,
): number {
  if (!asksForDuplicates(rules)) return state.forgottenThrough;
  return Math.max(state.forgottenThrough, likePayments(state, payment).unknownThrough);
}

/** When the newest like payment was made, as far as the actor remembers and the projection was looked at. */
export function newestLikeAt(state: AgentState, payment: Likeness, lookedUpAt: number | null): number | null {
  const { newestAt } = likePayments(state, payment);
  if (newestAt === null || lookedUpAt === null) return newestAt ?? lookedUpAt;
  return Math.max(newestAt, lookedUpAt);
}
