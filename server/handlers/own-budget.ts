import type { AgentDocument } from "../../src/store/documents.ts";
import { awaitFlush } from "../../src/actors/catch-up.ts";
import { refusal } from "../../src/domain/errors.ts";
import type { Denial } from "../../src/domain/ledger/policy.ts";
import { ok, refused } from "../../src/domain/result.ts";
import type { AccountView } from "../../src/messages/ledger.ts";
import type { CheckedOrder, Payments } from "../../src/payments/payments.ts";
import { budgetPolicyView, denialDetailsView } from "../../src/views/views.ts";
import { accountsOf } from "./agent-accounts.ts";
import type { HandlerDependencies } from "./dependencies.ts";
import { profileOf } from "./dependencies.ts";
import { orderOf, wrongRecipient } from "./payment-orders.ts";
import type { Handlers } from "./types.ts";

export type OwnBudgetHandlers = Pick<Handlers, "getBudget" | "getWallet" | "checkPayment">;

/** Handlers for an agent's questions before it pays: its budget, its wallet, and what would become of a payment. */
export function ownBudgetHandlers(dependencies: HandlerDependencies, payments: Payments): OwnBudgetHandlers {
  const { clock, ledgers } = dependencies;
  const accountOf = accountsOf(dependencies);

  async function budgetOf(agent: AgentDocument, order: CheckedOrder | null) {
    await awaitFlush(ledgers.flush(agent, agent._id));
    const payment = order === null ? null : await payments.assessed(profileOf(agent), order);
    return accountOf(agent, { now: clock().getTime(), payment });
  }

  return {
    async getBudget(_input, { principal }) {
      return ok({ body: agentBudgetView(await budgetOf(principal.agent, null)) });
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
      const wrong =
        body.recipient === undefined
          ? null
          : wrongRecipient(dependencies.wallets, principal.agent, body.recipient);
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
  };
}

/** The agent's own policy and usage, and what the caps over it leave; null: no cap. */
const agentBudgetView = (account: AccountView) => ({
  ...budgetPolicyView(account),
  team: { remainingCents: account.teamRemainingCents },
  project: { remainingCents: account.projectRemainingCents },
});

function detailsOf(denial: Denial | null) {
  const details = denial?.details ?? null;
  if (details === null) return null;
  const { limit, remaining, resetsAt } = details;
  return { limit, remaining, resetsAt: resetsAt === null ? null : new Date(resetsAt) };
}
