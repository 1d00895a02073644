import type { Payment, RailFailure } from "./payment.ts";

/** Outcome of a payment without a valid proof that the service accepted it. */
export const FORGED = {
  status: "failed",
  code: "RAIL_UNAVAILABLE",
  reason: "It was not decided on through this service, so nothing was paid.",
} as const satisfies { readonly status: "failed" } & RailFailure;

/** Returns the payment without the resolver's name, to be recorded if that person's proof is invalid. */
export function withoutResolver(payment: Payment): Payment {
  const { approval, denial } = payment;
  if (approval === null) return payment;
  const unnamed = { ...approval, resolvedBy: null, feedback: null, isForged: true as const };
  const isDenial = denial?.code === "APPROVAL_DENIED";
  return {
    ...payment,
    approval: unnamed,
    denial: isDenial ? { ...denial, reason: FORGED.reason } : denial,
  };
}
