import { ApplicationFailure, ApplicationFailureCategory } from "@temporalio/common";
import { Gate } from "../src/lib/gate.ts";
import type { Activities } from "./types.ts";

/** Maximum sweeps of one organization's payments in a process, by rail: half of the rail's activities (`worker.ts`). */
export const SWEEPS_OF_ORGANIZATION_MAX = 50;

/** Mean delay before a sweep above the share is tried again. */
const BUSY_RETRY_MS = 5_000;

/** Returns sweeps in which an organization whose payments hang leaves places of the rail to others. */
export function inShares(executePayments: Activities["executePayments"]): Activities["executePayments"] {
  const sweeping = new Gate(Infinity);
  return async (input) => {
    const [first] = input.payments;
    if (first === undefined) return [];
    const { payment, profile } = first;
    const name = `${payment.request.rail} ${profile.organizationId}`;
    const place = sweeping.enter({ name, max: SWEEPS_OF_ORGANIZATION_MAX });
    if (place === null)
      throw ApplicationFailure.create({
        message: "too many sweeps of the organization are under way",
        category: ApplicationFailureCategory.BENIGN,
        // Jittered, so that sweeps refused together do not return together.
        nextRetryDelay: BUSY_RETRY_MS * (0.5 + Math.random()),
      });
    try {
      return await executePayments(input);
    } finally {
      place.release();
    }
  };
}
