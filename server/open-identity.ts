import { forgedRecordsLog } from "../src/secrets/forged-records-log.ts";
import { AgentProofs } from "../src/agents/agent-proofs.ts";
import { FirstUses } from "../src/agents/first-uses.ts";
import { KeyUse } from "../src/agents/key-use.ts";
import { Authenticator, type AuthenticatorDependencies } from "../src/identity/authenticator.ts";
import type { Mailing, Provision } from "../src/identity/context.ts";
import { inviteLink } from "../src/identity/invite-link.ts";
import { OrganizationKeys } from "../src/identity/organization-keys/keys.ts";
import { Organizations } from "../src/identity/organizations.ts";
import { DomainProofs } from "../src/identity/sso/domain-proofs.ts";
import { Providers } from "../src/identity/sso/providers.ts";
import { GuardedFetch } from "../src/lib/guarded-fetch/guarded-fetch.ts";
import { createAuthService } from "../src/identity/service.ts";
import type { KeyedMutex } from "../src/lib/keyed-mutex.ts";
import { withTimeout } from "../src/lib/with-timeout.ts";
import { apiKeyHashes } from "../src/secrets/api-key-hash.ts";
import { authCollections } from "../src/store/identity-documents.ts";
import type { Backends, ServiceOptions } from "./service-options.ts";

/**
 * Returns the fetch for identity providers, the one of webhooks' receivers: it also reaches company networks and
 * accepts private authorities.
 */
const providerGuard = ({ clientDocuments, core }: ServiceOptions): GuardedFetch =>
  clientDocuments === undefined ? core.webhooks.guard : new GuardedFetch(clientDocuments);

/** Opens authentication: people's sessions, keys of organizations and agents, and the recording of last uses. */
export async function openIdentity(
  options: ServiceOptions,
  { collections, mailInvite }: Backends,
  mutex: KeyedMutex,
  connectionOf: AuthenticatorDependencies["connectionOf"],
) {
  const { baseUrl, clock, connections, core, logger, masterKey } = options;
  const { accessProofs } = core;
  const { db } = connections;
  const organizations = Organizations.in(authCollections(db).organizations, clock);
  const useNotWritten = (err: unknown) =>
    logger.warn({ err }, "the last use of keys and sessions was not written");
  const { sessions, users } = authCollections(db);
  const sessionUse = new KeyUse(sessions, clock, useNotWritten);
  const auth = await createAuthService({
    db,
    masterKey,
    accessProofs,
    baseUrl,
    relyingParty: options.relyingParty,
    clock,
    ...(options.passwordCost === undefined ? {} : { passwordCost: options.passwordCost }),
    defaultPlan: options.defaultPlan,
    organizations,
    provision: provisioner(options),
    mailing: mailingOf(options, mailInvite),
    providers: new Providers(providerGuard(options)),
    domainProofs: options.ssoDomainServers === null ? null : new DomainProofs(options.ssoDomainServers),
    onSessionUsed: (_id) =>
      sessionUse.used(_id, (lastSeenAt) => ({
        updateOne: { filter: { _id }, update: { $max: { lastSeenAt } } },
      })),
  });
  const agentKeyUse = new KeyUse(collections.agents, clock, useNotWritten);
  const organizationKeyUse = new KeyUse(collections.organizationKeys, clock, useNotWritten);
  const hashes = apiKeyHashes(masterKey);
  const onForged = forgedRecordsLog(logger, core.metrics);
  const agentProofs = new AgentProofs(masterKey.macs("agent-proofs"), (id) => onForged("agent", id));
  const organizationKeys = new OrganizationKeys({
    collections,
    users,
    organizations,
    accessProofs,
    hashes,
    clock,
    keyUse: organizationKeyUse,
    mutex,
  });
  const firstUses = new FirstUses(core.agents, ({ agentId: _id, at: authenticatedAt, keyId }) =>
    agentKeyUse.used(`${keyId}/first`, () => ({
      updateOne: { filter: { _id, authenticatedAt: null }, update: { $set: { authenticatedAt } } },
    })),
  );
  const authenticator = new Authenticator({
    agents: collections.agents,
    hashes,
    authenticateSession: (token) => auth.authenticateSession(token),
    authenticateOrganizationKey: (value) => organizationKeys.authenticate(value),
    connectionOf,
    isGenuine: (agent) => agentProofs.isGenuine(agent),
    isFirstUseAccepted: (agent) => firstUses.accept(agent),
    onAgentKeyUsed: ({ _id, key }, newestHash) => {
      if (key === null) return;
      agentKeyUse.used(key.id, (at) => ({
        updateOne: { filter: { _id, "key.id": key.id }, update: { $max: { "key.lastUsedAt": at } } },
      }));
      if (key.hash === newestHash) return;
      const rehashed = { ...key, hash: newestHash };
      const change = { "key.hash": newestHash, "key.proof": agentProofs.ofKey(_id, rehashed) };
      agentKeyUse.used(`${key.id}/hash`, () => ({
        updateOne: { filter: { _id, "key.id": key.id, "key.hash": key.hash }, update: { $set: change } },
      }));
    },
  });
  return {
    agentProofs,
    auth,
    authenticator,
    organizations,
    organizationKeys,
    hashApiKey: (value: string) => hashes.make(value),
    /** Writes the last uses that are not written yet. */
    flush: () => Promise.all([agentKeyUse.flush(), organizationKeyUse.flush(), sessionUse.flush()]),
  };
}

/** Returns the mailing of invites; null if mail is disabled. */
function mailingOf({ baseUrl, core }: ServiceOptions, begin: Mailing["begin"] | null): Mailing | null {
  if (begin === null) return null;
  return {
    linkOf: (token) => inviteLink(baseUrl, token),
    begin,
    onLimited: () => core.metrics.limitHit("mailed_invites"),
  };
}

/** Maximum delay of a sign-in by starting a provisioning. */
const PROVISIONING_START_TIMEOUT_MS = 1_000;

/**
 * Returns a function that starts provisioning. It is bounded and never blocks a caller; a failed start is retried at
 * the owner's next sign-in.
 */
function provisioner({ core, logger }: ServiceOptions): Provision {
  return async ({ _id, defaultProjectId, defaultTeamId }, waitMs) => {
    const input = { organizationId: _id, defaultProjectId, defaultTeamId };
    try {
      await withTimeout(PROVISIONING_START_TIMEOUT_MS + waitMs, core.actors.provision(input, waitMs));
    } catch (err) {
      logger.warn({ err }, "the provisioning of an organization was not started in time");
    }
  };
}
