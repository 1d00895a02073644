import type DataLoader from "dataloader";
import { LRUCache } from "lru-cache";
import type { Collection } from "mongodb";
import type { AgentDocument } from "../store/documents.ts";
import { classifyApiKey } from "../domain/api-key.ts";
import { refusal } from "../domain/errors.ts";
import type { Result } from "../domain/result.ts";
import { ok, refused } from "../domain/result.ts";
import type { SessionPrincipal } from "./session-principal.ts";
import type { AgentPrincipal, OrganizationKeyPrincipal, Principal } from "./principals.ts";
import type { ApiKeyHashes } from "../secrets/api-key-hash.ts";
import { batchLoader } from "../lib/batch-loader.ts";
import { isSameText } from "../lib/same-text.ts";
import { isUnavailable } from "../lib/unavailable.ts";
import { withTimeout } from "../lib/with-timeout.ts";

/** The part of a caller's 5 s that its credential's check may take. */
const AUTHENTICATION_MS = 3_000;

/** The cache of agents whose key was good: its size and TTL. The time does not affect what they may do: the ledger decides that. */
const CACHED_AGENTS_MAX = 5_000;
const CACHED_AGENT_MS = 30_000;

export interface AuthenticatorDependencies {
  readonly agents: Collection<AgentDocument>;
  readonly hashes: ApiKeyHashes;
  readonly authenticateSession: (token: string) => Promise<Result<SessionPrincipal>>;
  readonly authenticateOrganizationKey: (value: string) => Promise<Result<OrganizationKeyPrincipal>>;
  /** The connection that an access token of OAuth is for; null: the token is none, or no longer good. */
  readonly connectionOf: (token: string) => Promise<Connected | null>;
  /** Whether nobody but the service has written the agent's record: its key and scopes. */
  readonly isGenuine: (agent: AgentDocument) => boolean;
  /** Whether a key that was never used, as far as its agent's record shows, may be: its agent could be archived meanwhile. */
  readonly isFirstUseAccepted: (agent: AgentDocument) => Promise<boolean>;
  /** Told of every request that an agent's key made, with what the key is stored as under the newest master key. */
  readonly onAgentKeyUsed: (agent: AgentDocument, newestHash: string) => void;
}

/** Subject whose requests are counted together: a key, or a user whatever their sessions. */
export interface Caller {
  readonly id: string;
  readonly organizationId: string;
}

export interface Authentication {
  readonly result: Result<Principal>;
  /** Known even where a good credential is refused, as a paused agent's is; null: unknown. */
  readonly caller: Caller | null;
}

/** An agent and its key that a client is connected by. */
export interface Connected {
  readonly agentId: string;
  readonly keyId: string;
}

/** Text that a connection's key is stored as the hash of. Nobody can present it: it is no key and no token. */
export const connectionText = (keyId: string): string => `connection/${keyId}`;

export interface AuthenticationOptions {
  /** Whether an access token of OAuth is a credential here; it is one for MCP alone. */
  readonly takesConnections?: boolean;
  /** Whether an agent from the cache will do: its request is judged by the agent's current state. */
  readonly mayUseCache?: boolean;
}

interface AgentAuthentication extends Authentication {
  readonly result: Result<AgentPrincipal>;
}

const unauthenticated: AgentAuthentication = { result: refused(refusal("UNAUTHORIZED")), caller: null };

/** Says what is wrong with a header that no credential would be good in, such as one in quotes. */
const malformed: AgentAuthentication = {
  result: refused(
    refusal("UNAUTHORIZED", "Send the credential as `Authorization: Bearer <credential>`, without quotes."),
  ),
  caller: null,
};

