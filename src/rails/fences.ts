import type { Fence } from "../domain/ledger/permission.ts";
import { RAILS } from "../domain/ledger/payment.ts";
import type { Rails } from "../payments/ports.ts";

/**
 * Lays the fences of stopped agents, of one or of a whole project: one bulk write per rail. The answer to a stop waits
 * for the fences. If laying them fails, the stop is answered 503 and may be repeated, although the ledger has decided
 * it.
 */
export async function layFences(rails: Rails, fences: readonly Fence[]): Promise<void> {
  await Promise.all(
    RAILS.map(async (rail) => {
      const places = fences.flatMap(({ fence, payments }) =>
        payments[rail].map((transactionId) => ({ transactionId, fence })),
      );
      if (places.length > 0) await rails[rail].fence(places);
    }),
  );
}
