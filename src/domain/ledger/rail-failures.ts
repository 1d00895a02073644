/** Codes of payments that failed on their rail. */
export const RAIL_FAILURE_CODES = [
  "CARD_DECLINED",
  "CARD_NOT_ISSUED",
  "INSUFFICIENT_FUNDS",
  "RECIPIENT_REFUSED",
  "RAIL_UNAVAILABLE",
  "NOT_CHARGED",
  "PRICE_CHANGED",
  "NOT_CLAIMED",
] as const;
export type RailFailureCode = (typeof RAIL_FAILURE_CODES)[number];
