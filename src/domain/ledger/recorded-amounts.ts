import type { Amounts } from "./amounts.ts";

/**
 * Recorded form of a payment's amounts. Nearly every payment is charged in full, so that they follow from its amount.
 */

const amountsInFull = (cents: number): Amounts => ({
  requestedCents: cents,
  authorizedCents: cents,
  capturedCents: cents,
  creditedCents: 0,
});

/** Returns an empty object if the payment was charged in full. */
export function storedAmounts(amounts: Amounts): { readonly amounts?: Amounts } {
  const { authorizedCents, capturedCents, creditedCents, requestedCents } = amounts;
  const isInFull =
    capturedCents === requestedCents && authorizedCents === requestedCents && creditedCents === 0;
  return isInFull ? {} : { amounts };
}

export const recordedAmounts = ({
  amountCents,
  amounts,
}: {
  readonly amountCents: number;
  readonly amounts?: Amounts;
}): Amounts => amounts ?? amountsInFull(amountCents);
