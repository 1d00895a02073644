import { agentHandlers } from "./agents.ts";
import { approvalRulesHandlers } from "./approval-rules.ts";
import { restrictionsHandlers } from "./restrictions.ts";
import { agentPolicyHandlers } from "./agent-policy.ts";
import { agentSummaryHandlers } from "./agent-summary.ts";
import { agentWalletHandlers } from "./agent-wallet.ts";
import { approvalContextHandlers } from "./approval-context.ts";
import { approvalHandlers } from "./approvals.ts";
import { auditVerificationHandlers } from "./audit-verification.ts";
import { auditLogHandlers } from "./audit-log.ts";
import { authHandlers } from "./auth.ts";
import { budgetHandlers } from "./budgets.ts";
import { calendarHandlers } from "./calendar.ts";
import type { HandlerDependencies } from "./dependencies.ts";
import { connectionHandlers } from "./connections.ts";
import { fundingHandlers } from "./fundings.ts";
import { memberHandlers } from "./members.ts";
import { notificationHandlers } from "./notifications.ts";
import { organizationHandlers } from "./organization.ts";
import { organizationKeyHandlers } from "./organization-keys.ts";
import { passkeyHandlers } from "./passkeys.ts";
import { ownBudgetHandlers } from "./own-budget.ts";
import { paymentHandlers } from "./payments.ts";
import { purchaseHandlers } from "./purchases.ts";
import { projectHandlers } from "./projects.ts";
import { railHandlers } from "./rails.ts";
import { raiseRequestHandlers } from "./raise-requests.ts";
import { sandboxHandlers } from "./sandbox.ts";
import { simulationHandlers } from "./simulations.ts";
import { ssoHandlers } from "./sso.ts";
import { stopHandlers } from "./stops.ts";
import { streamHandlers } from "./stream.ts";
import { teamHandlers } from "./teams.ts";
import { transactionStoryHandlers } from "./transaction-story.ts";
import { transactionSummaryHandlers } from "./transaction-summary.ts";
import { transactionHandlers } from "./transactions.ts";
import { webhookDeliveryHandlers } from "./webhook-deliveries.ts";
import { webhookHandlers } from "./webhooks.ts";
import type { Handlers } from "./types.ts";

/** Handlers of all operations. A missing one does not compile. */
export const createHandlers = (dependencies: HandlerDependencies): Handlers => ({
  ...authHandlers(dependencies),
  ...passkeyHandlers(dependencies),
  ...auditLogHandlers(dependencies),
  ...auditVerificationHandlers(dependencies),
  ...memberHandlers(dependencies),
  ...notificationHandlers(dependencies),
  ...organizationHandlers(dependencies),
  ...organizationKeyHandlers(dependencies),
  ...projectHandlers(dependencies),
  ...teamHandlers(dependencies),
  ...ssoHandlers(dependencies),
  ...stopHandlers(dependencies),
  ...budgetHandlers(dependencies),
  ...calendarHandlers(dependencies),
  ...approvalRulesHandlers(dependencies),
  ...restrictionsHandlers(dependencies),
  ...simulationHandlers(dependencies),
  ...agentHandlers(dependencies),
  ...agentPolicyHandlers(dependencies),
  ...agentSummaryHandlers(dependencies),
  ...agentWalletHandlers(dependencies),
  ...connectionHandlers(dependencies),
  ...fundingHandlers(dependencies),
  ...paymentHandlers(dependencies),
  ...ownBudgetHandlers(dependencies),
  ...purchaseHandlers(dependencies),
  ...railHandlers(dependencies),
  ...approvalHandlers(dependencies),
  ...approvalContextHandlers(dependencies),
  ...raiseRequestHandlers(dependencies),
  ...transactionHandlers(dependencies),
  ...transactionStoryHandlers(dependencies),
  ...transactionSummaryHandlers(dependencies),
  ...sandboxHandlers(dependencies),
  ...streamHandlers(dependencies),
  ...webhookHandlers(dependencies),
  ...webhookDeliveryHandlers(dependencies),
});
