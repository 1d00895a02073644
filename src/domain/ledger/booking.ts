import {
  AUTHORIZATIONS_MAX,
  type AuthorizationRefusal,
  booked,
  type Books,
  type Breach,
  isBooked,
  NO_BOOKS,
  type RailBooks,
  REQUESTS_MAX,
  roundsOf,
  withBreaches,
  withReports,
} from "./books.ts";
import { isAnswerRefused } from "./capacity.ts";
import { checkCaps } from "./caps.ts";
import type { CommandOf, DroppedAccount, LedgerReply } from "./commands.ts";
import { addsNothing } from "./counted.ts";
import type { Draft } from "./draft.ts";
import { limitUses } from "./measures.ts";
import { judgedByNewestRules } from "./pay.ts";
import { isArmed, moneyOf, type StoredPayment, totalOf, withBooks } from "./payment.ts";
import { checkLimits } from "./policy.ts";
import { type Account, newAccount } from "./state.ts";
import { dayCounted, emptyUsage, utcDate } from "./usage.ts";
import { mcOf } from "../money.ts";
import { type LimitUse, warningsOf, withWarnings } from "./thresholds.ts";

/** Reports and requests of the network that a payment was made on. */

/**
 * Books a network's report. The reported change has happened, so it is never refused; exceeded limits are reported as
 * breaches. Reopens a closed payment, and brings back the account of an archived agent.
 */
export function book(draft: Draft, command: CommandOf<"book">): LedgerReply {
  const known = draft.account(command.agentId);
  const account = known ?? broughtBack(draft, command);
  if (account === null) {
    const { at, starts } = draft.bounds;
    return { kind: "account_dropped", revision: draft.ledger.revision, windows: { at, starts } };
  }
  // Records that bring an account back were read after it was dropped, this payment's among them.
  const readThrough = known === undefined ? account.closed : command.recordsCheckedThrough;
  const found = openOrClosed(draft, account, { ...command, recordsCheckedThrough: readThrough });
  if (found.kind !== "found") return found;
  const { isClosed, payment } = found;
  const before = withRefusal(payment, payment.books ?? NO_BOOKS);
  const now = payment.phase === "held" ? before : withRounds(draft, account, before, command.books);
  if (now === before) return { kind: "payment", changed: false, payment };
  const changed = withBooks(payment, now, draft.now);
  // Most reports, such as captures and refunds, add to no limit.
  const uses = addsNothing(payment, changed) ? [] : usesOf(draft, account, payment, changed);
  const breaches = breachesOf(account, uses, payment, changed);
  const booking = breaches.length === 0 ? changed : { ...changed, books: withBreaches(now, breaches) };
  const after = withWarnings(booking, warningsOf(uses, draft.now));
  if (isClosed) draft.reopen(account, payment);
  draft.change(account, after);
  return { kind: "payment", changed: true, payment: after };
}

/** Returns the books with the reports of one read, each state of an authorization booked by itself. */
function withRounds(draft: Draft, { usage }: Account, before: Books, reports: readonly RailBooks[]): Books {
  const day = dayCounted(usage, draft.now);
  let now = before;
  for (const round of roundsOf(reports)) {
    const joined = withReports(now, round, draft.now);
    if (joined !== now) now = booked(joined, draft.bounds.at, day);
  }
  return now;
}

/**
 * Returns the books with a refusal by the rail or the ledger as their first booking. The hold ended then, so that
 * amounts forced later count when they are booked.
 */
const withRefusal = ({ deniedAt, status }: StoredPayment, books: Books): Books =>
  (status === "failed" || status === "denied") && deniedAt !== null && books.bookings.length === 0
    ? booked(books, deniedAt, utcDate(deniedAt))
    : books;

type Found =
  | { readonly kind: "found"; readonly payment: StoredPayment; readonly isClosed: boolean }
  | Extract<LedgerReply, { kind: "records_check_required" }>;

