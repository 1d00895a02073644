import type { z } from "zod";
import type { checkedOffer } from "../../src/contract/purchases.ts";
import type { checkedPayment } from "../../src/contract/rails.ts";
import { WALLET_RAIL } from "../../src/domain/ledger/payment.ts";
import { type AgentDocument, profileOf } from "../../src/store/documents.ts";
import { awaitFlush } from "../../src/actors/catch-up.ts";
import { refusal } from "../../src/domain/errors.ts";
import type { Denial } from "../../src/domain/ledger/policy.ts";
import { decimalOf, MAX_MC, mcOf, usedCents } from "../../src/domain/money.ts";
import { ok, refused, type Result } from "../../src/domain/result.ts";
import type { Deadline } from "../../src/lib/deadline.ts";
import type { AccountView, LevelRest } from "../../src/messages/ledger.ts";
import type { CheckedOrder } from "../../src/payments/payment-orders.ts";
import { budgetPolicyView, denialDetailsView } from "../../src/views/views.ts";
import { spendLimitRestsView } from "../../src/views/spend-limits.ts";
import { accountsOf } from "./agent-accounts.ts";
import type { HandlerDependencies } from "./dependencies.ts";
import { orderOf, wrongRecipient } from "./payment-recipients.ts";
import { shopVisits } from "./shop-visits.ts";
import type { Handlers } from "./types.ts";

/** Time added to the deadline of a dry run that visits a shop. */
const VISIT_MS = 13_000;

/** A payment to check. `order` is null if nothing would be paid. */
interface Checked {
  readonly order: CheckedOrder | null;
  readonly offer: z.output<typeof checkedOffer> | null;
}

type OwnBudgetHandlers = Pick<Handlers, "getBudget" | "getWallet" | "checkPayment">;

export function ownBudgetHandlers(dependencies: HandlerDependencies): OwnBudgetHandlers {
  const { clock, ledgers, payments } = dependencies;
  const accountOf = accountsOf(dependencies);
  const visit = shopVisits(dependencies);

  async function budgetOf(agent: AgentDocument, order: CheckedOrder | null) {
    await awaitFlush(ledgers.flush(agent, agent._id));
    const payment = order === null ? null : await payments.assessed(profileOf(agent), order);
    return accountOf(agent, { now: clock().getTime(), payment });
  }

  /** Returns the payment to check; a free URL needs none. */
  async function checkedOrder(
    agent: AgentDocument,
    { amountCents, rail, url, ...body }: z.output<typeof checkedPayment>,
    deadline: Deadline,
  ): Promise<Result<Checked>> {
    if (url !== undefined) {
      deadline.moveTo(deadline.elapsedMs + VISIT_MS);
      return checkedPurchase(agent, { url, ...body });
    }
    if (rail === undefined || amountCents === undefined)
      throw new Error("the contract requires both rail and amount");
    const { recipient } = body;
    const wrong = recipient === undefined ? null : wrongRecipient(dependencies.wallets, agent, recipient);
    if (wrong !== null) return refused(wrong);
    return ok({ order: orderOf({ ...body, rail, amountCents }), offer: null });
  }

  async function checkedPurchase(
    agent: AgentDocument,
    {
      maxAmountCents,
      method = "GET",
      url,
    }: Pick<z.output<typeof checkedPayment>, "maxAmountCents" | "method"> & { readonly url: string },
  ): Promise<Result<Checked>> {
    const request = { url, method, headers: {}, body: null };
    const fetched = await visit.unpaid(agent, request);
    if (!fetched.ok) return fetched;
    const { httpStatus } = fetched.value;
    if (httpStatus !== 402)
      return ok({
        order: null,
        offer: { httpStatus, protocol: null, recipient: null, amount: decimalOf(0) },
      });
    const maxMc = maxAmountCents === undefined ? MAX_MC : mcOf(maxAmountCents);
    const found = await visit.offer(agent, request, fetched.value, maxMc);
    if (!found.ok) return found;
    const { amountMc, frame, payTo } = found.value;
    const purchase = { resource: new URL(url).href, amountMc };
    const order = {
      rail: WALLET_RAIL,
      recipient: payTo,
      amountCents: usedCents(amountMc),
      purchase,
    } as const;
    const offer = { httpStatus, protocol: frame.protocol, recipient: payTo, amount: decimalOf(amountMc) };
    return ok({ order, offer });
  }

  return {
    async getBudget(_input, { principal }) {
      return ok({ body: agentBudgetView(await budgetOf(principal.agent, null)) });
    },

    async getWallet(_input, { principal: { agent } }) {
      const wallet = agent.wallet ?? null;
      if (wallet === null) return refused(refusal("NOT_FOUND", "The agent has no wallet."));
      const balance = await dependencies.rails[WALLET_RAIL].balance(profileOf(agent));
      if (balance.kind !== "cents") {
        const message = "The chain does not answer, so the balance can't be read.";
        return refused(refusal("SERVICE_UNAVAILABLE", message, { retryAfterSeconds: 1 }));
      }
      const { address, chainCaip2 } = wallet;
      const { cents: balanceCents, pocketCents } = balance;
      return ok({ body: { address, chainCaip2, balanceCents, pocketCents, currency: "USD" } });
    },

    async checkPayment({ body }, { deadline, principal }) {
      const checked = await checkedOrder(principal.agent, body, deadline);
      if (!checked.ok) return checked;
      const { offer, order } = checked.value;
      const budget = await budgetOf(principal.agent, order);
      const { assessment } = budget;
      const { denial, flaggedByRuleTypes } = assessment ?? { denial: null, flaggedByRuleTypes: [] };
      const held = flaggedByRuleTypes.length > 0;
      return ok({
        body: {
          decision: denial !== null ? "denied" : held ? "held" : "approved",
          denialCode: denial?.code ?? null,
          denialReason: denial?.reason ?? null,
          denialDetails: denialDetailsView(detailsOf(denial)),
          flaggedByRuleTypes: [...flaggedByRuleTypes],
          budget: agentBudgetView(budget),
          offer,
        },
      });
    },
  };
}

/** Returns the agent's policy and usage, and what the caps above it leave; null for no cap. */
const agentBudgetView = (account: AccountView) => ({
  ...budgetPolicyView(account),
  spendableCents: account.spendableCents,
  team: levelRestView(account.team),
  project: levelRestView(account.project),
});

const levelRestView = ({ remainingCents, spendLimits }: LevelRest) => ({
  remainingCents,
  spendLimits: spendLimitRestsView(spendLimits),
});

function detailsOf(denial: Denial | null) {
  const details = denial?.details ?? null;
  if (details === null) return null;
  const { resetsAt } = details;
  return { ...details, resetsAt: resetsAt === null ? null : new Date(resetsAt) };
}
