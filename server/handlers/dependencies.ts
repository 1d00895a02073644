import type { RaiseRequestDocument } from "../../src/store/raise-documents.ts";
import type { Payments } from "../../src/payments/payments.ts";
import type { PaymentEffects } from "../../src/payments/effects.ts";
import type { EventJournal } from "../../src/store/journal.ts";
import type { DeliveryWindows, Rails } from "../../src/payments/ports.ts";
import type { AgentProofs } from "../../src/agents/agent-proofs.ts";
import type { AccessProofs } from "../../src/secrets/access-proofs.ts";
import type { HmacPaymentProofs } from "../../src/payments/payment-proofs.ts";
import type { CardConnections } from "../../src/rails/card/connections.ts";
import type { IssuedCards } from "../../src/rails/card/issued.ts";
import type { ChallengeRail } from "../../src/rails/challenge/rail.ts";
import type { Shops } from "../../src/rails/challenge/shops.ts";
import type { Wallets } from "../../src/rails/wallet/index.ts";
import type { AuditSeal } from "../../src/domain/audit/entry.ts";
import type { AgentActors } from "../../src/actors/agent-actors.ts";
import type { Ledgers } from "../../src/actors/ledgers.ts";
import type { TemporalActors } from "../../src/actors/temporal.ts";
import type { AuthService } from "../../src/identity/service.ts";
import type { ContainerBudgets } from "../../src/containers/container-budgets.ts";
import type { Streams } from "../../src/changes/streams.ts";
import type { Collections } from "../../src/store/collections.ts";
import type { Containers } from "../../src/containers/containers.ts";
import type { Logos } from "../../src/containers/logos.ts";
import type { Creates } from "../../src/agents/creates/creates.ts";
import type { KeyDeliveries } from "../../src/agents/key-deliveries/key-deliveries.ts";
import type { DailyCreates } from "../../src/agents/creates/daily-creates.ts";
import type { Lists } from "../../src/store/lists.ts";
import type { OrganizationKeys } from "../../src/identity/organization-keys/keys.ts";
import type { Logger } from "../../src/lib/logger.ts";
import type { WaitingCalls } from "../../src/payments/waiting-calls.ts";
import type { PaymentChanges } from "../../src/payments/payment-changes.ts";
import type { BoundedWork } from "../../src/lib/bounded-work.ts";
import type { KeyedMutex } from "../../src/lib/keyed-mutex.ts";
import type { WebhookEndpoints } from "../../src/webhooks/endpoints.ts";
import type { ClientConnections } from "../oauth/client-connections.ts";
import type { Webhooks } from "../../src/webhooks/webhooks.ts";
import type { Metrics } from "../../src/metrics/metrics.ts";

export interface HandlerDependencies {
  readonly collections: Collections;
  readonly actors: TemporalActors;
  readonly agents: AgentActors;
  readonly ledgers: Ledgers;
  readonly effects: PaymentEffects;
  readonly payments: Payments;
  readonly proofs: HmacPaymentProofs;
  readonly rails: Rails;
  readonly cards: IssuedCards;
  readonly cardConnections: CardConnections;
  readonly journal: EventJournal;
  /** Null without a configured chain. */
  readonly wallets: Wallets | null;
  /** Null without a configured chain. */
  readonly purchases: ChallengeRail | null;
  readonly shops: Shops;
  readonly lists: Lists;
  /** Runs long reads in turns, by organization. */
  readonly reads: BoundedWork;
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
  /** Null if OAuth is not served because MCP and the dashboard have different origins. */
  readonly connections: ClientConnections | null;
  readonly hashApiKey: (value: string) => string;
  readonly agentProofs: AgentProofs;
  readonly accessProofs: AccessProofs;
  readonly clock: () => Date;
  readonly logger: Logger;
  readonly metrics: Metrics;
  readonly paymentChanges: PaymentChanges;
  readonly raiseChanges: PaymentChanges<RaiseRequestDocument>;
  readonly waitingCalls: WaitingCalls;
  readonly streams: Streams;
  /** Base URL of the service's pages. */
  readonly baseUrl: string;
  /** Base URL of the MCP server, without `/mcp`. */
  readonly mcpUrl: string;
  readonly approvalWindowSeconds: number;
  readonly keyDeliveryWindowSeconds: number;
}
