import { createHash } from "node:crypto";

/** First digits of the simulated issuer's card numbers; searches after test runs look only for these. */
export const SIMULATED_BIN = "40000099";
const CODE_DIGITS = 3;

export interface CardData {
  readonly number: string;
  readonly code: string;
  readonly expiry: string;
}

/** Returns a card's number, code and expiry. Derived, so stored nowhere and the same each time. */
export function cardDataOf(accountId: string, cardId: string): CardData {
  const digits = BigInt(
    `0x${createHash("sha256").update(`${accountId}/${cardId}`).digest("hex")}`,
  ).toString();
  const body = `${SIMULATED_BIN}${digits.slice(-7)}`;
  const code = digits.slice(-7 - CODE_DIGITS, -7);
  return { number: `${body}${checkDigitOf(body)}`, code, expiry: "12 / 34" };
}

export const hasCheckDigit = (number: string): boolean =>
  number.endsWith(String(checkDigitOf(number.slice(0, -1))));

/** Luhn's algorithm. */
function checkDigitOf(body: string): number {
  const sum = Array.from(body, Number)
    .toReversed()
    .reduce((total, digit, at) => {
      const weighted = digit * (at % 2 === 0 ? 2 : 1);
      return total + (weighted > 9 ? weighted - 9 : weighted);
    }, 0);
  return (10 - (sum % 10)) % 10;
}
