import { type Client, ServiceError } from "@temporalio/client";
import { HmacPaymentProofs } from "../../../src/payments/payment-proofs.ts";
import type { LedgerCommand } from "../../../src/domain/ledger/commands.ts";
import {
  type KnownRevisions,
  LEDGER_SUBMIT_UPDATE,
  ledgerWorkflowId,
  type LedgerSubmitResult,
  NOTHING_KNOWN,
} from "../../../src/messages/ledger.ts";
import { mcOf } from "../../../src/domain/money.ts";
import { MasterKey } from "../../../src/secrets/master-key.ts";
import { answerIn } from "../../../src/actors/temporal.ts";
import { newId, newUuid } from "../../../src/lib/ids.ts";
import { forUpdate, openAnswer } from "../../../src/messages/envelope.ts";
import { MASTER_KEY, ORDER } from "../systems/system.ts";
import { APPROVAL_WINDOW_SECONDS } from "./service.ts";

export interface PayerOf {
  readonly organizationId: string;
  readonly projectId: string;
  readonly agentId: string;
  readonly keyId: string;
}

const proofs = new HmacPaymentProofs(
  MasterKey.parse(MASTER_KEY, "MASTER_KEY").macs("payment-proofs"),
  () => undefined,
);

/** Decides a payment by card as a server does that dies before it acts; its id. */
export async function payAndDie(temporal: Client, payer: PayerOf): Promise<string> {
  const { agentId, keyId, projectId } = payer;
  const transactionId = newId("txn");
  const asked = {
    transactionId,
    approvalId: newId("apr"),
    keyHash: `lost-${transactionId}`,
    payloadHash: `lost-${transactionId}`,
    fingerprint: `lost-${transactionId}`,
    rail: ORDER.rail,
    amountMc: mcOf(ORDER.amountCents),
    currency: "USD",
    recipient: ORDER.merchant,
    merchantCategory: null,
    purpose: ORDER.purpose,
  } as const;
  const request = { ...asked, proof: proofs.ofOrder(payer, asked) };
  const command: LedgerCommand = {
    kind: "pay",
    agentId,
    keyId,
    request,
    approvalWindowSeconds: APPROVAL_WINDOW_SECONDS,
    recordsCheckedThrough: 0,
  };
  const ledger = temporal.workflow.getHandle(ledgerWorkflowId(projectId));
  const updateId = newUuid();
  const { replies } = await ledger
    .executeUpdate<unknown, [readonly LedgerCommand[], KnownRevisions]>(LEDGER_SUBMIT_UPDATE, {
      args: [[command], NOTHING_KNOWN],
      updateId,
    })
    .then((answer) =>
      answerIn(openAnswer<LedgerSubmitResult>(forUpdate(LEDGER_SUBMIT_UPDATE, updateId), answer)),
    )
    .catch((error: unknown) => {
      if (!(error instanceof ServiceError)) throw error;
      // It has met a roll-over, and was not decided.
      return { replies: [] };
    });
  const [reply] = replies;
  if (reply === undefined) return payAndDie(temporal, payer);
  if (reply.kind !== "decided") throw new Error(`a payment was answered ${reply.kind}`);
  return transactionId;
}
