import type { Amounts } from "./amounts.ts";

/** Recorded form of a payment's amounts: nearly every payment is charged in full, and then they follow from its amount. */

/** Amounts of a payment that was charged in full, by the amount that it counts with. */
const amountsInFull = (cents: number): Amounts => ({
  requestedCents: cents,
  authorizedCents: cents,
  capturedCents: cents,
  creditedCents: 0,
});

/** Empty where the payment was charged in full. */
export function storedAmounts(amounts: Amounts): { readonly amounts?: Amounts } {
  const { authorizedCents, capturedCents, creditedCents, requestedCents } = amounts;
  const isInFull =
    capturedCents === requestedCents && authorizedCents === requestedCents && creditedCents === 0;
  return isInFull ? {} : { amounts };
}

/** Returns the amounts in a record. */
export const recordedAmounts = ({
  amountCents,
  amounts,
}: {
  readonly amountCents: number;
  readonly amounts?: Amounts;
}): Amounts => amounts ?? amountsInFull(amountCents);
