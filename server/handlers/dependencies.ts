import type { PaymentEffects } from "../../activities/effects.ts";
import type { EventJournal } from "../../activities/journal.ts";
import type { DeliveryWindows, Rails } from "../../activities/ports.ts";
import type { HmacPaymentProofs } from "../../activities/payment-proofs.ts";
import type { Wallets } from "../../activities/rails/wallet/index.ts";
import type { AgentDocument } from "../../activities/documents.ts";
import type { AuditSeal } from "../../src/domain/audit/entry.ts";
import type { AgentProfile } from "../../src/domain/agent/state.ts";
import type { AgentActors } from "../actors/agent-actors.ts";
import type { Ledgers } from "../actors/ledgers.ts";
import type { TemporalActors } from "../actors/temporal.ts";
import type { AuthService } from "../auth/service.ts";
import type { ContainerBudgets } from "../budgets/container-budgets.ts";
import type { Streams } from "../changes/streams.ts";
import type { Collections } from "../collections.ts";
import type { Containers } from "../containers/containers.ts";
import type { Logos } from "../containers/logos.ts";
import type { Creates } from "../creates/creates.ts";
import type { KeyDeliveries } from "../key-deliveries/key-deliveries.ts";
import type { DailyCreates } from "../creates/daily-creates.ts";
import type { Lists } from "../lists.ts";
import type { OrganizationKeys } from "../organization-keys/keys.ts";
import type { Logger } from "../logger.ts";
import type { PaymentChanges } from "../payment-changes.ts";
import type { KeyedMutex } from "../keyed-mutex.ts";
import type { WebhookEndpoints } from "../webhooks/endpoints.ts";
import type { Webhooks } from "../webhooks/webhooks.ts";
import type { Metrics } from "../metrics/metrics.ts";

/** What handlers work with; put together once, in the composition root. */
export interface HandlerDependencies {
  readonly collections: Collections;
  readonly actors: TemporalActors;
  readonly agents: AgentActors;
  readonly ledgers: Ledgers;
  readonly effects: PaymentEffects;
  readonly proofs: HmacPaymentProofs;
  readonly rails: Rails;
  readonly journal: EventJournal;
  /** Null where no chain is set up. */
  readonly wallets: Wallets | null;
  readonly lists: Lists;
  readonly auth: AuthService;
  readonly organizationKeys: OrganizationKeys;
  readonly creates: Creates;
  readonly keyDeliveries: KeyDeliveries;
  readonly windows: DeliveryWindows;
  readonly dailyCreates: DailyCreates;
  readonly containers: Containers;
  readonly mutex: KeyedMutex;
  readonly containerBudgets: ContainerBudgets;
  readonly logos: Logos;
  readonly webhooks: Webhooks & { readonly endpoints: WebhookEndpoints };
  readonly auditSeal: AuditSeal;
  readonly hashApiKey: (value: string) => string;
  readonly clock: () => Date;
  readonly logger: Logger;
  readonly metrics: Metrics;
  readonly paymentChanges: PaymentChanges;
  readonly streams: Streams;
  /** Where people reach the service's pages. */
  readonly baseUrl: string;
  /** Where agents reach the MCP server, without `/mcp`. */
  readonly mcpUrl: string;
  readonly approvalWindowSeconds: number;
  readonly keyDeliveryWindowSeconds: number;
}

/** The actor's view of an agent, from its record. */
export const profileOf = (agent: AgentDocument): AgentProfile => ({
  organizationId: agent.organizationId,
  projectId: agent.projectId,
  teamId: agent.teamId,
  agentId: agent._id,
  name: agent.name,
});
