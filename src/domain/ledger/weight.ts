import type { Payment } from "./payment.ts";
import type { Account } from "./state.ts";

/**
 * How many bytes an account takes at the most where the ledger is carried over to a new run, encoded and compressed. The engine ends
 * a workflow whose state is above its bound (2 MiB), so what would come near it is refused while there is room. Estimated from what can't
 * be compressed: ids, hashes, figures, and texts that people choose.
 */

/** Ids, policy and versions. */
const ACCOUNT_BYTES = 110;
/** Totals, the day, and how many payments there were. */
const USED_BYTES = 60;
/** One instant of the payments of the last 31 days. */
const INSTANT_BYTES = 8;
/** Ids, hashes, proofs, times and an approval of an open payment. */
const OPEN_BYTES = 480;
/** An event that is not published yet. */
const EVENT_BYTES = 60;

export function weightOf({ name, open, outbox, sequence, usage }: Account): number {
  let bytes = ACCOUNT_BYTES + textBytes(name) + outbox.length * EVENT_BYTES;
  if (sequence > 0) bytes += USED_BYTES + usage.recentPayments.length * INSTANT_BYTES;
  for (const { payment } of open.values()) bytes += paymentBytes(payment);
  return bytes;
}

/** A payment is replaced as a whole when it changes, and weighed whenever anything of its account does. */
const weighed = new WeakMap<Payment, number>();

function paymentBytes(payment: Payment): number {
  const known = weighed.get(payment);
  if (known !== undefined) return known;
  const { approval, denial, request } = payment;
  const bytes =
    OPEN_BYTES +
    textBytes(request.purpose) +
    textBytes(request.recipient) +
    textBytes(approval?.feedback) +
    textBytes(approval?.resolvedBy?.name) +
    textBytes(denial?.reason);
  weighed.set(payment, bytes);
  return bytes;
}

/** What the letters of most scripts take more than their bytes: they make the text around them compress worse. */
const MIXED = 1.2;

/** As UTF-8, of which nothing is compressed. Control characters take six bytes, as JSON writes them, but those compress. */
function textBytes(text: string | null | undefined): number {
  let [plain, other] = [0, 0];
  for (let at = 0; at < (text?.length ?? 0); at += 1) {
    const unit = text?.charCodeAt(at) ?? 0;
    if (unit < 0x80) plain += 1;
    // Half of a pair, which takes four.
    else other += unit < 0x800 || (unit >= 0xd800 && unit < 0xe000) ? 2 : 3;
  }
  return plain + Math.ceil(other * MIXED);
}
