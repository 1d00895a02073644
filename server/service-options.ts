import type { DeliveryKeys } from "../src/agents/key-deliveries/delivery-keys.ts";
import type { AuditLog } from "../src/audit/chain/appender.ts";
import type { Ledgers } from "../src/actors/ledgers.ts";
import type { TemporalActors } from "../src/actors/temporal.ts";
import type { Mailing } from "../src/identity/context.ts";
import type { PasswordCost } from "../src/identity/passwords.ts";
import type { RelyingParty } from "../src/identity/relying-party.ts";
import type { Collections } from "../src/store/collections.ts";
import type { TrustedProxies } from "./config-values.ts";
import type { PayloadReaders } from "./http/codec.ts";
import type { Plan } from "../src/store/identity-documents.ts";
import type { GuardOptions } from "../src/lib/guarded-fetch/guarded-fetch.ts";
import type { Connections } from "../src/store/connections.ts";
import type { Core } from "./core.ts";
import type { HttpServer } from "./http/server.ts";
import type { Counts } from "../src/limits/counts.ts";
import type { Logger } from "../src/lib/logger.ts";
import type { EngineWatch } from "./readiness.ts";
import type { MasterKey } from "../src/secrets/master-key.ts";
import type { Transaction } from "../src/store/transactions.ts";

export interface ServiceOptions {
  readonly http: HttpServer;
  readonly connections: Connections;
  readonly core: Core;
  readonly engines: EngineWatch;
  readonly masterKey: MasterKey;
  readonly baseUrl: string;
  readonly mcpUrl: string;
  readonly relyingParty: RelyingParty;
  /** Plan of the organization created by the set-up link. */
  readonly defaultPlan: Plan;
  /** Secret that signs billing events; null disables billing. */
  readonly billingSecret: string | null;
  readonly approvalWindowSeconds: number;
  readonly keyDeliveryWindowSeconds: number;
  readonly payloadReaders: PayloadReaders;
  readonly trustedProxies: TrustedProxies;
  /** Maximum connections per address; null: a quarter of all. */
  readonly connectionsPerAddress: number | null;
  /** Host names accepted by MCP, pages and requests with cookies, besides those in the service's URLs. */
  readonly allowedHosts: readonly string[];
  readonly counts: Counts;
  /** Maximum time for requests in flight when the service drains. */
  readonly drainTimeoutMs: number;
  readonly clock: () => Date;
  /** Cost of password hashes. Set only by tests. */
  readonly passwordCost?: PasswordCost;
  /**
   * DNS servers with the proofs of organizations' domains; empty for the system's servers, null if no proof is needed.
   */
  readonly ssoDomainServers: readonly string[] | null;
  /** Networks from which OAuth clients' documents may be fetched. Set only by tests. */
  readonly clientDocuments?: GuardOptions;
  readonly logger: Logger;
  /** Whether this port serves `/metrics` and what `/readyz` names. False if probes have a separate port. */
  readonly showsDetails: boolean;
  /** Wraps the dependencies of handlers. Crash tests block them at a chosen point. */
  readonly decorateBackends?: (backends: Backends) => Backends;
}

export interface Backends {
  readonly actors: TemporalActors;
  readonly ledgers: Ledgers;
  readonly collections: Collections;
  readonly deliveryKeys: DeliveryKeys;
  readonly transaction: Transaction;
  /** Appends the entries of requests. Crash tests break it between a write and its entry. */
  readonly auditLog: AuditLog;
  /** Starts the mailing of an invite; null if mail is disabled. */
  readonly mailInvite: Mailing["begin"] | null;
}
