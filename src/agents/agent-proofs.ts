import { canonicalJson } from "../domain/audit/canonical.ts";
import type { KeyedMacs } from "../secrets/keyed-macs.ts";
import type { AgentDocument, AgentKeyRecord } from "../store/documents.ts";

/** The part of an agent's record that never changes. */
export type FixedAgent = Pick<
  AgentDocument,
  | "_id"
  | "organizationId"
  | "projectId"
  | "teamId"
  | "scopes"
  | "wallet"
  | "createdBy"
  | "createdByLineage"
  | "createdAt"
>;

type ProvenKey = Pick<AgentKeyRecord, "id" | "hash" | "connection">;

/**
 * MACs over the parts of an agent's record that its actor does not know: a change in MongoDB alone shows, such as another key's hash
 * or more scopes. Made when the agent or the key is; authentication and `reconcile` check them.
 */
export class AgentProofs {
  readonly #macs: KeyedMacs;
  readonly #onForged: (agentId: string) => void;

  constructor(macs: KeyedMacs, onForged: (agentId: string) => void = () => undefined) {
    this.#macs = macs;
    this.#onForged = onForged;
  }

  ofAgent(agent: FixedAgent): string {
    return this.#macs.make(agentFacts(agent));
  }

  ofKey(agentId: string, key: ProvenKey): string {
    return this.#macs.make(keyFacts(agentId, key));
  }

  isAgentGenuine(agent: FixedAgent & Pick<AgentDocument, "proof">): boolean {
    return this.#macs.isMac(agentFacts(agent), agent.proof);
  }

  isKeyGenuine(agentId: string, key: ProvenKey & Pick<AgentKeyRecord, "proof">): boolean {
    return this.#macs.isMac(keyFacts(agentId, key), key.proof);
  }

  /** The record, if where it belongs, its scopes and its wallet are as the service wrote them; null where there is none, or not. */
  genuine(agent: AgentDocument | null): AgentDocument | null {
    if (agent === null || this.isAgentGenuine(agent)) return agent;
    this.#onForged(agent._id);
    return null;
  }

  /** Whether the record is the agent's as it was created, with a key that was minted for it. */
  isGenuine(agent: AgentDocument): boolean {
    const { _id, key } = agent;
    if (key === null) return false;
    const isGenuine = this.isKeyGenuine(_id, key) && this.isAgentGenuine(agent);
    if (!isGenuine) this.#onForged(_id);
    return isGenuine;
  }
}

function agentFacts(agent: FixedAgent): string {
  const { _id, createdAt, createdBy, createdByLineage, organizationId, projectId, scopes, teamId, wallet } =
    agent;
  const fixed = { _id, createdBy, createdByLineage, organizationId, projectId, scopes, teamId, wallet };
  return canonicalJson({ agent: { ...fixed, createdAt: createdAt.toISOString() } });
}

const keyFacts = (agentId: string, { connection, hash, id }: ProvenKey): string =>
  canonicalJson({ key: { agentId, hash, id, ...(connection === undefined ? {} : { connection }) } });
