import { main } from "../../../server/run.ts";
import { withCreatePoints, withLifePoints } from "./life-points.ts";
import { withPaymentPoints } from "./payment-points.ts";
import { holdPurchases } from "./purchase-points.ts";

/** The all-in-one, which can be held in the midst of what it does, so that it is killed right there. */
holdPurchases();
void main(process.argv[2] ?? "start", process.env, {
  decorateEffects: (plain) => withLifePoints(withPaymentPoints(plain)),
  decorateBackends: withCreatePoints,
});
