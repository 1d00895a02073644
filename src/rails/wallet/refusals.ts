import { GAS } from "../../chain/contracts.ts";
import type { RailFailure } from "../../domain/ledger/payment.ts";

export type RefusalReason = RailFailure;

/** Refusal of a payment withdrawn before any process sent it. */
export const WITHHELD = {
  code: "WITHHELD",
  reason: "The agent was paused before the payment was sent.",
} as const;

export const INSUFFICIENT_FUNDS: RefusalReason = {
  code: "INSUFFICIENT_FUNDS",
  reason: "The wallet does not hold enough for this payment.",
};
export const NO_WALLET: RefusalReason = {
  code: "RAIL_UNAVAILABLE",
  reason: "The agent has no wallet.",
};
export const DETACHED: RefusalReason = {
  code: "RAIL_UNAVAILABLE",
  reason: "The service can no longer spend from this wallet.",
};

export const GAS_EXCEEDED: RefusalReason = {
  code: "RAIL_UNAVAILABLE",
  reason: `The token needs more gas for this transfer than the service offers (${String(GAS.spendMax)}).`,
};

/** Maximum length of a token's own message in a refusal. */
const TOKEN_TEXT_MAX = 100;

/** Returns the refusal of a transfer by the token, including the token's own message. */
export function refusedByToken(what: "recipient" | "every transfer", text: string): RefusalReason {
  const said = text
    .replaceAll(/[^\x20-\x7e]+/g, " ")
    .trim()
    .slice(0, TOKEN_TEXT_MAX);
  const words = said === "" ? "." : `: "${said}"`;
  return what === "recipient"
    ? { code: "RECIPIENT_REFUSED", reason: `The token refuses this recipient${words}` }
    : { code: "RAIL_UNAVAILABLE", reason: `The token refuses transfers from this wallet${words}` };
}

export const LIMIT_REACHED: RefusalReason = {
  code: "RAIL_UNAVAILABLE",
  reason: "The wallet's limit on the chain leaves its pocket no more money now.",
};

export const CEILING: RefusalReason = {
  code: "RAIL_UNAVAILABLE",
  reason: "The wallet's owner allows the service no payment of this amount now.",
};
export const NOT_THERE: RefusalReason = {
  code: "RAIL_UNAVAILABLE",
  reason: "The wallet is not on the chain.",
};
export const REVERTED_TOO_OFTEN: RefusalReason = {
  code: "RAIL_UNAVAILABLE",
  reason: "The chain undid the transfer again and again.",
};
export const OUT_OF_GAS: RefusalReason = {
  code: "RAIL_UNAVAILABLE",
  reason: `The transfer ran out of gas, also with the most that the service offers (${String(GAS.spendMax)}).`,
};
export const OTHER_CHAIN: RefusalReason = {
  code: "RAIL_UNAVAILABLE",
  reason: "The agent's wallet is on another chain.",
};
