import { BitMeter, isCoded } from "./bits.ts";
import { codeAccount } from "./pack-accounts.ts";
import { type Books, NO_BOOKS } from "./books.ts";
import type { StoredPayment } from "./payment.ts";
import type { Account, Ledger, Level } from "./state.ts";
import { inBuckets } from "./usage.ts";

/**
 * Upper bound of a ledger's packed and compressed size. Temporal terminates a workflow whose state exceeds its bound (2
 * MiB), so commands are refused while there is still room. Accounts are weighed by the code that packs them. For the
 * rest, the incompressible parts are estimated: ids, hashes, figures and texts.
 */

/** Ids, hashes, proofs, times and approval of an open payment. */
const OPEN_BYTES = 400;
/** An authorization or an answer to one of its requests, without its id; a booking; a breach. */
const AUTHORIZATION_BYTES = 48;
const ANSWER_BYTES = 30;
const BOOKING_BYTES = 56;
const BREACH_BYTES = 20;
/** Last digits of a card, and the end of its wait. */
const CARD_BYTES = 20;
/** An unpublished event; its id is not carried over. */
const EVENT_BYTES = 18;
/** Marks of an account with rare fields. */
const REST_BYTES = 16;
const KEY_BYTES = 46;
/** A warning, until published. */
const WARNING_BYTES = 40;
/** An increase of a level's limit, and a limit raised by a grant. */
const INCREASE_BYTES = 70;
const RAISED_BYTES = 40;
/** A grant that is not known to be recorded. */
const GRANT_BYTES = 60;
/** A limit by which a payment was decided, until published. */
const LIMIT_BYTES = 16;
/** A team with its cap, totals and windows. */
const TEAM_BYTES = 121;
/** A spend limit of a team or the project. */
const SPEND_LIMIT_BYTES = 12;
/** A cached reply and its request's id. */
const REPLY_BYTES = 90;
/** Tables for expanding the packed form, and the first use of each field and word. */
const FIXED_BYTES = 1_500;

/** Bytes per packed bit, including the compression's overhead. */
const BITS_FACTOR = 1.02 / 8;

export function weightOf(account: Account, now: number): number {
  const meter = new BitMeter();
  codeAccount(meter, account, now, account.usage.windows.at);
  return weightIn(account, meter.bitCount);
}

/** Returns the weight of an account whose packed part takes `bitCount` bits. */
export function weightIn(
  { agentId, grant, keyId: activeId, name, open, outbox, pausedAt, policy, revokedKeyId }: Account,
  bitCount: number,
): number {
  const keyId = activeId ?? revokedKeyId;
  let bytes = bitCount * BITS_FACTOR + outbox.length * EVENT_BYTES + textBytes(name);
  if (!isCoded(agentId)) bytes += textBytes(agentId);
  if (keyId !== null && !isCoded(keyId)) bytes += textBytes(keyId);
  for (const { id } of policy.increases ?? []) if (!isCoded(id)) bytes += textBytes(id);
  if (open.size > 0 || outbox.length > 0 || pausedAt !== null || grant !== null) bytes += REST_BYTES;
  if (grant !== null) bytes += GRANT_BYTES + grant.raised.length * RAISED_BYTES;
  for (const { payment } of open.values()) bytes += paymentBytes(payment);
  return Math.ceil(bytes);
}

/** Returns the weight of the whole ledger, with accounts as of their last change. */
export const ledgerBytes = ({ keys, replies, teams, weightBytes }: Ledger): number =>
  FIXED_BYTES + weightBytes + keys.count * KEY_BYTES + teams.size * TEAM_BYTES + replies.size * REPLY_BYTES;

/** Returns the weight of a level's spend limits and increases. */
export const levelBytes = ({ cap }: Pick<Level, "cap">): number =>
  (cap.spendLimits?.length ?? 0) * SPEND_LIMIT_BYTES + (cap.increases?.length ?? 0) * INCREASE_BYTES;

export const levelsBytes = ({ project, teams }: Ledger): number =>
  [project, ...teams.values()].reduce((bytes, level) => bytes + levelBytes(level), 0);

/** Share of the bound for payments above which a ledger gives up accuracy and keys, and below which it counts exactly. */
const FULL_SHARE = 0.95;
const ROOMY_SHARE = 0.9;
/** Factors by which buckets are widened in a full ledger: at the last one a window counts up to half too long. */
const COARSER = [2, 4, 8, 16] as const;
/** Share of the keys of closed payments that a full ledger remembers. */
const KEYS_OF_FULL = 1 / 5;