/**
 * Returns the open payment, or the closed one from its record if that was read after the payment was last closed. A
 * record from an older backup is behind what was booked before it was lost, and would have that booked twice.
 */
function openOrClosed(
  { ledger: { keys } }: Draft,
  account: Account,
  { closed, recordsCheckedThrough, transactionId }: CommandOf<"book">,
): Found {
  const payment = account.open.get(transactionId)?.payment;
  if (payment !== undefined) return { kind: "found", payment, isClosed: false };
  const known =
    closed === undefined ? undefined : keys.byAgent.get(account.agentId)?.get(closed.request.keyHash);
  const [closedAs = account.evictedThrough, , , revision = 0] = known ?? [];
  if (closed === undefined || closedAs > recordsCheckedThrough || closed.revision < revision)
    return { kind: "records_check_required", closed: account.closed };
  return { kind: "found", payment: closed, isClosed: true };
}

/** Returns the account of an archived agent; null if its records have to be read first. */
function broughtBack(draft: Draft, { agentId, dropped }: CommandOf<"book">): Account | null {
  if (dropped === undefined || draft.ledger.droppedRevision >= dropped.asOfRevision) return null;
  const account = accountOf(agentId, dropped, draft);
  draft.bringBack(account);
  return account;
}

function accountOf(agentId: string, dropped: DroppedAccount, { ledger, now }: Draft): Account {
  const { closed, day, name, policy, policyVersion, revision, spentMc, teamId, windows } = dropped;
  // Above every earlier count of the account, so that records read at that time are not mistaken for new.
  const closedBefore = Math.max(closed, ledger.droppedClosed);
  return {
    ...newAccount({ agentId, teamId, name, policy, keyId: null }, now),
    status: "closed",
    policyVersion,
    mirroredPolicyVersion: policyVersion,
    usage: { ...emptyUsage(), spentMc, day: { ...day }, windows },
    sequence: closed,
    closed: closedBefore,
    evictedThrough: closedBefore,
    revision,
    confirmedRevision: revision,
  };
}

/** Returns the limits that a booking exceeds, as far as the booking increased their use. */
function breachesOf(
  { policy }: Account,
  uses: readonly LimitUse[],
  before: StoredPayment,
  after: StoredPayment,
) {
  const usedMc = totalOf(moneyOf(before));
  const addedMc = totalOf(moneyOf(after)) - usedMc;
  const { perTransactionLimitCents: limitCents } = policy;
  const ofPayment =
    limitCents === null
      ? []
      : [{ level: "agent", limit: "per_transaction", limitCents, usedMc, addedMc } as const];
  return [...ofPayment, ...uses].flatMap((use): Breach[] => {
    const overMc = Math.min(use.addedMc, use.usedMc + use.addedMc - mcOf(use.limitCents));
    return use.addedMc > 0 && overMc > 0 ? [{ level: use.level, limit: use.limit, overMc }] : [];
  });
}

/**
 * Answers a network's request to authorize more of a payment. Grants amounts within the decision, while the agent is
 * active and the limits have room for amounts that are no longer held. A repeated request gets its first answer, but one
 * without a position counts as new; after `answerBy` nothing is granted.
 */
