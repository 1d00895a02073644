import { canonicalJson } from "../domain/audit/canonical.ts";
import type { KeyedMacs } from "../secrets/keyed-macs.ts";
import type { AgentDocument, AgentKeyRecord } from "../store/documents.ts";

/** Immutable fields of an agent's record. */
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
 * MACs over the fields of an agent's record that its actor does not know, so that a change in MongoDB alone is
 * detected, such as another key's hash or more scopes. Made with the agent or its key; checked by authentication and
 * `reconcile`.
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

  /** Returns the record if its place, scopes and wallet are as the service wrote them; otherwise null. */
  genuine(agent: AgentDocument | null): AgentDocument | null {
    if (agent === null || this.isAgentGenuine(agent)) return agent;
    this.#onForged(agent._id);
    return null;
  }

  /** Whether the record is as created, with a key that was minted for this agent. */
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
