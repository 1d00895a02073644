import type DataLoader from "dataloader";
import type { Collection } from "mongodb";
import type { AgentDocument } from "../activities/documents.ts";
import { classifyApiKey } from "../src/domain/api-key.ts";
import { refusal } from "../src/domain/errors.ts";
import type { Result } from "../src/domain/result.ts";
import { ok, refused } from "../src/domain/result.ts";
import type { SessionPrincipal } from "./auth/principal.ts";
import type { Principal } from "./principals.ts";
import { together } from "./together.ts";
import { isUnavailable } from "./unavailable.ts";
import { within } from "../activities/within.ts";

/** The part of a caller's 5 s that its credential's check may take. */
const AUTHENTICATION_MS = 3_000;

export interface AuthenticatorDependencies {
  readonly agents: Collection<AgentDocument>;
  readonly hashApiKey: (value: string) => string;
  readonly authenticateSession: (token: string) => Promise<Result<SessionPrincipal>>;
  /** Told of every request that an agent's key made. */
  readonly onAgentKeyUsed: (agent: AgentDocument) => void;
}

const unauthorized = () => refused(refusal("UNAUTHORIZED"));

/**
 * Verifies the bearer credential of a request against the database, every time: a revoked key or session is dead on
 * the next request (management-api.md section 5). A mistyped key is refused by its checksum, without a look-up.
 */
export class Authenticator {
  readonly #dependencies: AuthenticatorDependencies;
  /** Look-ups of requests that arrive together go together; nothing is kept for later ones. */
  readonly #agentsByHash: DataLoader<string, AgentDocument | null>;

  constructor(dependencies: AuthenticatorDependencies) {
    this.#dependencies = dependencies;
    this.#agentsByHash = together((hashes) => agentsOf(dependencies.agents, hashes));
  }

  async authenticate(header: string | undefined): Promise<Result<Principal>> {
    const token = /^Bearer ([\x21-\x7e]{1,4096})$/i.exec(header ?? "")?.[1];
    if (token === undefined) return unauthorized();
    try {
      const isAgent = classifyApiKey(token) === "agent";
      const check = isAgent ? this.#agent(token) : this.#dependencies.authenticateSession(token);
      return await within(AUTHENTICATION_MS, check);
    } catch (error) {
      if (!isUnavailable(error)) throw error;
      return refused(refusal("SERVICE_UNAVAILABLE", undefined, { retryAfterSeconds: 1 }));
    }
  }

  async #agent(key: string): Promise<Result<Principal>> {
    const { hashApiKey, onAgentKeyUsed } = this.#dependencies;
    const agent = await this.#agentsByHash.load(hashApiKey(key));
    if (agent === null || agent.lifecycle === "archived") return unauthorized();
    onAgentKeyUsed(agent);
    if (agent.lifecycle === "paused") return refused(refusal("AGENT_PAUSED"));
    return ok({ type: "agent", agent });
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