/** The credential of a header, as visible ASCII; null: it is not of the bearer scheme, or in quotes. */
const bearerIn = (header: string): string | null =>
  /^Bearer +((?!["'])[\x21-\x7e]{1,4096})$/i.exec(header)?.[1] ?? null;

/**
 * Verifies the bearer credential of a request against the database: a revoked key or session is dead on the next request. Only for
 * payments an agent may be remembered, since its project's ledger refuses what the agent's record would refuse by now. A mistyped key is
 * refused by its checksum, without a look-up.
 */
export class Authenticator {
  readonly #dependencies: AuthenticatorDependencies;
  /** Loads of requests that arrive together are batched; nothing is cached for later ones. */
  readonly #agentsByHash: DataLoader<PresentedKey, AgentDocument | null>;
  readonly #cached = new LRUCache<string, AgentPrincipal>({ max: CACHED_AGENTS_MAX, ttl: CACHED_AGENT_MS });

  constructor(dependencies: AuthenticatorDependencies) {
    this.#dependencies = dependencies;
    this.#agentsByHash = batchLoader((keys) => agentsOf(dependencies.agents, keys));
  }

  async authenticate(
    header: string | undefined,
    options: AuthenticationOptions = {},
  ): Promise<Authentication> {
    if (header === undefined) return unauthenticated;
    const token = bearerIn(header);
    if (token === null) return malformed;
    try {
      return await withTimeout(AUTHENTICATION_MS, this.#verify(token, options));
    } catch (error) {
      if (!isUnavailable(error)) throw error;
      const unavailable = refusal("SERVICE_UNAVAILABLE", undefined, { retryAfterSeconds: 1 });
      return { result: refused(unavailable), caller: null };
    }
  }

  async #verify(
    token: string,
    { mayUseCache = false, takesConnections = false }: AuthenticationOptions,
  ): Promise<Authentication> {
    switch (classifyApiKey(token)) {
      case "agent": {
        const key = this.#dependencies.hashes.all(token);
        return (mayUseCache ? this.#cachedAgent(key) : null) ?? (await this.#agent(key));
      }
      case "organization": {
        const result = await this.#dependencies.authenticateOrganizationKey(token);
        if (!result.ok) return unauthenticated;
        const { keyId, organizationId } = result.value;
        return { result, caller: { id: keyId, organizationId } };
      }
      case null: {
        if (takesConnections && isAccessToken(token)) return this.#connection(token);
        const result = await this.#dependencies.authenticateSession(token);
        // The result may say that the key was good, and what to do.
        if (!result.ok) return { result, caller: null };
        const { userId, organizationId } = result.value;
        return { result, caller: { id: userId, organizationId } };
      }
    }
  }

  #cachedAgent(key: PresentedKey): Authentication | null {
    const principal = this.#cached.get(newestOf(key));
    if (principal === undefined) return null;
    const { agent, keyId } = principal;
    this.#dependencies.onAgentKeyUsed(agent, newestOf(key));
    const verify = async (): Promise<Result<AgentPrincipal>> =>
      (await withTimeout(AUTHENTICATION_MS, this.#agent(key))).result;
    const cached = { revision: agent.revision, verify };
    return {
      result: ok({ ...principal, cached }),
      caller: { id: keyId, organizationId: agent.organizationId },
    };
  }

  /** A connection is verified at each request: its token may have ended, whatever its key is. */
  async #connection(token: string): Promise<AgentAuthentication> {
    const { agents, connectionOf, hashes } = this.#dependencies;
    const connected = await connectionOf(token);
    if (connected === null) return unauthenticated;
    const { agentId: _id, keyId } = connected;
    const agent = await agents.findOne({ _id, "key.id": keyId });
    if (agent?.key?.connection === undefined) return unauthenticated;
    return this.#admit(agent, hashes.all(connectionText(keyId)));
  }

  async #agent(key: PresentedKey): Promise<AgentAuthentication> {
    const newestHash = newestOf(key);
    this.#cached.delete(newestHash);
    const admitted = await this.#admit(await this.#agentsByHash.load(key), key);
    if (admitted.result.ok) this.#cached.set(newestHash, admitted.result.value);
    return admitted;
  }

  async #admit(agent: AgentDocument | null, key: PresentedKey): Promise<AgentAuthentication> {
    const newestHash = newestOf(key);
    const { isFirstUseAccepted, isGenuine, onAgentKeyUsed } = this.#dependencies;
    if (agent === null || agent.key === null || agent.lifecycle === "archived") return unauthenticated;
    if (matching(key, agent.key.hash) === null || !isGenuine(agent)) return unauthenticated;
    const isFirst = (agent.authenticatedAt ?? null) === null;
    if (isFirst && !(await isFirstUseAccepted(agent))) return unauthenticated;
    onAgentKeyUsed(agent, newestHash);
    const caller = { id: agent.key.id, organizationId: agent.organizationId };
    if (agent.lifecycle === "paused") return { result: refused(refusal("AGENT_PAUSED")), caller };
    const principal: AgentPrincipal = { type: "agent", agent, keyId: agent.key.id };
    return { result: ok(principal), caller };
  }
}

/** Whether it has the form of an opaque token; a session's token has dots. */
const isAccessToken = (token: string): boolean => /^[\w-]{43}$/.test(token);

/** Forms that a presented key may be stored in, the newest first. */
type PresentedKey = readonly string[];

const newestOf = ([newest = ""]: PresentedKey): string => newest;

/** The hash that a record has of a presented key; null: it is another key's. */
const matching = (key: PresentedKey, stored: string): string | null =>
  key.find((hash) => isSameText(hash, stored)) ?? null;

async function agentsOf(
  agents: Collection<AgentDocument>,
  keys: readonly PresentedKey[],
): Promise<(AgentDocument | null)[]> {
  const found = await agents.find({ "key.hash": { $in: keys.flat() } }).toArray();
  const byHash = new Map(found.map((agent) => [agent.key?.hash, agent]));
  return keys.map((key) => key.map((hash) => byHash.get(hash)).find((agent) => agent !== undefined) ?? null);
}
