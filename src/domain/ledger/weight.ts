import type { Account, OpenPayment } from "./state.ts";

/**
 * How many bytes an account takes at the most where the ledger is carried over to a new run, encoded and compressed. The engine ends
 * a workflow whose state is above its bound (2 MiB), so what would come near it is refused while there is room. Estimated from what can't
 * be compressed: ids, hashes and texts that people choose.
 */

/** Ids, policy, totals and versions. */
const ACCOUNT_BYTES = 180;
/** One instant of the payments of the last 31 days. */
const INSTANT_BYTES = 9;
/** Ids, hashes, proofs, times and an approval of an open payment. */
const OPEN_BYTES = 480;
/** A resolution names a person and may give feedback. */
const NO_TEXT = 0;

export function weightOf({ name, open, usage }: Account): number {
  let bytes = ACCOUNT_BYTES + textBytes(name) + usage.hour.length * INSTANT_BYTES;
  for (const each of open.values()) bytes += openBytes(each);
  return bytes;
}

function openBytes({ payment: { approval, denial, request } }: OpenPayment): number {
  const { feedback = null, resolvedBy = null } = approval ?? {};
  return (
    OPEN_BYTES +
    textBytes(request.purpose) +
    textBytes(request.recipient) +
    textBytes(feedback) +
    textBytes(resolvedBy?.name) +
    textBytes(denial?.reason)
  );
}

/** At the most: a UTF-16 unit takes up to three bytes of UTF-8; control characters six, as JSON escapes them, but those compress. */
const textBytes = (text: string | null | undefined): number =>
  text === null || text === undefined ? NO_TEXT : text.length * 3;