export function authorize(draft: Draft, command: CommandOf<"authorize">): LedgerReply {
  const { agentId, amountMc, authorization, merchant, transactionId } = command;
  const account = draft.account(agentId);
  const payment = account?.open.get(transactionId)?.payment;
  if (account === undefined || payment === undefined || payment.phase !== "following")
    return { kind: "authorization", refusal: "CLOSED", payment: null };
  const books = payment.books ?? NO_BOOKS;
  const position = command.position ?? nextPosition(books, authorization);
  const first = books.answers.find(
    (each) => each.authorization === authorization && each.position === position,
  );
  if (first !== undefined) return { kind: "authorization", refusal: first.refusal, payment };
  const known = [...books.authorizations, ...books.clearances, ...books.answers];
  const ids = new Set([...known.map((each) => each.authorization), authorization]);
  const isFull =
    books.answers.length >= REQUESTS_MAX ||
    ids.size >= AUTHORIZATIONS_MAX ||
    isAnswerRefused(draft.ledger, account, draft.now);
  if (isFull) return { kind: "authorization", refusal: "CLOSED", payment };
  if (draft.now > command.answerBy) return { kind: "authorization", refusal: "TOO_LATE", payment };
  if (!judgedByNewestRules(draft, account, command.rulesVersions)) return { kind: "stale_rules" };
  const refusal = refusalOf(draft, account, payment, command);
  const answer = { authorization, position, refusal, mc: amountMc, merchant, at: draft.now };
  const answered = { ...books, answers: [...books.answers, answer] };
  // A card check of 0 holds nothing and leaves the payment unchanged.
  const isHeld = refusal === null && amountMc > 0;
  const clearances = [...books.clearances, { authorization, position, mc: amountMc, at: draft.now }];
  const day = dayCounted(account.usage, draft.now);
  const after = isHeld
    ? warned(
        draft,
        account,
        payment,
        withBooks(payment, booked({ ...answered, clearances }, draft.bounds.at, day), draft.now),
      )
    : answeredOnly(payment, answered);
  draft.change(account, after);
  return { kind: "authorization", refusal, payment: after };
}

/** Returns the number of an authorization's requests that were answered, or that its network has counted. */
function nextPosition({ answers, authorizations }: Books, authorization: string): number {
  const answered = answers.filter((each) => each.authorization === authorization).length;
  const counted = authorizations.find((each) => each.authorization === authorization)?.requests ?? 0;
  return Math.max(answered, counted);
}

const usesOf = (
  { bounds, ledger, now }: Draft,
  account: Account,
  before: StoredPayment,
  after: StoredPayment,
) => limitUses(ledger, account, { before, after, bounds, now });

const warned = (draft: Draft, account: Account, before: StoredPayment, after: StoredPayment): StoredPayment =>
  withWarnings(after, warningsOf(usesOf(draft, account, before, after), draft.now));

const answeredOnly = (payment: StoredPayment, books: Books): StoredPayment => ({
  ...payment,
  books,
  revision: payment.revision + 1,
});

function refusalOf(
  draft: Draft,
  account: Account,
  payment: StoredPayment,
  { amountMc, forbidden }: CommandOf<"authorize">,
): AuthorizationRefusal | null {
  if (account.status !== "active") return "NOT_ACTIVE";
  if (isArmed(payment) && draft.now >= (payment.card?.readyUntil ?? Infinity)) return "CLOSED";
  if (forbidden !== undefined) return "MERCHANT_NOT_ALLOWED";
  const isCharged = payment.books !== null && isBooked(payment.books);
  const usedMc = isCharged ? totalOf(moneyOf(payment)) : 0;
  if (usedMc + amountMc > payment.request.amountMc) return "ABOVE_PAYMENT";
  // An armed payment holds the whole requested amount; a charged one only what the network has requested so far.
  if (!isCharged) return null;
  const { policy, usage } = account;
  const noCounts = { ...policy, hourlyVelocityLimit: null, dailyVelocityLimit: null };
  const own = { amountMc: 0, day: payment.day, countedAt: payment.countedAt };
  const isExceeded =
    isAbove(usedMc + amountMc, policy.perTransactionLimitCents) ||
    checkLimits(noCounts, usage, amountMc, draft.now, own, draft.bounds) !== null ||
    checkCaps(draft.ledger, account, amountMc, draft.bounds) !== null;
  return isExceeded ? "LIMIT_EXCEEDED" : null;
}

const isAbove = (mc: number, limitCents: number | null): boolean =>
  limitCents !== null && mc > mcOf(limitCents);
