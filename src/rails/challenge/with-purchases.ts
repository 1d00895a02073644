import type { RailPort } from "../../payments/ports.ts";
import type { StoredPayment } from "../../domain/ledger/payment.ts";

/** The wallet's rail, with payments that buy from shops made from the pocket. */
export function withPurchases(wallet: RailPort, purchases: RailPort): RailPort {
  const railOf = ({ request }: StoredPayment): RailPort =>
    request.protocol === undefined ? wallet : purchases;
  return {
    capabilities: wallet.capabilities,
    network: null,
    send: (profile, payment, permit) => railOf(payment).send(profile, payment, permit),
    async fence(places) {
      // A place does not say which of the two rails makes the payment.
      await Promise.all([wallet.fence(places), purchases.fence(places)]);
    },
    query: (payment) => railOf(payment).query(payment),
    settle: (profile, payment, withinMs, requestPermission) =>
      railOf(payment).settle(profile, payment, withinMs, requestPermission),
    withhold: (profile, payment) => railOf(payment).withhold(profile, payment),
    balance: (profile) => wallet.balance(profile),
    detach: (profile) => wallet.detach(profile),
  };
}
