import type { PaymentRequest, PaymentTexts, Protocol } from "../domain/ledger/payment.ts";
import { refusal } from "../domain/errors.ts";
import { mcOf } from "../domain/money.ts";
import { newId, payloadHash, shortHash } from "../lib/ids.ts";
import { fingerprint } from "./rules/payment-rules.ts";

/** Payments as callers order them, and the requests that ledgers get. */

export interface Purchase {
  readonly protocol: Protocol;
  readonly resource: string;
  readonly amountMc: number;
  /** Hash of everything that the client sent, without the price, which may change until it is paid. */
  readonly payloadHash: string;
  /** Id of the transaction if this is the first request with its key. */
  readonly transactionId: string;
}

export interface PaymentOrder
  extends Pick<PaymentRequest, "currency" | "rail">, Omit<PaymentTexts, "resource"> {
  readonly amountCents: number;
  readonly merchantCategory?: string | undefined;
  readonly idempotencyKey: string;
  readonly purchase?: Purchase;
}

/** Fields that a dry run needs. */
export type CheckedOrder = Pick<PaymentOrder, "rail" | "recipient" | "amountCents" | "merchantCategory"> & {
  readonly purchase?: Pick<Purchase, "resource" | "amountMc">;
};

export const keyReused = (transactionId: string) =>
  refusal(
    "IDEMPOTENCY_KEY_REUSED",
    `The idempotencyKey was used with another payload, for ${transactionId}: read that payment, or take a new key.`,
    { detail: `It was used for ${transactionId}.` },
  );

/** Returns the ledger's request for an order, without its proof. */
export function unprovenOf(order: PaymentOrder): Omit<PaymentRequest, "proof"> {
  const { amountCents, idempotencyKey, merchantCategory = null, purchase, ...rest } = order;
  const amountMc = purchase?.amountMc ?? mcOf(amountCents);
  return {
    ...rest,
    ...(purchase === undefined ? {} : { protocol: purchase.protocol, resource: purchase.resource }),
    amountMc,
    merchantCategory,
    transactionId: purchase?.transactionId ?? newId("txn"),
    approvalId: newId("apr"),
    keyHash: shortHash(idempotencyKey),
    payloadHash: purchase?.payloadHash ?? payloadHash({ ...rest, amountMc, merchantCategory }),
    fingerprint: fingerprint({ ...rest, amountMc, merchantCategory }),
  };
}
