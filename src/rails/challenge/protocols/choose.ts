import type { Protocol } from "../../../domain/ledger/payment.ts";
import type { Authorization, Fetched, Frame, Judged, Offer, PaymentHeader, TokenTerms } from "./offer.ts";
import * as mpp from "./mpp.ts";
import * as x402 from "./x402.ts";

/** Maximum validity of an authorization: after a stop, every issued one expires within this time. */
export const VALIDITY_MAX_SECONDS = 300;
/** Facilitators refuse an authorization that expires within 6 s. */
const VALIDITY_MIN_SECONDS = 30;

export type Chosen =
  | { readonly kind: "offer"; readonly offer: Offer }
  /** `leastMc`: the lowest price that could be paid. */
  | { readonly kind: "above_max"; readonly leastMc: number }
  | { readonly kind: "none"; readonly reasons: readonly string[] };

/** All offers of a 402, newer protocols first. */
const judgedOffers = (fetched: Fetched, terms: TokenTerms, now: number): readonly Judged[] => [
  ...x402.offersV2(fetched, terms),
  ...mpp.offersMpp(fetched, terms, now),
  ...x402.offersV1(fetched, terms),
];

/** Returns the cheapest offer that can be paid with the token and costs at most `maxMc`; the first among equals. */
export function chosenOffer(fetched: Fetched, terms: TokenTerms, maxMc: number, now: number): Chosen {
  const judged = judgedOffers(fetched, terms, now);
  const offers = judged.filter((each): each is Offer => !("unpayable" in each));
  const reasons = judged.flatMap((each) => ("unpayable" in each ? [each.unpayable] : []));
  const [cheapest] = offers.toSorted((one, other) => one.amountMc - other.amountMc);
  if (cheapest === undefined) return { kind: "none", reasons: [...new Set(reasons)] };
  if (cheapest.amountMc > maxMc) return { kind: "above_max", leastMc: cheapest.amountMc };
  return { kind: "offer", offer: cheapest };
}

/** End of an authorization's validity in epoch seconds. `now`: epoch milliseconds. */
export function validBeforeOf(
  { nonce, timeoutSeconds }: Pick<Offer, "nonce" | "timeoutSeconds">,
  now: number,
): number {
  // A shop that requires its own nonce has said when its challenge expires.
  const least = nonce === null ? VALIDITY_MIN_SECONDS : 0;
  const seconds = Math.min(VALIDITY_MAX_SECONDS, Math.max(least, Math.floor(timeoutSeconds)));
  return Math.floor(now / 1_000) + seconds;
}

/** Returns the header that pays the offer. */
export const presented = (frame: Frame, authorization: Authorization): PaymentHeader =>
  frame.protocol === "mpp" ? mpp.presented(frame, authorization) : x402.presented(frame, authorization);

const RECEIPT_CHARACTERS_MAX = 1_000;

/** Returns the shop's receipt as JSON; null if there is none or it is too long to keep. */
export function receiptOf(protocol: Protocol, fetched: Pick<Fetched, "headers">): string | null {
  const receipt = protocol === "mpp" ? mpp.receiptIn(fetched) : x402.receiptIn(fetched);
  return receipt !== null && receipt.length <= RECEIPT_CHARACTERS_MAX ? receipt : null;
}
