import { type AgentDocument, type TransactionDocument, profileOf } from "../../src/store/documents.ts";
import { RAIL_OF } from "../../src/contract/rails.ts";
import { rail } from "../../src/contract/records.ts";
import { SETTLES_ON } from "../../src/domain/ledger/payment.ts";
import { RAISABLE } from "../../src/domain/ledger/raises.ts";
import { refusal } from "../../src/domain/errors.ts";
import { ok, refused, type Result } from "../../src/domain/result.ts";
import type { PaymentOrder } from "../../src/payments/payment-orders.ts";
import type { Payer, RecordedPayment } from "../../src/payments/payments.ts";
import { awaitPayment } from "../../src/payments/waiting-calls.ts";
import type { Deadline } from "../../src/lib/deadline.ts";
import type { AgentPrincipal } from "../../src/identity/principals.ts";
import { approvalView, transactionView } from "../../src/views/views.ts";
import { recordsOf } from "../../src/store/held-payments.ts";
import { definedFields } from "../../src/store/lists.ts";
import { newUuid } from "../../src/lib/ids.ts";
import type { HandlerDependencies } from "./dependencies.ts";
import { orderOf, wrongRecipient } from "./payment-recipients.ts";
import type { Handlers } from "./types.ts";

type PaymentHandlers = Pick<
  Handlers,
  | "createPayment"
  | "createCardPayment"
  | "createWalletPayment"
  | "getPayment"
  | "listPayments"
  | "cancelPayment"
  | "getDenialFeedback"
>;

/** Time added to a deadline for the work after a response's wait. */
export const AFTER_WAIT_MS = 1_500;

/** Wait of a response for its payment, by which its deadline moves. */
export interface Waiting {
  readonly deadline: Deadline;
  readonly waitSeconds: number;
}

/** Default number of denials that `get_denial_feedback` returns. */
const DENIALS_MAX = 20;

export function payerOf({ agent, keyId, cached }: AgentPrincipal): Payer {
  const payer = { profile: profileOf(agent), keyId };
  if (cached === undefined) return payer;
  const { revision } = cached;
  const verify = async (): Promise<Result<Payer>> => {
    const verified = await cached.verify();
    return verified.ok ? ok(payerOf(verified.value)) : verified;
  };
  return { ...payer, cached: { revision, verify } };
}

export function paymentHandlers(dependencies: HandlerDependencies): PaymentHandlers {
  const { baseUrl, collections, ledgers, lists, payments } = dependencies;
  const { ownPayment, waitedFor } = ownPayments(dependencies);
  const paymentView = paymentViewAt(baseUrl);

  async function pay(principal: AgentPrincipal, order: PaymentOrder, { deadline, waitSeconds }: Waiting) {
    const { agent } = principal;
    const wrong =
      SETTLES_ON[order.rail] === "chain"
        ? wrongRecipient(dependencies.wallets, agent, order.recipient)
        : null;
    if (wrong !== null) return refused(wrong);
    const paid = await payments.pay(payerOf(principal), order, deadline);
    if (!paid.ok) return paid;
    const known = await waitedFor(agent, paid.value, { deadline, waitSeconds });
    const { possibleDuplicateOf, replayed } = paid.value;
    const body = { ...paymentView(known), replayed, possibleDuplicateOf };
    return ok(replayed ? { status: 200 as const, body: { ...body, ...repeatedRefusal(known) } } : { body });
  }

  return {
    async createPayment({ body, query: { waitSeconds } }, { deadline, principal }) {
      const waiting = { deadline, waitSeconds };
      return pay(principal, orderOf(body), waiting);
    },

    createCardPayment({ body, query: { waitSeconds } }, { deadline, principal }) {
      const order = orderOf({ ...body, rail: RAIL_OF.create_card_payment });
      return pay(principal, order, { deadline, waitSeconds });
    },

    createWalletPayment({ body, query: { waitSeconds } }, { deadline, principal }) {
      const order = orderOf({ ...body, rail: RAIL_OF.create_wallet_payment });
      return pay(principal, order, { deadline, waitSeconds });
    },

    async getPayment({ params, query: { waitSeconds } }, { deadline, principal }) {
      const payment = await ownPayment(principal.agent, params.id);
      if (payment === null) return refused(refusal("NOT_FOUND"));
      return ok({ body: paymentView(await waitedFor(principal.agent, payment, { deadline, waitSeconds })) });
    },

    async listPayments({ query: { cursor, limit, status } }, { principal }) {
      const agentId = principal.agent._id;
      const page = await lists.page({
        collection: collections.transactions,
        list: "payments",
        filters: { agentId, status },
        equals: { agentId, ...definedFields({ status }), rail: rail.options },
        limit,
        cursor,
      });
      if (!page.ok) return page;
      const { items, nextCursor } = page.value;
      return ok({ body: { payments: items.map(transactionView), nextCursor } });
    },

    async cancelPayment({ params }, { deadline, principal }) {
      const { agent } = principal;
      const known = await ownPayment(agent, params.id);
      if (known === null) return refused(refusal("NOT_FOUND"));
      const { approvalId, stage } = known.transaction;
      // The payment was never on hold and is not a card that waits for a charge.
      if (approvalId === null && stage !== "armed") return refused(refusal("PAYMENT_NOT_CANCELLABLE"));
      const cancel = { kind: "cancel", agentId: agent._id, transactionId: params.id } as const;
      const reply = await ledgers.submit(agent, { ...cancel, requestId: newUuid() });
      if (reply.kind !== "payment") return refused(refusal("PAYMENT_NOT_CANCELLABLE"));
      if (reply.changed || reply.payment.status === "expired") {
        const cancelled = await payments.executeResolution(profileOf(agent), reply.payment, deadline);
        if (reply.changed) return ok({ body: paymentView(cancelled) });
      }
      return refused(refusal("PAYMENT_NOT_CANCELLABLE"));
    },

    async getDenialFeedback({ body }, { principal }) {
      const agentId = principal.agent._id;
      const one = body?.transactionId;
      const denied = await collections.transactions
        .find({ agentId, deniedAt: { $type: "date" }, ...(one === undefined ? {} : { _id: one }) })
        .sort({ deniedAt: -1, _id: -1 })
        .limit(DENIALS_MAX)
        .toArray();
      if (one !== undefined && denied.length === 0) return refused(refusal("NOT_FOUND"));
      const denials = denied.flatMap(({ _id, status, denialCode, denialReason, feedback, deniedAt }) =>
        deniedAt === null
          ? []
          : [
              {
                transactionId: _id,
                status,
                denialCode,
                denialReason: denialReason ?? "",
                feedback,
                deniedAt: deniedAt.toISOString(),
                raise: raiseOf({ agentId, denialCode }, baseUrl),
              },
            ],
      );
      return ok({ body: { denials } });
    },
  };
}