/**
 * Weighs all accounts again: what has expired since an account last changed no longer counts. A full ledger counts
 * payments in wider buckets in accounts that take more than is reserved for them, so that counts alone never fill it.
 */
export function reweigh(ledger: Ledger, now: number): void {
  ledger.weighedAt = now;
  ledger.weightBytes = levelsBytes(ledger);
  for (const account of ledger.accounts.values()) {
    recount(account, now);
    ledger.weightBytes += account.weightBytes;
  }
  if (!isFull(ledger)) return;
  for (const account of ledger.accounts.values()) {
    ledger.weightBytes -= account.weightBytes;
    coarsen(account, now);
    ledger.weightBytes += account.weightBytes;
  }
}

function recount(account: Account, now: number): void {
  account.usage.counts = inBuckets(account.usage, now);
  account.weightBytes = weightOf(account, now);
}

/** Puts an account's counts into the narrowest buckets that need no more than is reserved, else into the widest. */
function coarsen(account: Account, now: number): void {
  const { usage } = account;
  const reservedBytes = weightOf({ ...account, usage: { ...usage, counts: [] } }, now);
  for (const coarser of COARSER) {
    if (account.weightBytes <= reservedBytes) return;
    if (coarser <= usage.coarser) continue;
    usage.coarser = coarser;
    recount(account, now);
  }
}

const isFull = (ledger: Ledger): boolean => ledgerBytes(ledger) >= FULL_SHARE * ledger.bounds.paidBelowBytes;

/** Returns how many keys of closed payments are remembered. Older ones are checked in the records. */
export const keysMax = (ledger: Ledger): number =>
  isFull(ledger) ? Math.ceil(KEYS_OF_FULL * ledger.bounds.closedKeys) : ledger.bounds.closedKeys;

/** Returns how coarse a payment made now is counted: exactly again once the ledger has room. */
export const coarserNow = (ledger: Ledger, { usage }: Account): number =>
  ledgerBytes(ledger) < ROOMY_SHARE * ledger.bounds.paidBelowBytes ? 1 : usage.coarser;

/** Cached weights. A payment is replaced when it changes, but weighed with every change of its account. */
const weighed = new WeakMap<StoredPayment, number>();

function paymentBytes(payment: StoredPayment): number {
  const known = weighed.get(payment);
  if (known !== undefined) return known;
  const { approval, books, denial, request } = payment;
  const bytes =
    OPEN_BYTES +
    booksBytes(books ?? NO_BOOKS) +
    (payment.warnings?.length ?? 0) * WARNING_BYTES +
    (payment.wouldHaveFlagged ?? []).reduce((sum, type) => sum + textBytes(type), 0) +
    (payment.limits?.length ?? 0) * LIMIT_BYTES +
    textBytes(request.purpose) +
    textBytes(request.recipient) +
    textBytes(request.resource) +
    textBytes(payment.receipt) +
    (payment.card === undefined ? 0 : CARD_BYTES) +
    textBytes(approval?.feedback) +
    textBytes(approval?.resolvedBy?.name) +
    textBytes(denial?.reason);
  weighed.set(payment, bytes);
  return bytes;
}

const idBytes = ({ authorization }: { readonly authorization: string }): number => authorization.length;

function booksBytes({ answers, authorizations, bookings, breaches, clearances }: Books): number {
  const granted = [...authorizations, ...clearances];
  const exceeded = bookings.reduce(
    (count, booking) => count + (booking.breaches?.length ?? 0),
    breaches.length,
  );
  return (
    granted.reduce((bytes, each) => bytes + AUTHORIZATION_BYTES + idBytes(each), 0) +
    answers.reduce((bytes, each) => bytes + ANSWER_BYTES + idBytes(each) + textBytes(each.merchant), 0) +
    bookings.length * BOOKING_BYTES +
    exceeded * BREACH_BYTES
  );
}

/** Factor for scripts whose letters make the surrounding text compress worse. */
const MIXED = 1.2;
/** Separators between texts. */
const QUOTES_BYTES = 2;

/** Returns the size in UTF-8, uncompressed. Control characters take six bytes in JSON, but those compress. */
function textBytes(text: string | null | undefined): number {
  let [plain, other] = [0, 0];
  for (let at = 0; at < (text?.length ?? 0); at += 1) {
    const unit = text?.charCodeAt(at) ?? 0;
    if (unit < 0x80) plain += 1;
    // Half of a surrogate pair, which takes four bytes.
    else other += unit < 0x800 || (unit >= 0xd800 && unit < 0xe000) ? 2 : 3;
  }
  return QUOTES_BYTES + plain + Math.ceil(other * MIXED);
}
