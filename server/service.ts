import { collectDefaultMetrics, Registry } from "prom-client";
import { within } from "../activities/within.ts";
import { Authenticator } from "./authenticator.ts";
import type { Provision } from "./auth/context.ts";
import { createAuthService } from "./auth/service.ts";
import { collectionsOf, ensureServerIndexes } from "./collections.ts";
import type { Connections } from "./connections.ts";
import type { Core } from "./core.ts";
import { createHandlers } from "./handlers/index.ts";
import { createApp } from "./http/app.ts";
import type { HttpServer } from "./http/server.ts";
import { KeyUse } from "./key-use.ts";
import { Lists } from "./lists.ts";
import type { Logger } from "./logger.ts";
import { OrganizationKeys } from "./organization-keys/keys.ts";
import { Pipeline } from "./pipeline.ts";
import { missingParts } from "./readiness.ts";
import { hashApiKey } from "./secrets/api-key-hash.ts";
import type { MasterKey } from "./secrets/master-key.ts";

export interface ServiceOptions {
  readonly http: HttpServer;
  readonly connections: Connections;
  readonly core: Core;
  readonly masterKey: MasterKey;
  readonly baseUrl: string;
  readonly mcpUrl: string;
  readonly approvalWindowSeconds: number;
  readonly clock: () => Date;
  readonly logger: Logger;
}

export interface RunningService {
  /** Requests finish; what was carried out is told to the actors. */
  drain(): Promise<void>;
  /** Where the first organization is made; null once there is one. The link is a secret. */
  setUpLink(): Promise<string | null>;
}

/** Puts REST and MCP together over the core and begins to answer. */
export async function startService(options: ServiceOptions): Promise<RunningService> {
  const { baseUrl, clock, connections, core, http, logger, masterKey, mcpUrl } = options;
  const { db } = connections;
  const collections = collectionsOf(db);
  const auth = await createAuthService({ db, masterKey, baseUrl, clock, provision: provisioner(options) });
  await ensureServerIndexes(db);
  const useNotWritten = (err: unknown) => logger.warn({ err }, "the last use of keys was not written");
  const agentKeyUse = new KeyUse(collections.agents, clock, useNotWritten);
  const organizationKeyUse = new KeyUse(collections.organizationKeys, clock, useNotWritten);
  const hash = (value: string) => hashApiKey(masterKey, value);
  const organizationKeys = new OrganizationKeys({
    collections,
    hashApiKey: hash,
    clock,
    keyUse: organizationKeyUse,
    transaction: (writes) => db.client.withSession((session) => session.withTransaction(writes)),
  });
  const authenticator = new Authenticator({
    agents: collections.agents,
    hashApiKey: hash,
    authenticateSession: (token) => auth.authenticateSession(token),
    authenticateOrganizationKey: (value) => organizationKeys.authenticate(value),
    onAgentKeyUsed: ({ _id, key }) => {
      if (key === null) return;
      agentKeyUse.used(key.id, (at) => ({
        updateOne: { filter: { _id, "key.id": key.id }, update: { $max: { "key.lastUsedAt": at } } },
      }));
    },
  });
  const handlers = createHandlers({
    ...core,
    collections,
    lists: new Lists(masterKey.deriveKey("cursor-signing")),
    auth,
    organizationKeys,
    hashApiKey: hash,
    clock,
    logger,
    mcpUrl,
    approvalWindowSeconds: options.approvalWindowSeconds,
  });
  const metrics = new Registry();
  collectDefaultMetrics({ register: metrics });
  let draining = false;
  http.serve(
    createApp({
      authenticator,
      pipeline: new Pipeline({ handlers, collections, clock, logger }),
      baseUrl,
      logger,
      metrics,
      missing: () => missingParts(connections),
      draining: () => draining,
    }),
  );
  return {
    async setUpLink() {
      const token = await auth.setUpToken();
      return token === null ? null : `${baseUrl}/setup#token=${token}`;
    },
    async drain() {
      draining = true;
      await http.drain();
      await core.mailboxes.flushAll();
      await Promise.all([agentKeyUse.flush(), organizationKeyUse.flush()]);
    },
  };
}

/** How long the start of a provisioning may keep somebody who signs in; the answer has its own bound. */
const PROVISIONING_START_MS = 1_000;

/** Bounded, and never in anybody's way: what does not come off now is tried again at the owner's next sign-in. */
function provisioner({ core, logger }: ServiceOptions): Provision {
  return async ({ _id, defaultProjectId, defaultTeamId }, waitMs) => {
    const input = { organizationId: _id, defaultProjectId, defaultTeamId };
    try {
      await within(PROVISIONING_START_MS + waitMs, core.actors.provision(input, waitMs));
    } catch (err) {
      logger.warn({ err }, "the provisioning of an organization was not started in time");
    }
  };
}