type OwnPaymentDependencies = Pick<
  HandlerDependencies,
  "collections" | "logger" | "paymentChanges" | "waitingCalls"
>;

/** Reads agents' own payments, with or without waiting for their outcome. */
export function ownPayments({ collections, logger, paymentChanges, waitingCalls }: OwnPaymentDependencies) {
  /** Returns the payment once it is decided and final, or its current state when the caller's wait ends. */
  async function waitedFor(
    agent: AgentDocument,
    payment: RecordedPayment,
    { deadline, waitSeconds }: Waiting,
  ): Promise<RecordedPayment> {
    if (waitSeconds === 0) return payment;
    deadline.moveTo(deadline.elapsedMs + waitSeconds * 1_000 + AFTER_WAIT_MS);
    const { _id } = payment.transaction;
    return awaitPayment(payment, waitSeconds * 1_000, {
      calls: waitingCalls,
      changes: paymentChanges,
      async read() {
        const known = await ownPayment(agent, _id);
        if (known === null) throw new Error(`the record of ${_id} is gone`);
        return known;
      },
      onError: (err) => logger.warn({ err, transactionId: _id }, "a wait for a payment ended early"),
    });
  }

  async function ownPayment(agent: AgentDocument, id: string): Promise<RecordedPayment | null> {
    const transaction = await collections.transactions.findOne({ _id: id, agentId: agent._id });
    if (transaction === null) return null;
    return recordsOf(collections, transaction);
  }

  return { ownPayment, waitedFor };
}

/** Returns the message of a replay whose payment was not made. */
export function repeatedRefusal({ transaction: { deniedAt, status } }: RecordedPayment): {
  message?: string;
} {
  if (deniedAt === null || status === "reversed") return {};
  const decided = `This repeats the decision of ${deniedAt.toISOString()}; nothing was tried again.`;
  return { message: `${decided} A new attempt needs a new idempotencyKey.` };
}

export const paymentViewAt =
  (baseUrl: string) =>
  ({ transaction, approval }: RecordedPayment) => ({
    transaction: transactionView(transaction),
    approval: approval === null ? null : approvalView(approval),
    approvalUrl:
      approval === null || approval.resolution !== null ? null : `${baseUrl}/approvals/${approval._id}`,
    card: paymentCardView(transaction, baseUrl),
    raise: raiseOf(transaction, baseUrl),
  });

/** Returns a payment's card. `credential` is null, since no issuer yet grants one in place of a card. */
export const paymentCardView = (
  { _id: id, ledgerState: { card }, stage }: Pick<TransactionDocument, "_id" | "ledgerState" | "stage">,
  baseUrl: string,
) =>
  card === undefined
    ? null
    : {
        last4: card.last4,
        stage,
        readyUntil: new Date(card.readyUntil).toISOString(),
        viewUrl: `${baseUrl}/cards/${id}`,
        credential: null,
      };

/** Returns where a person can make room for a denied payment. Only limits on amounts can be raised. */
const raiseOf = (
  { agentId, denialCode }: Pick<TransactionDocument, "agentId" | "denialCode">,
  baseUrl: string,
): { possible: boolean; url: string } | null =>
  denialCode === null
    ? null
    : { possible: RAISABLE.some((code) => code === denialCode), url: `${baseUrl}/agents/${agentId}` };
