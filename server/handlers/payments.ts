import type { AgentDocument } from "../../src/store/documents.ts";
import { RAIL_OF } from "../../src/contract/rails.ts";
import { rail } from "../../src/contract/records.ts";
import type { Denial } from "../../src/domain/ledger/policy.ts";
import { type Rail, SETTLES_ON } from "../../src/domain/ledger/payment.ts";
import { withChecksum } from "../../src/domain/address.ts";
import { type Refusal, refusal } from "../../src/domain/errors.ts";
import { ok, refused, type Result } from "../../src/domain/result.ts";
import type { AccountView } from "../../src/messages/ledger.ts";
import type { CheckedOrder, Payer, PaymentOrder, RecordedPayment } from "../../src/payments/payments.ts";
import { Payments } from "../../src/payments/payments.ts";
import { outcomeOf } from "../../src/payments/payment-outcome.ts";
import type { Deadline } from "../../src/lib/deadline.ts";
import type { AgentPrincipal } from "../../src/identity/principals.ts";
import { approvalView, budgetPolicyView, denialDetailsView, transactionView } from "../../src/views/views.ts";
import { definedFields } from "../../src/store/lists.ts";
import { newUuid } from "../../src/lib/ids.ts";
import { accountsOf } from "./agent-accounts.ts";
import { awaitFlush } from "../../src/actors/catch-up.ts";
import type { HandlerDependencies } from "./dependencies.ts";
import { profileOf } from "./dependencies.ts";
import type { Handlers } from "./types.ts";

type PaymentHandlers = Pick<
  Handlers,
  | "createPayment"
  | "createCardPayment"
  | "createWalletPayment"
  | "getWallet"
  | "checkPayment"
  | "getPayment"
  | "listPayments"
  | "cancelPayment"
  | "getDenialFeedback"
  | "getBudget"
>;

/** Of an answer that has waited, for all that comes after the waiting. */
const ANSWERED_MS = 1_500;

/** How long an answer is to wait for its payment, and its deadline, which moves with that. */
interface Waiting {
  readonly deadline: Deadline;
  readonly waitSeconds: number;
}

/** Denials that `get_denial_feedback` returns by default. */
const DENIALS_MAX = 20;

function payerOf({ agent, keyId, cached }: AgentPrincipal): Payer {
  const payer = { profile: profileOf(agent), keyId };
  if (cached === undefined) return payer;
  const { revision } = cached;
  const verify = async (): Promise<Result<Payer>> => {
    const verified = await cached.verify();
    return verified.ok ? ok(payerOf(verified.value)) : verified;
  };
  return { ...payer, cached: { revision, verify } };
}

