import { type ChainOutbox, isTransaction, type RecordedTransaction } from "../../chain/outbox.ts";
import type { FencedPlace } from "../../payments/ports.ts";
import { attemptPurpose } from "./attempts.ts";

/**
 * Lays a fence in the place of each payment's next attempt, until no process records there first. Returns the newest
 * recorded attempts. One round of writes usually suffices: no payment has more than `attemptsMax` attempts.
 */
export async function fenceAttempts(
  outbox: Pick<ChainOutbox, "fence" | "find">,
  places: readonly FencedPlace[],
  attemptsMax: number,
): Promise<RecordedTransaction[]> {
  // The last place is for a refusal.
  const numbers = Array.from({ length: attemptsMax + 1 }, (_none, at) => at + 1);
  const made = new Map<string, RecordedTransaction>();
  let open = places.map((place) => ({ ...place, number: 1 }));
  while (open.length > 0) {
    const fenced = open.map((each) => ({ fence: each.fence, purpose: attemptPurpose(each) }));
    const taken = new Set(await outbox.fence(fenced));
    const behind = open.filter((each) => taken.has(attemptPurpose(each)));
    const purposes = behind.flatMap(({ transactionId }) =>
      numbers.map((number) => attemptPurpose({ transactionId, number })),
    );
    const recorded = await outbox.find(purposes);
    open = behind.flatMap((each) => {
      const attempts = numbers.flatMap((number) => recorded.get(attemptPurpose({ ...each, number })) ?? []);
      const last = attempts.at(-1);
      if (last === undefined || last.kind === "refusal") return [];
      if (isTransaction(last)) made.set(each.transactionId, last);
      return attempts.length < each.number ? [] : [{ ...each, number: attempts.length + 1 }];
    });
  }
  return [...made.values()];
}
