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

/** Timeout for checking a credential, out of a caller's 5 s. */
const AUTHENTICATION_TIMEOUT_MS = 3_000;

/**
 * Size and TTL of the cache of authenticated agents. The TTL does not affect their rights: the ledger decides those.
 */
const CACHED_AGENTS_MAX = 5_000;
const CACHED_AGENT_TTL_MS = 30_000;

export interface AuthenticatorDependencies {
  readonly agents: Collection<AgentDocument>;
  readonly hashes: ApiKeyHashes;
  readonly authenticateSession: (token: string) => Promise<Result<SessionPrincipal>>;
  readonly authenticateOrganizationKey: (value: string) => Promise<Result<OrganizationKeyPrincipal>>;
  /** Returns the connection of an OAuth access token; null if the token is unknown or no longer valid. */
  readonly connectionOf: (token: string) => Promise<Connected | null>;
  /** Whether the agent's key and scopes are unchanged since the service wrote them. */
  readonly isGenuine: (agent: AgentDocument) => boolean;
  /** Whether a key without a recorded use may be used: its agent could have been archived meanwhile. */
  readonly isFirstUseAccepted: (agent: AgentDocument) => Promise<boolean>;
  /** Called for every request with an agent's key. `newestHash` is its form under the newest master key. */
  readonly onAgentKeyUsed: (agent: AgentDocument, newestHash: string) => void;
}

/** Subject whose requests are counted together: a key, or a user across all their sessions. */
export interface Caller {
  readonly id: string;
  readonly organizationId: string;
}

export interface Authentication {
  readonly result: Result<Principal>;
  /** Known even if a valid credential is refused, such as a paused agent's; null if unknown. */
  readonly caller: Caller | null;
}

/** The agent and key of a connected client. */
export interface Connected {
  readonly agentId: string;
  readonly keyId: string;
}

/** Text whose hash stands in for a connection's key. It cannot be presented: it is neither a key nor a token. */
export const connectionText = (keyId: string): string => `connection/${keyId}`;

export interface AuthenticationOptions {
  /** Whether an OAuth access token is accepted as a credential; only MCP does. */
  readonly takesConnections?: boolean;
  /** Whether a cached agent suffices, because the request is judged by the agent's current state. */
  readonly mayUseCache?: boolean;
}

interface AgentAuthentication extends Authentication {
  readonly result: Result<AgentPrincipal>;
}

const unauthenticated: AgentAuthentication = { result: refused(refusal("UNAUTHORIZED")), caller: null };

/** Answer to a header in which no credential could be valid, for example a quoted one. */
const malformed: AgentAuthentication = {
  result: refused(
    refusal("UNAUTHORIZED", "Send the credential as `Authorization: Bearer <credential>`, without quotes."),
  ),
  caller: null,
};

/** Returns a header's credential as visible ASCII; null if the scheme is not bearer or the credential is quoted. */
const bearerIn = (header: string): string | null =>
  /^Bearer +((?!["'])[\x21-\x7e]{1,4096})$/i.exec(header)?.[1] ?? null;

/**
 * Verifies a request's bearer credential against the database: a revoked key or session fails on the next request. Only
 * payments may use a cached agent, since the project's ledger refuses whatever the agent's current record would refuse.
 * A mistyped key fails its checksum, without a look-up.
 */
export class Authenticator {
  readonly #dependencies: AuthenticatorDependencies;
  /** Batches the loads of concurrent requests; caches nothing for later ones. */
  readonly #agentsByHash: DataLoader<PresentedKey, AgentDocument | null>;
  readonly #cached = new LRUCache<string, AgentPrincipal>({
    max: CACHED_AGENTS_MAX,
    ttl: CACHED_AGENT_TTL_MS,
  });

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
      return await withTimeout(AUTHENTICATION_TIMEOUT_MS, this.#verify(token, options));
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
        // The result may reveal that the key was valid, and say what to do.
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
      (await withTimeout(AUTHENTICATION_TIMEOUT_MS, this.#agent(key))).result;
    const cached = { revision: agent.revision, verify };
    return {
      result: ok({ ...principal, cached }),
      caller: { id: keyId, organizationId: agent.organizationId },
    };
  }

  /** Authenticates a connection. Verified at each request: its token may have ended, whatever the state of its key. */
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

/** Whether the text has the form of an opaque token; a session's token contains dots. */
const isAccessToken = (token: string): boolean => /^[\w-]{43}$/.test(token);

/** Possible stored forms of a presented key, newest first. */
type PresentedKey = readonly string[];

const newestOf = ([newest = ""]: PresentedKey): string => newest;

/** Returns the stored hash of a presented key; null if the hash is another key's. */
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
