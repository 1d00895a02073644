import type { z } from "zod";
import { SHOWN_TRANSACTION_FIELDS } from "../../src/store/documents.ts";
import { type agent, rail as rails } from "../../src/contract/records.ts";
import type { Collections } from "../../src/store/collections.ts";
import { newest } from "../../src/store/lists.ts";

type LastPayment = NonNullable<z.input<typeof agent>["lastPayment"]>;

/** Reads an agent's newest payment; null if it has none. */
export type LastPayments = (agentId: string) => Promise<LastPayment | null>;

/** Reads one index entry for each agent, however many payments it has. */
export const lastPaymentsIn =
  ({ shownTransactions }: Pick<Collections, "shownTransactions">): LastPayments =>
  async (agentId) => {
    const equals = { agentId, rail: rails.options };
    const [last] = await newest(
      { collection: shownTransactions, equals, projection: SHOWN_TRANSACTION_FIELDS },
      1,
    );
    if (last === undefined) return null;
    const { _id, amountCents, createdAt, rail, recipient: merchant, status } = last;
    return { transactionId: _id, createdAt: createdAt.toISOString(), amountCents, rail, status, merchant };
  };
