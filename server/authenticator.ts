import type DataLoader from "dataloader";
import type { Collection } from "mongodb";
import type { AgentDocument } from "../activities/documents.ts";
import { classifyApiKey } from "../src/domain/api-key.ts";
import { refusal } from "../src/domain/errors.ts";
import type { Result } from "../src/domain/result.ts";
import { ok, refused } from "../src/domain/result.ts";
import type { SessionPrincipal } from "./auth/principal.ts";
import type { OrganizationKeyPrincipal, Principal } from "./principals.ts";
import { isSameHash } from "./secrets/api-key-hash.ts";
import { together } from "./together.ts";
import { isUnavailable } from "./unavailable.ts";
import { within } from "../activities/within.ts";

/** The part of a caller's 5 s that its credential's check may take. */
const AUTHENTICATION_MS = 3_000;

export interface AuthenticatorDependencies {
  readonly agents: Collection<AgentDocument>;
  readonly hashApiKey: (value: string) => string;
  readonly authenticateSession: (token: string) => Promise<Result<SessionPrincipal>>;
  readonly authenticateOrganizationKey: (value: string) => Promise<Result<OrganizationKeyPrincipal>>;
  /** Whether a key that was never used, as far as its agent's record shows, may be: its agent could be archived meanwhile. */
  readonly isFirstUseAccepted: (agent: AgentDocument) => Promise<boolean>;
  /** Told of every request that an agent's key made. */
  readonly onAgentKeyUsed: (agent: AgentDocument) => void;
}

/** Whose requests are counted together: a key's, or a user's whatever their sessions. */
export interface Caller {
  readonly id: string;
  readonly organizationId: string;
}

export interface Authentication {
  readonly result: Result<Principal>;
  /** Known even where a good credential is refused, as a paused agent's is; null: nobody's. */
  readonly caller: Caller | null;
}

const nobody: Authentication = { result: refused(refusal("UNAUTHORIZED")), caller: null };

/**
 * Verifies the bearer credential of a request against the database, every time: a revoked key or session is dead on
 * the next request. A mistyped key is refused by its checksum, without a look-up.
 */
export class Authenticator {
  readonly #dependencies: AuthenticatorDependencies;
  /** Look-ups of requests that arrive together go together; nothing is kept for later ones. */
  readonly #agentsByHash: DataLoader<string, AgentDocument | null>;

  constructor(dependencies: AuthenticatorDependencies) {
    this.#dependencies = dependencies;
    this.#agentsByHash = together((hashes) => agentsOf(dependencies.agents, hashes));
  }

  async authenticate(header: string | undefined): Promise<Authentication> {
    const token = /^Bearer ([\x21-\x7e]{1,4096})$/i.exec(header ?? "")?.[1];
    if (token === undefined) return nobody;
    try {
      return await within(AUTHENTICATION_MS, this.#verify(token));
    } catch (error) {
      if (!isUnavailable(error)) throw error;
      const unavailable = refusal("SERVICE_UNAVAILABLE", undefined, { retryAfterSeconds: 1 });
      return { result: refused(unavailable), caller: null };
    }
  }

  async #verify(token: string): Promise<Authentication> {
    switch (classifyApiKey(token)) {
      case "agent":
        return await this.#agent(token);
      case "organization": {
        const result = await this.#dependencies.authenticateOrganizationKey(token);
        if (!result.ok) return nobody;
        const { keyId, organizationId } = result.value;
        return { result, caller: { id: keyId, organizationId } };
      }
      case null: {
        const result = await this.#dependencies.authenticateSession(token);
        // It may say that it was good, and what to do.
        if (!result.ok) return { result, caller: null };
        const { userId, organizationId } = result.value;
        return { result, caller: { id: userId, organizationId } };
      }
    }
  }

  async #agent(value: string): Promise<Authentication> {
    const { hashApiKey, isFirstUseAccepted, onAgentKeyUsed } = this.#dependencies;
    const hash = hashApiKey(value);
    const agent = await this.#agentsByHash.load(hash);
    if (agent === null || agent.key === null || agent.lifecycle === "archived") return nobody;
    if (!isSameHash(agent.key.hash, hash)) return nobody;
    const isFirst = (agent.authenticatedAt ?? null) === null;
    if (isFirst && !(await isFirstUseAccepted(agent))) return nobody;
    onAgentKeyUsed(agent);
    const caller = { id: agent.key.id, organizationId: agent.organizationId };
    if (agent.lifecycle === "paused") return { result: refused(refusal("AGENT_PAUSED")), caller };
    return { result: ok({ type: "agent", agent, keyId: agent.key.id }), caller };
  }
}

async function agentsOf(
  agents: Collection<AgentDocument>,
  hashes: readonly string[],
): Promise<(AgentDocument | null)[]> {
  const found = await agents.find({ "key.hash": { $in: [...hashes] } }).toArray();
  const byHash = new Map(found.map((agent) => [agent.key?.hash, agent]));
  return hashes.map((hash) => byHash.get(hash) ?? null);
}
