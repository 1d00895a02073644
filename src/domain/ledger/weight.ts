import { BitMeter, isCoded } from "./bits.ts";
import { codeAccount } from "./pack-accounts.ts";
import { type Books, NO_BOOKS } from "./books.ts";
import type { StoredPayment } from "./payment.ts";
import type { Account, Ledger, Level } from "./state.ts";
import { inBuckets } from "./usage.ts";

/**
 * Upper bound of a ledger's packed and compressed size. The engine terminates a workflow whose state exceeds its
 * bound (2 MiB), so commands are refused while there is still room. Accounts are weighed by the code that packs them;
 * of the rest, incompressible parts are estimated: ids, hashes, figures and texts.
 */

/** Ids, hashes, proofs, times and an approval of an open payment. */
const OPEN_BYTES = 400;
/** An authorization, or an answer to one of its requests, without its id; a booking, and a limit that it has exceeded. */
const AUTHORIZATION_BYTES = 48;
const ANSWER_BYTES = 30;
const BOOKING_BYTES = 56;
const BREACH_BYTES = 20;
/** The last digits of a card, and how long it waits. */
const CARD_BYTES = 20;
/** An event that is not published yet; its id is not carried over. */
const EVENT_BYTES = 18;
/** Marks that an account has rare fields. */
const REST_BYTES = 16;
/** A key of a closed payment. */
const KEY_BYTES = 46;
/** A limit that a payment has brought to a threshold, until that is published. */
const WARNING_BYTES = 40;
/** An increase of a limit of a level, and a limit that a grant has raised. */
const INCREASE_BYTES = 70;
const RAISED_BYTES = 40;
/** A grant that is not known to be recorded. */
const GRANT_BYTES = 60;
/** A limit that a payment was decided by, until that is published. */
const LIMIT_BYTES = 16;
/** A team, its cap with spend limits, its totals and windows. */
const TEAM_BYTES = 130;
/** The first reply to a request, and its id. */
const REPLY_BYTES = 90;
/** The tables by which all is expanded again, and the first use of each field and word. */
const FIXED_BYTES = 1_500;

/** Overhead of compression on packed bits. */
const BITS_FACTOR = 1.02 / 8;

/** An account, as of `now`. */
export function weightOf(account: Account, now: number): number {
  const meter = new BitMeter();
  codeAccount(meter, account, now, account.usage.windows.at);
  return weightIn(account, meter.bitCount);
}

/** An account that takes so many bits besides. */
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

/** The whole ledger, its accounts as of their last change. */
export const ledgerBytes = ({ keys, replies, teams, weightBytes }: Ledger): number =>
  FIXED_BYTES + weightBytes + keys.count * KEY_BYTES + teams.size * TEAM_BYTES + replies.size * REPLY_BYTES;

/** Increases of a level; few have any. */
export const levelBytes = ({ cap }: Pick<Level, "cap">): number =>
  (cap.increases?.length ?? 0) * INCREASE_BYTES;

export const levelsBytes = ({ project, teams }: Ledger): number =>
  [project, ...teams.values()].reduce((bytes, level) => bytes + levelBytes(level), 0);

/** Weighs all accounts anew: what has expired since an account last changed weighs nothing any more. */
export function reweigh(ledger: Ledger, now: number): void {
  ledger.weighedAt = now;
  ledger.weightBytes = levelsBytes(ledger);
  for (const account of ledger.accounts.values()) {
    account.usage.counts = inBuckets(account.usage, now);
    account.weightBytes = weightOf(account, now);
    ledger.weightBytes += account.weightBytes;
  }
}

/** A payment is replaced as a whole when it changes, and weighed whenever anything of its account does. */
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
    // Half of a pair, which takes four.
    else other += unit < 0x800 || (unit >= 0xd800 && unit < 0xe000) ? 2 : 3;
  }
  return QUOTES_BYTES + plain + Math.ceil(other * MIXED);
}
