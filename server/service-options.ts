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
  /** Whom passkeys are made for. */
  readonly relyingParty: RelyingParty;
  /** Plan of the organization that the set-up link makes. */
  readonly defaultPlan: Plan;
  /** Secret of the signature of billing's events; null: there is no billing. */
  readonly billingSecret: string | null;
  readonly approvalWindowSeconds: number;
  readonly keyDeliveryWindowSeconds: number;
  readonly payloadReaders: PayloadReaders;
  readonly trustedProxies: TrustedProxies;
  /** Connections that one address may have; null: a quarter of all. */
  readonly connectionsPerAddress: number | null;
  /** Names that requests to MCP, to the pages and with cookies may be for, besides those in the service's URLs. */
  readonly allowedHosts: readonly string[];
  readonly counts: Counts;
  /** Maximum time for requests under way when the service drains. */
  readonly drainTimeoutMs: number;
  readonly clock: () => Date;
  /** Cost of hashes of passwords; only tests set it. */
  readonly passwordCost?: PasswordCost;
  /** DNS servers that hold proofs of organizations' domains, none: those of the system; null: no proof is needed. */
  readonly ssoDomainServers: readonly string[] | null;
  /** Reach of the fetch of OAuth clients' documents; only tests set it. */
  readonly clientDocuments?: GuardOptions;
  readonly logger: Logger;
  /** Whether `/metrics` is on this port; false where it has one of its own. */
  readonly showsMetrics: boolean;
  /** Stands between the handlers and what they use; crash tests hold them at a chosen point. */
  readonly decorateBackends?: (backends: Backends) => Backends;
}

/** The dependencies of request handlers. */
export interface Backends {
  readonly actors: TemporalActors;
  readonly ledgers: Ledgers;
  readonly collections: Collections;
  readonly deliveryKeys: DeliveryKeys;
  readonly transaction: Transaction;
  /** Appends the entries of requests. Crash tests break it between a write and its entry. */
  readonly auditLog: AuditLog;
  /** Begins an invite's mail; null: there is no mail. */
  readonly mailInvite: Mailing["begin"] | null;
}