/** The agent toolset, and its REST twins. */
export function paymentHandlers(dependencies: HandlerDependencies): PaymentHandlers {
  const { baseUrl, clock, collections, ledgers, lists, logger, paymentChanges } = dependencies;
  const accountOf = accountsOf(dependencies);
  const payments = new Payments(dependencies);
  const paymentView = paymentViewAt(baseUrl);

  async function pay(principal: AgentPrincipal, order: PaymentOrder, { deadline, waitSeconds }: Waiting) {
    const { agent } = principal;
    const wrong = SETTLES_ON[order.rail] === "chain" ? wrongRecipient(agent, order.recipient) : null;
    if (wrong !== null) return refused(wrong);
    const paid = await payments.pay(payerOf(principal), order, deadline);
    if (!paid.ok) return paid;
    const known = await waitedFor(agent, paid.value, { deadline, waitSeconds });
    return ok({ body: paymentView(known), ...(known.replayed ? { status: 200 as const } : {}) });
  }

  /** The payment once it was decided and came to its end, or as it is when the caller wants to wait no longer. */
  async function waitedFor(
    agent: AgentDocument,
    payment: RecordedPayment,
    { deadline, waitSeconds }: Waiting,
  ): Promise<RecordedPayment> {
    if (waitSeconds === 0) return payment;
    deadline.moveTo(deadline.elapsedMs + waitSeconds * 1_000 + ANSWERED_MS);
    const { _id } = payment.transaction;
    return outcomeOf(payment, waitSeconds * 1_000, {
      changes: paymentChanges,
      async read() {
        const known = await ownPayment(agent, _id);
        if (known === null) throw new Error(`the record of ${_id} is gone`);
        return known;
      },
      onError: (err) => logger.warn({ err, transactionId: _id }, "a wait for a payment ended early"),
    });
  }

  /** Money sent there would not move, or be lost; the shape of an address is judged before. */
  function wrongRecipient(agent: AgentDocument, recipient: string): Refusal | null {
    const isSame = (address: string | undefined) => address?.toLowerCase() === recipient.toLowerCase();
    const message = isSame(agent.wallet?.address)
      ? "must not be the agent's own wallet"
      : isSame(dependencies.wallets?.config.token)
        ? "must not be the token itself"
        : null;
    if (message === null) return null;
    return refusal("VALIDATION_FAILED", undefined, { issues: [{ path: "recipient", message }] });
  }

  async function ownPayment(agent: AgentDocument, id: string): Promise<RecordedPayment | null> {
    const transaction = await collections.transactions.findOne({ _id: id, agentId: agent._id });
    if (transaction === null) return null;
    const { approvalId } = transaction;
    const approval = approvalId === null ? null : await collections.approvals.findOne({ _id: approvalId });
    return { transaction, approval, replayed: false };
  }

  async function budgetOf(agent: AgentDocument, order: CheckedOrder | null) {
    await awaitFlush(ledgers.flush(agent, agent._id));
    const payment = order === null ? null : await payments.assessed(profileOf(agent), order);
    return accountOf(agent, { now: clock().getTime(), payment });
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

    async getWallet(_input, { principal: { agent } }) {
      const wallet = agent.wallet ?? null;
      if (wallet === null) return refused(refusal("NOT_FOUND", "The agent has no wallet."));
      const balance = await dependencies.rails.wallet.balance(profileOf(agent));
      if (balance.kind !== "cents") {
        const message = "The chain does not answer, so the balance can't be read.";
        return refused(refusal("SERVICE_UNAVAILABLE", message, { retryAfterSeconds: 1 }));
      }
      const { address, chainCaip2 } = wallet;
      return ok({ body: { address, chainCaip2, balanceCents: balance.cents, currency: "USD" } });
    },

    async checkPayment({ body }, { principal }) {
      const wrong = body.recipient === undefined ? null : wrongRecipient(principal.agent, body.recipient);
      if (wrong !== null) return refused(wrong);
      const budget = await budgetOf(principal.agent, orderOf(body));
      const { assessment } = budget;
      if (assessment === null) throw new Error("an assessment was requested and none was returned");
      const { denial, flaggedByRuleTypes } = assessment;
      const held = flaggedByRuleTypes.length > 0;
      return ok({
        body: {
          decision: denial !== null ? "denied" : held ? "held" : "approved",
          denialCode: denial?.code ?? null,
          denialReason: denial?.reason ?? null,
          denialDetails: denialDetailsView(detailsOf(denial)),
          flaggedByRuleTypes: [...flaggedByRuleTypes],
          budget: agentBudgetView(budget),
        },
      });
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
      // Never on hold.
      if (known.transaction.approvalId === null) return refused(refusal("PAYMENT_NOT_CANCELLABLE"));
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
              },
            ],
      );
      return ok({ body: { denials } });
    },

    async getBudget(_input, { principal }) {
      return ok({ body: agentBudgetView(await budgetOf(principal.agent, null)) });
    },
  };
}

/** The agent's own policy and usage, and what the caps over it leave; null: no cap. */
const agentBudgetView = (account: AccountView) => ({
  ...budgetPolicyView(account),
  team: { remainingCents: account.teamRemainingCents },
  project: { remainingCents: account.projectRemainingCents },
});

interface Recipient {
  readonly merchant?: string | undefined;
  readonly recipient?: string | undefined;
}

/** Whatever field of the body names its recipient. The contract ensures that the rail's own is there, and only that. */
function orderOf<T extends Recipient & { readonly rail: Rail }>({
  merchant,
  recipient = merchant,
  ...order
}: T) {
  if (recipient === undefined) throw new Error("a payment has no recipient");
  const isAddress = SETTLES_ON[order.rail] === "chain";
  return { ...order, recipient: isAddress ? withChecksum(recipient) : recipient };
}

const paymentViewAt =
  (baseUrl: string) =>
  ({ transaction, approval }: RecordedPayment) => ({
    transaction: transactionView(transaction),
    approval: approval === null ? null : approvalView(approval),
    approvalUrl:
      approval === null || approval.resolution !== null ? null : `${baseUrl}/approvals/${approval._id}`,
  });

function detailsOf(denial: Denial | null) {
  const details = denial?.details ?? null;
  if (details === null) return null;
  const { limit, remaining, resetsAt } = details;
  return { limit, remaining, resetsAt: resetsAt === null ? null : new Date(resetsAt) };
}
