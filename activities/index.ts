import type { Db } from "mongodb";
import type { AuditLog } from "./audit/appender.ts";
import { agentsUnder } from "./budgets.ts";
import { type AgentDocument, COLLECTIONS } from "./documents.ts";
import { provisionOrganization } from "./organizations.ts";
import { createPaymentActivities, type PaymentActivityDependencies } from "./payments.ts";
import type { MailActivities } from "./mail/invite-mail.ts";
import type { DeliveryWindows, LimitMirror, Treasuries } from "./ports.ts";
import { detachEverywhere } from "./rails/detach.ts";
import type { Activities } from "./types.ts";
import type { WebhookActivities } from "./webhooks/activities.ts";

export interface ActivityDependencies extends PaymentActivityDependencies {
  readonly auditLog: AuditLog;
  readonly db: Db;
  readonly limits: LimitMirror;
  readonly windows: DeliveryWindows;
  readonly webhooks: WebhookActivities;
  readonly mail: MailActivities;
  readonly treasuries: Treasuries;
}

/** The activities over their dependencies; the worker registers them. */
export function createActivities(dependencies: ActivityDependencies): Activities {
  const { auditLog, clock, db, limits, projections, rails, treasuries, windows } = dependencies;

  return {
    ...createPaymentActivities(dependencies),
    ...dependencies.webhooks,
    ...dependencies.mail,

    agentsUnder: ({ projectId, teams }) =>
      agentsUnder(db.collection<AgentDocument>(COLLECTIONS.agents), projectId, teams),

    writeAgentSummary: ({ agentId, summary }) => projections.writeAgentSummary(agentId, summary),

    mirrorLimits: ({ agentId, policy, policyVersion }) => limits.mirror(agentId, policy, policyVersion),

    closeDeliveryWindow: ({ agentId }) => windows.close(agentId),

    async detachWallet({ profile }) {
      const end = await detachEverywhere(rails, profile);
      if (end === "pending") throw new Error("the wallet is not detached yet");
    },

    provisionOrganization: (input) => provisionOrganization({ auditLog, db, treasuries }, input, clock()),
  };
}
