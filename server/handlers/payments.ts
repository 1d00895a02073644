import type { AgentDocument } from "../../activities/documents.ts";
import type { Denial } from "../../src/domain/agent/policy.ts";
import { withChecksum } from "../../src/domain/address.ts";
import { type Refusal, refusal } from "../../src/domain/errors.ts";
import { ok, refused } from "../../src/domain/result.ts";
import type { BudgetView } from "../../src/messages/agent.ts";
import type { CapView } from "../../src/messages/budget.ts";
import type { CheckedOrder, PaymentOrder, RecordedPayment } from "../payments.ts";
import { Payments } from "../payments.ts";
import type { Deadline } from "../deadline.ts";
import { approvalView, budgetPolicyView, denialDetailsView, transactionView } from "../views.ts";
import { given } from "../lists.ts";
import { caughtUp } from "./catch-up.ts";
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

/** Denials that `get_denial_feedback` answers when it is not asked for one. */
const DENIALS_MAX = 20;

/** The agent band, and its REST twins. */
export function paymentHandlers(dependencies: HandlerDependencies): PaymentHandlers {
  const { collections, lists, mailboxes } = dependencies;
  const payments = new Payments(dependencies);

  async function pay(agent: AgentDocument, order: PaymentOrder, deadline: Deadline) {
    const paid = await payments.pay(profileOf(agent), order, deadline);
    if (!paid.ok) return paid;
    return ok({ body: paymentView(paid.value), ...(paid.value.replayed ? { status: 200 as const } : {}) });
  }

  async function payFromWallet(agent: AgentDocument, order: PaymentOrder, deadline: Deadline) {
    const wrong = wrongRecipient(agent, order.recipient);
    return wrong === null
      ? pay(agent, { ...order, recipient: withChecksum(order.recipient) }, deadline)
      : refused(wrong);
  }

  /** Money sent there would not move, or be lost; the shape of an address is judged before. */
  function wrongRecipient(agent: AgentDocument, recipient: string): Refusal | null {
    const isSame = (address: string | undefined) => address?.toLowerCase() === recipient.toLowerCase();
    const message = isSame(agent.wallet?.address)
      ? "must not be the agent's own wallet"
      : isSame(dependencies.wallets?.place.token)
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
    await caughtUp(mailboxes.flush(agent._id));
    const { actors, clock } = dependencies;
    const payment = order === null ? null : await payments.assessed(profileOf(agent), order);
    const budget = await actors.budget(agent._id, { now: clock().getTime(), payment });
    const { report } = budget;
    const amountCents = order?.amountCents ?? null;
    const caps = report === null ? null : await actors.previewCaps(agent.projectId, { report, amountCents });
    return { ...budget, caps };
  }

  return {
    async createPayment({ body }, { deadline, principal }) {
      if (body.rail === "wallet") return payFromWallet(principal.agent, body, deadline);
      const { merchant, ...order } = body;
      return pay(principal.agent, { ...order, recipient: merchant }, deadline);
    },

    createCardPayment({ body: { merchant, ...order } }, { deadline, principal }) {
      return pay(principal.agent, { ...order, rail: "card", recipient: merchant }, deadline);
    },

    createWalletPayment({ body }, { deadline, principal }) {
      return payFromWallet(principal.agent, { ...body, rail: "wallet" }, deadline);
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
      const budget = await budgetOf(principal.agent, checkedOrder(body));
      const { assessment } = budget;
      if (assessment === null) throw new Error("an assessment was asked for and none was given");
      const denial = assessment.denial ?? budget.caps?.denial ?? null;
      const flaggedByRuleTypes = denial === null ? assessment.flaggedByRuleTypes : [];
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

    async getPayment({ params }, { principal }) {
      const payment = await ownPayment(principal.agent, params.id);
      return payment === null ? refused(refusal("NOT_FOUND")) : ok({ body: paymentView(payment) });
    },

    async listPayments({ query }, { principal }) {
      const agentId = principal.agent._id;
      const page = await lists.page({
        collection: collections.transactions,
        list: "payments",
        filter: { agentId, ...given({ status: query.status }) },
        limit: query.limit,
        cursor: query.cursor,
      });
      if (!page.ok) return page;
      const { items, nextCursor } = page.value;
      return ok({ body: { payments: items.map(transactionView), nextCursor } });
    },

    async cancelPayment({ params }, { deadline, principal }) {
      const { agent } = principal;
      const known = await ownPayment(agent, params.id);
      if (known === null) return refused(refusal("NOT_FOUND"));
      // Never on hold; or not yet, since the caps may still refuse it, and a payment has one end.
      if (known.transaction.approvalId === null) return refused(refusal("PAYMENT_NOT_CANCELLABLE"));
      const reply = await mailboxes.submit(agent._id, { kind: "cancel", transactionId: params.id });
      if (reply.kind !== "payment") return refused(refusal("PAYMENT_NOT_CANCELLABLE"));
      if (reply.changed || reply.payment.status === "expired") {
        const cancelled = await payments.carryOutResolution(profileOf(agent), reply.payment, deadline);
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
const agentBudgetView = (budget: BudgetView & { readonly caps: CapView | null }) => ({
  ...budgetPolicyView(budget),
  team: { remainingCents: budget.caps?.teamRemainingCents ?? null },
  project: { remainingCents: budget.caps?.projectRemainingCents ?? null },
});

/** The contract has seen to it that the rail's own recipient is there. */
function checkedOrder({
  merchant,
  recipient = merchant,
  ...order
}: Omit<CheckedOrder, "recipient"> & {
  readonly merchant?: string | undefined;
  readonly recipient?: string | undefined;
}): CheckedOrder {
  if (recipient === undefined) throw new Error("a payment is checked that goes to nobody");
  return { ...order, recipient };
}

const paymentView = ({ transaction, approval }: RecordedPayment) => ({
  transaction: transactionView(transaction),
  approval: approval === null ? null : approvalView(approval),
});

function detailsOf(denial: Denial | null) {
  const details = denial?.details ?? null;
  if (details === null) return null;
  const { limit, remaining, resetsAt } = details;
  return { limit, remaining, resetsAt: resetsAt === null ? null : new Date(resetsAt) };
}
