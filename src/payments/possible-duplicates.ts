import {
  canHaveDuplicate,
  DUPLICATE_WINDOW_MS,
  DUPLICATED_STATUSES,
  type PossibleDuplicate,
} from "../domain/ledger/duplicates.ts";
import type { Payment, PaymentRequest } from "../domain/ledger/payment.ts";
import type { Collections } from "../store/collections.ts";
import type { TransactionDocument } from "../store/documents.ts";
import type { PaymentsByKey } from "./payments-by-key.ts";
import { FOUND, toRecipient } from "./rules/payment-rules.ts";

/** Fields by which an earlier similar payment is found. */
interface Made extends Pick<PaymentRequest, "amountMc" | "rail" | "recipient"> {
  readonly agentId: string;
  readonly sequence: number;
  readonly createdAtMs: number;
}

/**
 * Finds the payment that another one may duplicate: the agent's newest earlier payment with the same rail, recipient
 * and amount. The ledger states whether there may be one, so an ordinary payment needs no look-up.
 */
export class PossibleDuplicates {
  readonly #transactions: Collections["transactions"];
  readonly #byKey: PaymentsByKey;

  constructor(transactions: Collections["transactions"], byKey: PaymentsByKey) {
    this.#transactions = transactions;
    this.#byKey = byKey;
  }

  /** Returns the possible duplicate of a payment that was just decided. `known` is the ledger's statement. */
  async of(
    agentId: string,
    { createdAt, request, sequence }: Payment,
    known: PossibleDuplicate | undefined,
  ): Promise<string | null> {
    if (known === undefined) return null;
    if (known.kind === "open") return known.transactionId;
    const closed =
      known.kind === "closed" ? await this.#byKey.load({ agentId, keyHash: known.keyHash }) : null;
    if (closed !== null && canHaveDuplicate(closed.status)) return closed._id;
    return this.#before({ ...request, agentId, createdAtMs: createdAt, sequence });
  }

  /** Returns the possible duplicate of an earlier payment, as it was known then. */
  async before(transaction: TransactionDocument): Promise<string | null> {
    return this.#before({
      ...transaction,
      amountMc: transaction.ledgerState.amountMc,
      createdAtMs: transaction.createdAt.getTime(),
    });
  }

  async #before({ agentId, amountMc, createdAtMs, rail, recipient, sequence }: Made): Promise<string | null> {
    const since = new Date(createdAtMs - DUPLICATE_WINDOW_MS);
    const found = await this.#transactions.findOne(
      {
        ...toRecipient(agentId, { rail, recipient }),
        status: { $in: DUPLICATED_STATUSES },
        "ledgerState.amountMc": amountMc,
        createdAt: { $gte: since, $lte: new Date(createdAtMs) },
        sequence: { $lt: sequence },
      },
      { ...FOUND, sort: { createdAt: -1 } },
    );
    return found?._id ?? null;
  }
}
