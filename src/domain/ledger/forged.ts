import type { Payment, RailFailure } from "./payment.ts";

/** The outcome of a payment without a valid proof that the service accepted it. */
export const FORGED = {
  status: "failed",
  code: "RAIL_UNAVAILABLE",
  reason: "It was not decided on through this service, so nothing was paid.",
} as const satisfies { readonly status: "failed" } & RailFailure;

/** The payment as recorded where the named person's proof is invalid: without the name. */
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
