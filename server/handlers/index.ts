import { agentHandlers } from "./agents.ts";
import { approvalRulesHandlers } from "./approval-rules.ts";
import { approvalHandlers } from "./approvals.ts";
import { auditLogHandlers } from "./audit-log.ts";
import { authHandlers } from "./auth.ts";
import { budgetHandlers } from "./budgets.ts";
import type { HandlerDependencies } from "./dependencies.ts";
import { memberHandlers } from "./members.ts";
import { organizationHandlers } from "./organization.ts";
import { organizationKeyHandlers } from "./organization-keys.ts";
import { passkeyHandlers } from "./passkeys.ts";
import { paymentHandlers } from "./payments.ts";
import { projectHandlers } from "./projects.ts";
import { sandboxHandlers } from "./sandbox.ts";
import { streamHandlers } from "./stream.ts";
import { teamHandlers } from "./teams.ts";
import { transactionHandlers } from "./transactions.ts";
import { webhookHandlers } from "./webhooks.ts";
import type { Handlers } from "./types.ts";

/** The handler of every operation; one that is missing does not compile. */
export const createHandlers = (dependencies: HandlerDependencies): Handlers => ({
  ...authHandlers(dependencies),
  ...passkeyHandlers(dependencies),
  ...auditLogHandlers(dependencies),
  ...memberHandlers(dependencies),
  ...organizationHandlers(dependencies),
  ...organizationKeyHandlers(dependencies),
  ...projectHandlers(dependencies),
  ...teamHandlers(dependencies),
  ...budgetHandlers(dependencies),
  ...approvalRulesHandlers(dependencies),
  ...agentHandlers(dependencies),
  ...paymentHandlers(dependencies),
  ...approvalHandlers(dependencies),
  ...transactionHandlers(dependencies),
  ...sandboxHandlers(dependencies),
  ...streamHandlers(dependencies),
  ...webhookHandlers(dependencies),
});
